"""The phone's reminders."""

from collections.abc import Mapping
from typing import Any

from envsched.environments.acebench.base_api import Answer, BaseApi, accept, refuse

CAPACITY = 6
REMINDERS = (
    (1001, "Doctor's Appointment", "Visit Dr. Smith for a checkup.", "2024-07-15 09:30"),
    (1002, "Team Meeting", "Monthly project review with the team.", "2024-07-17 11:00"),
    (
        1003,
        "To-do list",
        'First, help Frank place a food delivery order at "Hema Fresh," ordering two "Fresh Gift Packs." '
        'Then, send a message to Frank saying, "The price of the purchased goods is () yuan." Replace the '
        "parentheses with the actual amount, keeping one decimal place.",
        "2024-07-16 11:00",
    ),
)
"""Id, title, description and time of the reminders 1 to 3."""


class ReminderApi(BaseApi):
    """A list of at most six reminders."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.reminder_list = {number: _reminder(*row) for number, row in enumerate(REMINDERS, 1)}

    def view_reminder_by_title(self, title: str) -> Answer:
        """The first reminder of this title."""
        if not self.logged_in:
            return refuse("The device is not logged in, so you cannot view notifications")
        for reminder in self.reminder_list.values():
            if reminder["title"] == title:
                return accept(reminder=reminder)
        return refuse(f"No reminder found with the title '{title}'.")

    def add_reminder(self, title: str, description: str, time: str) -> Answer:
        """Add a reminder."""
        if not self.logged_in:
            return refuse("Device not logged in. Unable to add a new reminder.")
        if len(self.reminder_list) >= CAPACITY:
            return refuse("Reminder capacity is full. Unable to add a new reminder.")
        number = len(self.reminder_list) + 1
        self.reminder_list[number] = _reminder(number, title, description, time)
        return accept(message=f"Reminder '{title}' was successfully added.")


def _reminder(number: int, title: str, description: str, time: str) -> dict[str, Any]:
    return {
        "reminder_id": number,
        "title": title,
        "description": description,
        "time": time,
        "notified": False,
    }
