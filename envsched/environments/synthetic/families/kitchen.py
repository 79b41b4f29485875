"""Assemble: dishes are made step by step from what their recipes say."""

import random
from typing import Any

from envsched.environments.synthetic import words
from envsched.environments.synthetic.draft import Draft
from envsched.environments.synthetic.family import Entities, Family, Rule, World, rules, tool


class Kitchen(World):
    """A kitchen where pots get foods by recipe, are heated and served."""

    recipes: dict[str, str]
    minutes: dict[str, int]
    pots: dict[str, str]
    clean: dict[str, bool]
    lids: dict[str, bool]
    heats: dict[str, int]
    orders: dict[str, str]
    served: dict[str, str]

    @tool("search", "recipe", "formula", "need", "lookup")
    def recipe(self, pot: str) -> str:
        """Say which food belongs in a pot."""
        if not self._knows(self.recipes, pot):
            return "error: no such pot"
        return self.recipes[pot]

    @tool("create", "add", "fill", "mix", "stir", noun="food")
    def add(self, pot: str, food: str) -> str:
        """Put a food into a pot."""
        if not self._knows(self.recipes, pot):
            return "error: no such pot"
        if not self._knows(self.clean, food):
            return "error: no such food"
        if rules.washing and not self.clean[food]:
            return "error: not washed"
        self.pots[pot] = food
        return "ok"

    @tool("update", "wash", "rinse", "peel", "scrub", noun="food", rule="washing")
    def wash(self, food: str) -> str:
        """Wash a food, so that it can go into a pot."""
        if not self._knows(self.clean, food):
            return "error: no such food"
        if self.clean[food]:
            return "error: done before"
        self.clean[food] = True
        return "ok"

    @tool("read", "minutes", "time", "duration", "timer")
    def minutes_of(self, pot: str) -> str:
        """Say for how many minutes a pot is heated."""
        if not self._knows(self.minutes, pot):
            return "error: no such pot"
        return str(self.minutes[pot])

    @tool("update", "heat", "cook", "boil", "warm", noun="pot")
    def heat(self, pot: str, amount: int) -> str:
        """Heat a pot for an amount of minutes."""
        if not self._knows(self.recipes, pot):
            return "error: no such pot"
        if not self._positive(amount):
            return "error: wrong amount"
        if rules.covering and not self.lids[pot]:
            return "error: no lid"
        self.heats[pot] = amount
        return "ok"

    @tool("update", "cover", "close", "shut", "lid", noun="pot", rule="covering")
    def cover(self, pot: str) -> str:
        """Put the lid on a pot, so that it can be heated."""
        if not self._knows(self.lids, pot):
            return "error: no such pot"
        if self.lids[pot]:
            return "error: done before"
        self.lids[pot] = True
        return "ok"

    @tool("communicate", "serve", "bring", "offer", "present", noun="pot")
    def serve(self, pot: str, guest: str) -> str:
        """Serve a pot to a guest."""
        if not self._knows(self.recipes, pot):
            return "error: no such pot"
        if not self._knows(self.orders, guest):
            return "error: no such guest"
        self.served[guest] = pot
        return "ok"

    @tool("read", "order", "ordered", "wish", "asked", optional=True)
    def order(self, guest: str) -> str:
        """Say which pot a guest has ordered."""
        if not self._knows(self.orders, guest):
            return "error: no such guest"
        return self.orders[guest]


def start(entities: Entities, rng: random.Random) -> dict[str, Any]:
    pots, foods = entities["pot"], entities["food"]
    return {
        "recipes": {pot: rng.choice(foods) for pot in pots},
        "minutes": {pot: rng.choice(entities["amount"]) for pot in pots},
        "pots": {},
        "clean": dict.fromkeys(foods, False),
        "lids": dict.fromkeys(pots, False),
        "heats": {},
        "orders": {guest: rng.choice(pots) for guest in entities["guest"]},
        "served": {},
    }


def _add(task: Draft, pot: str, food: str) -> None:
    if task.rules["washing"] and not task.value("clean", food):
        task.call("wash", food=food)
    task.call("add", pot=pot, food=food)


def _heat(task: Draft, pot: str, amount: int) -> None:
    if task.rules["covering"]:
        task.call("cover", pot=pot)
    task.call("heat", pot=pot, amount=amount)


def add(task: Draft) -> None:
    pot, food = task.take("pot"), task.pick("food")
    _add(task, pot, food)
    task.say(f"put {food} into the {pot} pot", f"fill the {pot} pot with {food}")


def add_by_recipe(task: Draft) -> None:
    pot = task.take("pot")
    food = task.call("recipe", pot=pot)
    _add(task, pot, food)
    task.say(f"fill the {pot} pot by its recipe", f"put what the recipe says into the {pot} pot")


def add_as_other(task: Draft) -> None:
    pot, other = task.take("pot"), task.pick("pot")
    if pot == other:
        task.unfit("one pot only")
    food = task.call("recipe", pot=other)
    _add(task, pot, food)
    task.say(
        f"fill the {pot} pot by the recipe of the {other} pot", f"make in the {pot} pot what is for {other}"
    )


def heat(task: Draft) -> None:
    pot, amount = task.take("pot"), task.pick("amount")
    _heat(task, pot, amount)
    task.say(f"heat the {pot} pot for {amount} minutes", f"cook the {pot} pot {amount} minutes long")


def heat_in_time(task: Draft) -> None:
    pot = task.take("pot")
    amount = int(task.call("minutes_of", pot=pot))
    _heat(task, pot, amount)
    task.say(f"heat the {pot} pot as long as it needs", f"cook the {pot} pot for its time")


def make(task: Draft) -> None:
    pot, food = task.take("pot"), task.pick("food")
    _add(task, pot, food)
    amount = int(task.call("minutes_of", pot=pot))
    _heat(task, pot, amount)
    task.say(
        f"put {food} into the {pot} pot and heat it as long as it needs",
        f"fill the {pot} pot with {food} and cook it for its time",
    )


def serve(task: Draft) -> None:
    guest, pot = task.take("guest"), task.pick("pot")
    task.call("serve", pot=pot, guest=guest)
    task.say(f"serve the {pot} pot to {guest}", f"let {guest} have the {pot} pot")


def serve_order(task: Draft) -> None:
    guest = task.take("guest")
    pot = task.call("order", guest=guest)
    task.call("serve", pot=pot, guest=guest)
    task.say(f"serve {guest} what {guest} has ordered", f"let {guest} have the ordered pot")


FAMILY = Family(
    name="kitchen",
    template=Kitchen,
    entities={
        "pot": (words.COLORS, 7),
        "food": (words.FOODS, 8),
        "amount": (words.TENS, 7),
        "guest": (words.PEOPLE, 6),
    },
    rules={
        "washing": Rule("A food must be washed before it goes into a pot."),
        "covering": Rule("A pot needs its lid before it is heated."),
    },
    arguments={
        "pot": ("pot", "pan", "bowl", "dish"),
        "food": ("food", "item", "stuff", "part"),
        "amount": ("amount", "minutes", "number", "time"),
        "guest": ("guest", "client", "person", "eater"),
    },
    fields={
        "recipes": ("recipes", "formulas"),
        "minutes": ("durations", "times"),
        "pots": ("pots", "contents"),
        "clean": ("washed", "cleaned"),
        "lids": ("lids", "covers"),
        "heats": ("heats", "cooked"),
        "orders": ("orders", "requests"),
        "served": ("served", "tables"),
    },
    start=start,
    subtasks=(add, add_by_recipe, add_by_recipe, add_as_other, heat, heat_in_time, make, serve, serve_order),
    sites=("garden", "corner", "royal", "village", "harbor"),
)
