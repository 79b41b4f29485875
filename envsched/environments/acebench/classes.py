"""The classes by name, and what of their state is judged."""

from collections.abc import Iterable, Mapping
from typing import Any

from envsched.environments.acebench.base_api import BaseApi
from envsched.environments.acebench.food_platform import FoodPlatform
from envsched.environments.acebench.message_api import MessageApi
from envsched.environments.acebench.reminder_api import ReminderApi
from envsched.environments.acebench.travel import Travel

CLASSES: dict[str, type[BaseApi | Travel]] = {
    "BaseApi": BaseApi,
    "MessageApi": MessageApi,
    "ReminderApi": ReminderApi,
    "FoodPlatform": FoodPlatform,
    "Travel": Travel,
}
JUDGED = {
    "BaseApi": ("wifi", "logged_in"),
    "MessageApi": ("inbox",),
    "ReminderApi": ("reminder_list",),
    "FoodPlatform": ("users", "logged_in_users", "orders"),
    "Travel": ("users", "reservations"),
}
"""Attributes of each class that an episode's end is compared in."""


def new_instances(names: Iterable[str], config: Mapping[str, Any]) -> dict[str, Any]:
    """An instance of each class, all of them from the phone's one `config`."""
    return {name: CLASSES[name](config) for name in names}
