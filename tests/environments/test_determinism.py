"""Foreign code sees one clock, one source of randomness and no difference from the real modules otherwise."""

import datetime as real_datetime
import textwrap
from typing import Any

from envsched.environments.determinism import episode_builtins


def run(code: str, seed: int = 0) -> dict[str, Any]:
    scope: dict[str, Any] = {"__builtins__": episode_builtins(seed)}
    exec(textwrap.dedent(code), scope)
    return scope


EVERYTHING = """
import random, secrets, time, uuid
import datetime
from datetime import datetime as moment, date
seen = [
    random.random(), random.choice(range(1000)), random.sample(range(1000), 5), secrets.token_hex(8),
    secrets.randbelow(1000), str(uuid.uuid4()), str(uuid.uuid1()),
    time.time(), time.time_ns(), time.monotonic(), time.perf_counter(),
    time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()), time.ctime(), str(moment.now()),
    str(moment.utcnow()), str(moment.today()), str(date.today()),
    str(datetime.datetime.now(datetime.timezone.utc)), __import__("time").time(),
]
"""


def test_the_same_seed_gives_the_same_values() -> None:
    assert run(EVERYTHING)["seen"] == run(EVERYTHING)["seen"]


def test_another_seed_gives_other_random_values_at_the_same_time() -> None:
    one, other = run(EVERYTHING)["seen"], run(EVERYTHING, seed=1)["seen"]
    assert all(a != b for a, b in zip(one[:7], other[:7], strict=True))
    assert one[7:] == other[7:]


def test_time_moves_on_and_differs_at_every_reading() -> None:
    times = run("import time\nseen = [time.time() for _ in range(5)]")["seen"]
    assert times == sorted(set(times))


def test_dates_behave_as_real_ones() -> None:
    scope = run(
        """
        from datetime import date, datetime, timedelta, timezone
        now = datetime(2025, 3, 1, 12, tzinfo=timezone.utc)
        shown = repr(now), repr(now.date()), str([datetime(2025, 3, 1)])
        same = [
            isinstance(now, datetime), isinstance(now.date(), date), isinstance(now, date),
            isinstance(datetime.min, datetime), datetime.fromisoformat("2025-03-01T12:00:00+00:00") == now,
            now - timedelta(days=1) < now, not isinstance("2025", date),
            not isinstance(date(2025, 1, 1), datetime),
        ]
        """
    )
    real = real_datetime.datetime(2025, 3, 1, 12, tzinfo=real_datetime.UTC)
    assert scope["shown"] == (repr(real), repr(real.date()), "[datetime.datetime(2025, 3, 1, 0, 0)]")
    assert all(scope["same"])
    assert scope["now"] == real


def test_other_modules_are_the_real_ones() -> None:
    import json

    assert run("import json, os.path\nfrom collections import Counter")["json"] is json
