"""Dispatch: vehicles are fuelled for the way, loaded, and sent to places."""

import random
from typing import Any

from envsched.environments.synthetic import words
from envsched.environments.synthetic.draft import Draft
from envsched.environments.synthetic.family import Entities, Family, Rule, World, rules, tool


class Fleet(World):
    """A fleet of vehicles that are fuelled, loaded and sent to places."""

    stops: dict[str, str]
    tanks: dict[str, int]
    drivers: dict[str, str]
    checked: dict[str, bool]
    cargo: dict[str, str]
    distances: dict[str, int]
    goods: list[str]

    @tool("search", "vehicle", "drives", "wheels", "ride")
    def vehicle(self, driver: str) -> str:
        """Say which vehicle a driver drives."""
        if not self._knows(self.drivers, driver):
            return "error: no such driver"
        return self.drivers[driver]

    @tool("compute", "distance", "range", "cost", "miles")
    def distance(self, place: str) -> str:
        """Say how much fuel the way to a place takes."""
        if not self._knows(self.distances, place):
            return "error: no such place"
        return str(self.distances[place])

    @tool("update", "send", "drive", "dispatch", "route", noun="place")
    def send(self, vehicle: str, place: str) -> str:
        """Send a vehicle to a place."""
        if not self._knows(self.stops, vehicle):
            return "error: no such vehicle"
        if not self._knows(self.distances, place) or self.stops[vehicle] == place:
            return "error: wrong place"
        if rules.inspection and not self.checked[vehicle]:
            return "error: not checked"
        if rules.fuel and self.tanks[vehicle] != self.distances[place]:
            return "error: wrong fuel"
        self.stops[vehicle] = place
        return "ok"

    @tool("update", "fuel", "charge", "supply", "tank", noun="vehicle")
    def fuel(self, vehicle: str, amount: int) -> str:
        """Fill the tank of a vehicle up to an amount."""
        if not self._knows(self.tanks, vehicle):
            return "error: no such vehicle"
        if not self._positive(amount):
            return "error: wrong amount"
        self.tanks[vehicle] = amount
        return "ok"

    @tool("update", "check", "inspect", "test", "examine", noun="vehicle", rule="inspection")
    def check(self, vehicle: str) -> str:
        """Check a vehicle, so that it can be sent."""
        if not self._knows(self.checked, vehicle):
            return "error: no such vehicle"
        if self.checked[vehicle]:
            return "error: done before"
        self.checked[vehicle] = True
        return "ok"

    @tool("create", "load", "pack", "stow", "place", noun="goods")
    def load(self, vehicle: str, goods: str) -> str:
        """Load goods onto a vehicle."""
        if not self._knows(self.stops, vehicle):
            return "error: no such vehicle"
        if not self._knows(self.goods, goods):
            return "error: no such goods"
        self.cargo[vehicle] = goods
        return "ok"

    @tool("delete", "unload", "empty", "clear", "dump", noun="goods", optional=True)
    def unload(self, vehicle: str, goods: str) -> str:
        """Take goods off a vehicle."""
        if not self._knows(self.cargo, vehicle) or self.cargo[vehicle] != goods:
            return "error: not there"
        del self.cargo[vehicle]
        return "ok"

    @tool("read", "cargo", "freight", "burden", "content", optional=True)
    def cargo_of(self, vehicle: str) -> str:
        """Say what a vehicle is loaded with."""
        if not self._knows(self.cargo, vehicle):
            return "error: nothing there"
        return self.cargo[vehicle]


def start(entities: Entities, rng: random.Random) -> dict[str, Any]:
    vehicles, places = entities["vehicle"], entities["place"]
    loaded = rng.sample(vehicles, len(vehicles) // 2)
    drivers = rng.sample(entities["driver"], len(vehicles))
    return {
        "stops": {vehicle: rng.choice(places) for vehicle in vehicles},
        "tanks": dict.fromkeys(vehicles, 0),
        "drivers": dict(zip(drivers, vehicles, strict=True)),
        "checked": dict.fromkeys(vehicles, False),
        "cargo": {vehicle: rng.choice(entities["goods"]) for vehicle in vehicles if vehicle in loaded},
        "distances": dict(zip(places, rng.sample(entities["amount"], len(places)), strict=True)),
        "goods": entities["goods"],
    }


def _elsewhere(task: Draft, vehicle: str) -> str:
    place: str = task.pick("place", but=[task.value("stops", vehicle)])
    return place


def _send(task: Draft, vehicle: str, place: str) -> None:
    if task.rules["inspection"]:
        task.call("check", vehicle=vehicle)
    if task.rules["fuel"]:
        task.call("fuel", vehicle=vehicle, amount=int(task.call("distance", place=place)))
    task.call("send", vehicle=vehicle, place=place)


def _take_driven(task: Draft) -> tuple[str, str]:
    """A driver and the vehicle, which is looked up."""
    driver = task.take("driver")
    vehicle: str = task.take("vehicle", where=task.value("drivers", driver).__eq__)
    return driver, task.call("vehicle", driver=driver) or vehicle


def send(task: Draft) -> None:
    vehicle = task.take("vehicle")
    place = _elsewhere(task, vehicle)
    _send(task, vehicle, place)
    task.say(f"send the {vehicle} to the {place}", f"let the {vehicle} drive to the {place}")


def send_driver(task: Draft) -> None:
    driver, vehicle = _take_driven(task)
    place = _elsewhere(task, vehicle)
    _send(task, vehicle, place)
    task.say(f"send the vehicle of {driver} to the {place}", f"let {driver} drive to the {place}")


def fuel(task: Draft) -> None:
    vehicle, amount = task.take("vehicle"), task.pick("amount")
    task.call("fuel", vehicle=vehicle, amount=amount)
    task.say(f"fuel the {vehicle} up to {amount}", f"let the {vehicle} have {amount} in the tank")


def fuel_for(task: Draft) -> None:
    vehicle, place = task.take("vehicle"), task.pick("place")
    task.call("fuel", vehicle=vehicle, amount=int(task.call("distance", place=place)))
    task.say(f"fuel the {vehicle} for the way to the {place}", f"let the {vehicle} have fuel for the {place}")


def load(task: Draft) -> None:
    vehicle, goods = task.take("vehicle"), task.pick("goods")
    task.call("load", vehicle=vehicle, goods=goods)
    task.say(f"load the {vehicle} with the {goods}", f"put the {goods} onto the {vehicle}")


def load_driver(task: Draft) -> None:
    driver, vehicle = _take_driven(task)
    goods = task.pick("goods")
    task.call("load", vehicle=vehicle, goods=goods)
    task.say(f"load the vehicle of {driver} with the {goods}", f"put the {goods} onto what {driver} drives")


def unload(task: Draft) -> None:
    vehicle = task.take("vehicle", where=task.field("cargo").__contains__)
    task.call("unload", vehicle=vehicle, goods=task.call("cargo_of", vehicle=vehicle))
    task.say(f"unload the {vehicle}", f"take everything off the {vehicle}")


FAMILY = Family(
    name="fleet",
    template=Fleet,
    entities={
        "vehicle": (words.ANIMALS, 7),
        "driver": (words.PEOPLE, 7),
        "place": (words.PLACES, 5),
        "amount": (words.TENS, 6),
        "goods": (words.FOODS, 6),
    },
    rules={
        "inspection": Rule("A vehicle must be checked before it is sent."),
        "fuel": Rule("A vehicle must have exactly the fuel for the way when it is sent."),
    },
    arguments={
        "vehicle": ("vehicle", "truck", "car", "van"),
        "driver": ("driver", "person", "owner", "pilot"),
        "place": ("place", "target", "stop", "goal"),
        "amount": ("amount", "fuel", "number", "value"),
        "goods": ("goods", "freight", "stuff", "item"),
    },
    fields={
        "stops": ("stops", "positions"),
        "tanks": ("tanks", "levels"),
        "drivers": ("drivers", "crews"),
        "checked": ("checked", "inspected"),
        "cargo": ("cargoes", "loads"),
        "distances": ("distances", "ways"),
        "goods": ("supplies", "wares"),
    },
    start=start,
    subtasks=(send, send_driver, fuel, fuel_for, load, load_driver, unload),
    sites=("desert", "coast", "mountain", "metro", "border"),
)
