"""Every scheduler there is can be made by its name."""

import pytest

from envsched.graph.profile import NodeProfile
from envsched.scheduling.registry import SCHEDULERS, make_scheduler


def test_every_listed_scheduler_can_be_made_and_others_are_refused() -> None:
    nodes = [NodeProfile("a/x#1"), NodeProfile("b/y#2")]
    for name in SCHEDULERS:
        assert len(make_scheduler(name, nodes, 0).next_batch(2, 0).keys) == 2
    with pytest.raises(ValueError, match=r"found 'greedy'; allowed: .*uniform, uniform_environments"):
        make_scheduler("greedy", [], 0)
