"""Toggle: devices stand in rooms, are switched and set to levels."""

import random
from typing import Any

from envsched.environments.synthetic import words
from envsched.environments.synthetic.draft import Draft
from envsched.environments.synthetic.family import Entities, Family, Rule, World, rules, tool


class Home(World):
    """A house whose devices stand in rooms and are switched and set."""

    rooms: dict[str, str]
    states: dict[str, str]
    levels: dict[str, int]
    power: dict[str, bool]
    guards: dict[str, bool]
    sensors: dict[str, int]
    timers: dict[str, str]
    days: list[str]

    @tool("search", "room", "where", "find", "locate")
    def room(self, device: str) -> str:
        """Say in which room a device stands."""
        if not self._knows(self.rooms, device):
            return "error: no such device"
        return self.rooms[device]

    @tool("update", "toggle", "switch", "flip", "turn", noun="device")
    def toggle(self, device: str, room: str) -> str:
        """Turn a device that stands in a room on if it is off, and off if it is on."""
        if not self._knows(self.rooms, device) or self.rooms[device] != room:
            return "error: not there"
        if rules.supply and not self.power[room]:
            return "error: no power"
        self.states[device] = "off" if self.states[device] == "on" else "on"
        return "ok"

    @tool("update", "power", "supply", "connect", "enable", noun="room", rule="supply")
    def connect(self, room: str) -> str:
        """Turn on the power of a room, so that its devices can be switched."""
        if not self._knows(self.power, room):
            return "error: no such room"
        if self.power[room]:
            return "error: done before"
        self.power[room] = True
        return "ok"

    @tool("update", "set", "adjust", "tune", "change", noun="level")
    def adjust(self, device: str, level: int) -> str:
        """Set a device to a level."""
        if not self._knows(self.levels, device):
            return "error: no such device"
        if not self._positive(level):
            return "error: wrong level"
        if rules.guarding and self.guards[device]:
            return "error: locked"
        self.levels[device] = level
        return "ok"

    @tool("update", "unlock", "release", "free", "open", noun="device", rule="guarding")
    def release(self, device: str) -> str:
        """Unlock a device, so that it can be set."""
        if not self._knows(self.guards, device):
            return "error: no such device"
        if not self.guards[device]:
            return "error: not locked"
        self.guards[device] = False
        return "ok"

    @tool("read", "sense", "measure", "heat", "sensor")
    def sense(self, room: str) -> str:
        """Say what a room's sensor shows."""
        if not self._knows(self.sensors, room):
            return "error: no such room"
        return str(self.sensors[room])

    @tool("create", "timer", "plan", "alarm", "schedule", noun="day")
    def plan(self, device: str, day: str) -> str:
        """Let a device start on a day."""
        if not self._knows(self.rooms, device):
            return "error: no such device"
        if not self._knows(self.days, day):
            return "error: no such day"
        self.timers[device] = day
        return "ok"

    @tool("read", "day", "when", "date", "planned", optional=True)
    def day(self, device: str) -> str:
        """Say on which day a device starts."""
        if not self._knows(self.timers, device):
            return "error: no plan"
        return self.timers[device]

    @tool("read", "level", "value", "state", "degree")
    def level(self, device: str) -> str:
        """Say to which level a device is set."""
        if not self._knows(self.levels, device):
            return "error: no such device"
        return str(self.levels[device])


def start(entities: Entities, rng: random.Random) -> dict[str, Any]:
    devices, rooms = entities["device"], entities["room"]
    return {
        "rooms": {device: rng.choice(rooms) for device in devices},
        "states": {device: rng.choice(["on", "off"]) for device in devices},
        "levels": {device: rng.choice(entities["level"]) for device in devices},
        "power": dict.fromkeys(rooms, False),
        "guards": dict.fromkeys(devices, True),
        "sensors": dict(zip(rooms, rng.sample(entities["level"], len(rooms)), strict=True)),
        "timers": {device: rng.choice(entities["day"]) for device in devices},
        "days": entities["day"],
    }


def _toggle(task: Draft, device: str, room: str) -> None:
    if task.rules["supply"] and not task.value("power", room):
        task.call("connect", room=room)
    task.call("toggle", device=device, room=room)


def _adjust(task: Draft, device: str, level: int) -> None:
    if task.rules["guarding"]:
        task.call("release", device=device)
    task.call("adjust", device=device, level=level)


def _opposite(task: Draft, device: str) -> str:
    return "off" if task.value("states", device) == "on" else "on"


def toggle(task: Draft) -> None:
    device = task.take("device")
    room, state = task.value("rooms", device), _opposite(task, device)
    _toggle(task, device, room)
    task.say(f"turn {state} the {device} in the {room}", f"switch the {device} that is in the {room} {state}")


def find_and_toggle(task: Draft) -> None:
    device = task.take("device")
    state = _opposite(task, device)
    _toggle(task, device, task.call("room", device=device))
    task.say(f"turn {state} the {device}", f"find the {device} and switch it {state}")


def adjust(task: Draft) -> None:
    device, level = task.take("device"), task.pick("level")
    _adjust(task, device, level)
    task.say(f"set the {device} to {level}", f"let the level of the {device} be {level}")


def adjust_to_room(task: Draft) -> None:
    device, room = task.take("device"), task.pick("room")
    _adjust(task, device, int(task.call("sense", room=room)))
    task.say(f"set the {device} to what the sensor in the {room} shows", f"let the {device} match the {room}")


def adjust_to_own_room(task: Draft) -> None:
    device = task.take("device")
    level = task.call("sense", room=task.call("room", device=device))
    _adjust(task, device, int(level))
    task.say(f"set the {device} to what the sensor in its room shows", f"let the {device} match the own room")


def adjust_alike(task: Draft) -> None:
    device, other = task.take("device"), task.take("device")
    _adjust(task, device, int(task.call("level", device=other)))
    task.say(f"set the {device} to the level of the {other}", f"let the {device} match the {other}")


def plan(task: Draft) -> None:
    device, day = task.take("device"), task.pick("day")
    task.call("plan", device=device, day=day)
    task.say(f"let the {device} start on {day}", f"plan the {device} for {day}")


def plan_alike(task: Draft) -> None:
    device, other = task.take("device"), task.take("device")
    task.call("plan", device=device, day=task.call("day", device=other))
    task.say(f"let the {device} start on the same day as the {other}", f"plan the {device} like the {other}")


FAMILY = Family(
    name="home",
    template=Home,
    entities={
        "device": (words.THINGS, 9),
        "room": (words.PLACES, 6),
        "level": (words.TENS, 8),
        "day": (words.DAYS, 5),
    },
    rules={
        "supply": Rule("A room must have power before its devices are switched."),
        "guarding": Rule("A device must be unlocked before it is set."),
    },
    arguments={
        "device": ("device", "machine", "object", "unit"),
        "room": ("room", "place", "area", "location"),
        "level": ("level", "value", "number", "amount"),
        "day": ("day", "date", "time", "start"),
    },
    fields={
        "rooms": ("rooms", "places"),
        "states": ("states", "modes"),
        "levels": ("levels", "values"),
        "power": ("supplies", "circuits"),
        "guards": ("guards", "locks"),
        "sensors": ("sensors", "readings"),
        "timers": ("timers", "plans"),
        "days": ("days", "dates"),
    },
    start=start,
    subtasks=(
        toggle,
        find_and_toggle,
        adjust,
        adjust_to_room,
        adjust_to_own_room,
        adjust_alike,
        plan,
        plan_alike,
    ),
    sites=("summer", "winter", "beach", "farm", "guest"),
)
