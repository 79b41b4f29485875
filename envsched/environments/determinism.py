"""Clock, random numbers and identifiers of one episode, so that the same actions give the same bytes again.

Code run with `episode_builtins(seed)` gets its own `random`, `uuid`, `secrets`, `time` and `datetime` when it
imports them. Time starts at a fixed instant and moves on by one second whenever it is read.
"""

import builtins
import datetime as real_datetime
import random as real_random
import secrets as real_secrets
import time as real_time
import uuid as real_uuid
from collections.abc import Callable
from types import ModuleType
from typing import Any

EPOCH = 1_735_689_600
"""2025-01-01T00:00:00Z in Unix seconds: when every episode begins."""


class Clock:
    """Seconds since 1970; a reading moves it on by one second."""

    def __init__(self) -> None:
        self.seconds = EPOCH

    def read(self) -> int:
        """The time, in Unix seconds."""
        self.seconds += 1
        return self.seconds


def episode_builtins(seed: int) -> dict[str, Any]:
    """Built-in names whose `import` hands out the deterministic modules of one episode."""
    generator = real_random.Random(seed)
    clock = Clock()
    makers: dict[str, Callable[[], ModuleType]] = {
        "random": lambda: _random_module(generator),
        "uuid": lambda: _uuid_module(generator),
        "secrets": lambda: _secrets_module(generator),
        "time": lambda: _time_module(clock),
        "datetime": lambda: _datetime_module(clock),
    }
    made: dict[str, ModuleType] = {}

    def import_module(name: str, *args: Any, **kwargs: Any) -> ModuleType:
        if name not in makers:
            return builtins.__import__(name, *args, **kwargs)
        if name not in made:
            made[name] = makers[name]()
        return made[name]

    return {**vars(builtins), "__import__": import_module}


def _like(module: ModuleType, **replaced: Any) -> ModuleType:
    """A copy of `module` with some names replaced."""
    copy = ModuleType(module.__name__, module.__doc__)
    vars(copy).update(vars(module))
    vars(copy).update(replaced)
    return copy


def _random_module(generator: real_random.Random) -> ModuleType:
    bound = {
        name: getattr(generator, name)
        for name, value in vars(real_random).items()
        if not name.startswith("_") and isinstance(getattr(value, "__self__", None), real_random.Random)
    }
    return _like(real_random, **bound)


def _uuid_module(generator: real_random.Random) -> ModuleType:
    def make(*_: Any, **__: Any) -> real_uuid.UUID:
        return real_uuid.UUID(int=generator.getrandbits(128), version=4)

    return _like(real_uuid, uuid1=make, uuid4=make, getnode=lambda: 0)


def _secrets_module(generator: real_random.Random) -> ModuleType:
    def token_bytes(size: int | None = None) -> bytes:
        return generator.randbytes(32 if size is None else size)

    return _like(
        real_secrets,
        choice=generator.choice,
        randbelow=generator.randrange,
        randbits=generator.getrandbits,
        token_bytes=token_bytes,
        token_hex=lambda size=None: token_bytes(size).hex(),
        token_urlsafe=lambda size=None: token_bytes(size).hex(),
    )


def _time_module(clock: Clock) -> ModuleType:
    def struct(
        convert: Callable[[float], real_time.struct_time],
    ) -> Callable[..., real_time.struct_time]:
        return lambda seconds=None: convert(clock.read() if seconds is None else seconds)

    localtime = struct(real_time.localtime)

    def strftime(form: str, moment: Any = None) -> str:
        return real_time.strftime(form, localtime() if moment is None else moment)

    def ctime(seconds: float | None = None) -> str:
        return real_time.asctime(localtime(seconds))

    def asctime(moment: Any = None) -> str:
        return real_time.asctime(localtime() if moment is None else moment)

    def seconds() -> float:
        return float(clock.read())

    def nanoseconds() -> int:
        return clock.read() * 1_000_000_000

    clocks = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
    return _like(
        real_time,
        localtime=localtime,
        gmtime=struct(real_time.gmtime),
        strftime=strftime,
        ctime=ctime,
        asctime=asctime,
        **dict.fromkeys(clocks, seconds),
        **{f"{name}_ns": nanoseconds for name in clocks},
    )


class _SameInstances(type):
    """Instances of the real class count as instances of its stand-in."""

    def __instancecheck__(cls, instance: Any) -> bool:
        real = vars(cls).get("real")
        return isinstance(instance, real) if real else super().__instancecheck__(instance)


def _datetime_module(clock: Clock) -> ModuleType:
    class date(real_datetime.date, metaclass=_SameInstances):
        real = real_datetime.date

        @classmethod
        def today(cls) -> Any:
            return cls.fromtimestamp(clock.read())

        def __repr__(self) -> str:
            return f"datetime.{super().__repr__()}"

    class datetime(real_datetime.datetime, metaclass=_SameInstances):
        real = real_datetime.datetime

        @classmethod
        def now(cls, tz: real_datetime.tzinfo | None = None) -> Any:
            return cls.fromtimestamp(clock.read(), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return cls.fromtimestamp(clock.read(), real_datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

        def __repr__(self) -> str:
            return f"datetime.{super().__repr__()}"

    return _like(real_datetime, date=date, datetime=datetime)
