"""The protocol in the repository, and wrong ones."""

from pathlib import Path

import pytest

from envsched.benchmarks.efficiency.protocol import PROTOCOL, read_protocol
from envsched.benchmarks.efficiency.table import ORACLE, UNIFORM
from envsched.config import SettingsError

ROOT = Path(__file__).parents[3]


def test_the_protocol_of_the_repository_holds() -> None:
    protocol = read_protocol(ROOT / PROTOCOL)
    assert {UNIFORM, ORACLE, "envsched"} <= set(protocol.arms) & set(protocol.size_arms)
    assert all(ablation.startswith("envsched:") for ablation in protocol.ablations)
    assert not set(protocol.seeds) & set(protocol.tuning_seeds)
    calls = protocol.resolved("scarce", {}).environments.calls
    assert set(calls or ()) == {1, 2, 3, 4, 5, 6}
    assert protocol.resolved("ordinary", {"train": {"seed": 7}}).train.seed == 7


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("arms:\n", "arms:\n  - nobody\n", "arm: found 'nobody'; allowed: uniform"),
        (
            "  scarce: [",
            "  scarce: [2.0, ",
            r"rates.scarce.0: found 2.0; input should be less than or equal to 1",
        ),
        (
            "  scarce: [",
            "  rare: [",
            "rates: found those of ordinary, rare; expected those of the regimes ordinary, scarce",
        ),
        ("cooldown: 0.0", "cooldown: 7", "update.cooldown: found 7"),
        (
            "ablation_seeds: 3",
            "ablation_seed: 3",
            "ablation_seed: no such setting; did you mean ablation_seeds",
        ),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (ROOT / PROTOCOL).read_text()
    assert old in text
    (tmp_path / "wrong.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(SettingsError, match=message) as caught:
        read_protocol(tmp_path / "wrong.yaml")
    assert "wrong.yaml" in str(caught.value)
