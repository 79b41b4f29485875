"""Every scheduler there is can be made by its name."""

import json

import pytest

from envsched.config import load_settings
from envsched.graph.profile import NodeProfile
from envsched.history.outcome import GroupOutcome
from envsched.scheduling.predictive import Predictive
from envsched.scheduling.registry import (
    SCHEDULERS,
    continued_scheduler,
    make_scheduler,
    option_names,
    scheduler_class,
    scheduler_from_settings,
)


def test_every_listed_scheduler_can_be_made_and_others_are_refused() -> None:
    nodes = [NodeProfile("a/x#1"), NodeProfile("b/y#2")]
    for name in SCHEDULERS:
        assert len(make_scheduler(name, nodes, 0).next_batch(2, 0).keys) == 2
    with pytest.raises(ValueError, match=r"found 'greedy'; allowed: .*uniform, uniform_environments"):
        make_scheduler("greedy", [], 0)


@pytest.mark.parametrize("name", sorted(SCHEDULERS))
def test_settings_reach_every_scheduler_that_takes_them(name: str) -> None:
    settings = load_settings(
        None,
        [
            f"schedule.scheduler={name}",
            "schedule.floor=0.5",
            "graph.within_neighbours=3",
            "variance.half_life=5",
            "train.seed=7",
            "train.group_size=3",
        ],
    )
    found = scheduler_from_settings(settings, [NodeProfile("a/x#1"), NodeProfile("b/y#2")])
    assert type(found) is scheduler_class(name)
    assert (found.seed, found.group_size) == (7, 3)
    if isinstance(found, Predictive):
        assert found.settings == settings.schedule
        assert found.graph_settings == settings.graph
        assert found.statistics.half_life == 5


def test_options_are_found_where_a_class_hands_them_on() -> None:
    class Handing(Predictive):
        def __init__(
            self, nodes: list[NodeProfile], seed: int, group_size: int = 8, **options: object
        ) -> None:
            raise NotImplementedError

    class Keeping(Handing):
        def __init__(self, nodes: list[NodeProfile], seed: int) -> None:
            raise NotImplementedError

    assert {"schedule", "graph", "half_life"} <= option_names(Handing)
    assert not {"schedule", "graph", "half_life"} & option_names(Keeping)
    assert {"schedule", "graph", "variance"} <= option_names(scheduler_class("envsched"))
    assert "schedule" not in option_names(scheduler_class("uniform"))


@pytest.mark.parametrize("name", ["envsched", "uniform", "hierarchical_beta", "plr", "sec"])
def test_a_scheduler_goes_on_over_a_changed_pool(name: str) -> None:
    nodes = [NodeProfile(f"{environment}/t{i}#1") for environment in "ab" for i in range(4)]
    settings = load_settings(None, [f"schedule.scheduler={name}", "train.group_size=2"])
    scheduler = scheduler_from_settings(settings, nodes)
    batch = scheduler.next_batch(3, 1)
    no, one = (False, False), (1, 1)
    scheduler.observe([GroupOutcome(key, 1, 1, (0.0, 1.0), no, no, one, one, one) for key in batch.keys])
    state = json.loads(json.dumps(scheduler.state_dict()))

    same = continued_scheduler(settings, nodes, state)
    assert same.next_batch(3, 2) == scheduler.next_batch(3, 2)

    changed = [*nodes[1:], NodeProfile("c/t0#1")]
    expected = continued_scheduler(settings, nodes, state)
    expected.update(added=changed[-1:], removed=[nodes[0].key])
    found = continued_scheduler(settings, changed, state)
    assert found.keys == expected.keys
    assert found.next_batch(3, 2).keys == expected.next_batch(3, 2).keys
