"""Move: items lie in places, and are moved from where they are found."""

import random
from typing import Any

from envsched.environments.synthetic import words
from envsched.environments.synthetic.draft import Draft
from envsched.environments.synthetic.family import Entities, Family, Rule, World, rules, tool


class Warehouse(World):
    """A storehouse whose items lie in places and are moved between them."""

    places: dict[str, str]
    locks: dict[str, bool]
    gates: dict[str, bool]
    tags: dict[str, str]
    colors: list[str]

    @tool("search", "find", "locate", "seek", "track", noun="item")
    def find(self, item: str) -> str:
        """Say where an item is."""
        if not self._knows(self.places, item):
            return "error: no such item"
        return self.places[item]

    @tool("update", "move", "carry", "shift", "bring", noun="item")
    def move(self, item: str, source: str, target: str) -> str:
        """Move an item from the place where it is to another."""
        if not self._knows(self.places, item):
            return "error: no such item"
        if not self._knows(self.gates, source, target):
            return "error: no such place"
        if self.places[item] != source or source == target:
            return "error: wrong place"
        if rules.locks and self.locks[item]:
            return "error: locked"
        if rules.gates and not self.gates[target]:
            return "error: not ready"
        self.places[item] = target
        return "ok"

    @tool("update", "unlock", "release", "free", "untie", noun="item", rule="locks")
    def unlock(self, item: str) -> str:
        """Unlock an item so that it can be moved."""
        if not self._knows(self.locks, item):
            return "error: no such item"
        if not self.locks[item]:
            return "error: not locked"
        self.locks[item] = False
        return "ok"

    @tool("update", "prepare", "clear", "open", "ready", noun="target", rule="gates")
    def prepare(self, target: str) -> str:
        """Make a place ready so that items can be moved to it."""
        if not self._knows(self.gates, target):
            return "error: no such place"
        if self.gates[target]:
            return "error: done before"
        self.gates[target] = True
        return "ok"

    @tool("create", "tag", "mark", "label", "paint", noun="item")
    def mark(self, item: str, color: str) -> str:
        """Give an item a tag of a color."""
        if not self._knows(self.places, item):
            return "error: no such item"
        if not self._knows(self.colors, color):
            return "error: no such color"
        self.tags[item] = color
        return "ok"

    @tool("read", "color", "hue", "shade", "look")
    def color(self, item: str) -> str:
        """Say the color of an item's tag."""
        if not self._knows(self.tags, item):
            return "error: no tag"
        return self.tags[item]

    @tool("update", "swap", "switch", "trade", "exchange", optional=True)
    def swap(self, item: str, other: str) -> str:
        """Let two items trade places."""
        if not self._knows(self.places, item, other) or self.places[item] == self.places[other]:
            return "error: no such item"
        self.places[item], self.places[other] = self.places[other], self.places[item]
        return "ok"

    @tool("delete", "drop", "discard", "remove", "scrap", noun="item")
    def discard(self, item: str, source: str) -> str:
        """Throw away an item that lies in a place."""
        if not self._knows(self.places, item) or self.places[item] != source:
            return "error: no such item"
        del self.places[item]
        return "ok"


def start(entities: Entities, rng: random.Random) -> dict[str, Any]:
    return {
        "places": {item: rng.choice(entities["place"]) for item in entities["item"]},
        "locks": dict.fromkeys(entities["item"], True),
        "gates": dict.fromkeys(entities["place"], False),
        "tags": {item: rng.choice(entities["color"]) for item in entities["item"]},
        "colors": entities["color"],
    }


def _move(task: Draft, item: str, source: str, target: str) -> None:
    if task.rules["locks"]:
        task.call("unlock", item=item)
    if task.rules["gates"] and not task.value("gates", target):
        task.call("prepare", target=target)
    task.call("move", item=item, source=source, target=target)


def move(task: Draft) -> None:
    item = task.take("item")
    source = task.value("places", item)
    target = task.pick("place", but=[source])
    _move(task, item, source, target)
    task.say(
        f"move the {item} from the {source} to the {target}",
        f"bring the {item} to the {target} from the {source}",
    )


def find_and_move(task: Draft) -> None:
    item = task.take("item")
    target = task.pick("place", but=[task.value("places", item)])
    source = task.call("find", item=item)
    _move(task, item, source, target)
    task.say(f"move the {item} to the {target}", f"bring the {item} over to the {target}")


def move_together(task: Draft) -> None:
    item, other = task.take("item"), task.take("item")
    source = task.call("find", item=item)
    target = task.call("find", item=other)
    if source == target:
        task.unfit("they lie together")
    _move(task, item, source, target)
    task.say(f"move the {item} to where the {other} is", f"bring the {item} to the place of the {other}")


def mark(task: Draft) -> None:
    item = task.take("item")
    color = task.pick("color", but=[task.value("tags", item)])
    task.call("mark", item=item, color=color)
    task.say(f"give the {item} a {color} tag", f"tag the {item} with the color {color}")


def mark_alike(task: Draft) -> None:
    item, other = task.take("item"), task.take("item")
    color = task.call("color", item=other)
    task.call("mark", item=item, color=color)
    task.say(f"give the {item} the same tag as the {other}", f"tag the {item} in the color of the {other}")


def swap(task: Draft) -> None:
    item, other = task.take("item"), task.take("item")
    if task.value("places", item) == task.value("places", other):
        task.unfit("they lie together")
    task.call("swap", item=item, other=other)
    task.say(f"swap the {item} and the {other}", f"let the {item} and the {other} trade places")


def discard(task: Draft) -> None:
    item = task.take("item")
    source = task.value("places", item)
    task.call("discard", item=item, source=source)
    task.say(f"throw away the {item} in the {source}", f"get rid of the {item} that is in the {source}")


def find_and_discard(task: Draft) -> None:
    item = task.take("item")
    source = task.call("find", item=item)
    task.call("discard", item=item, source=source)
    task.say(f"find the {item} and throw it away", f"get rid of the {item} wherever it is")


FAMILY = Family(
    name="warehouse",
    template=Warehouse,
    entities={"item": (words.THINGS, 9), "place": (words.PLACES, 6), "color": (words.COLORS, 5)},
    rules={
        "locks": Rule("An item must be unlocked before it is moved."),
        "gates": Rule("A place must be made ready before anything is moved to it."),
    },
    arguments={
        "item": ("item", "thing", "object", "piece"),
        "other": ("other", "second", "partner", "next"),
        "source": ("source", "origin", "start", "old"),
        "target": ("target", "goal", "end", "new"),
        "color": ("color", "hue", "paint", "shade"),
    },
    fields={
        "places": ("places", "spots", "locations"),
        "locks": ("locks", "seals"),
        "gates": ("gates", "doors"),
        "tags": ("tags", "marks"),
        "colors": ("colors", "paints"),
    },
    start=start,
    subtasks=(
        move,
        find_and_move,
        find_and_move,
        move_together,
        mark,
        mark_alike,
        swap,
        discard,
        find_and_discard,
    ),
    sites=("harbor", "city", "river", "valley", "hill"),
)
