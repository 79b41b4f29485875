"""Text messages among six people."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from envsched.environments.acebench.base_api import Answer, BaseApi, accept, refuse

CAPACITY = 6
USER_IDS = {
    "Eve": "USR100",
    "Frank": "USR101",
    "Grace": "USR102",
    "Helen": "USR103",
    "Isaac": "USR104",
    "Jack": "USR105",
}
MESSAGES = (
    (
        "USR100",
        "USR101",
        "Hey Frank, don't forget about our meeting on 2024-06-11 at 4 PM in Conference Room 1.",
        "2024-06-09",
    ),
    (
        "USR101",
        "USR102",
        'Can you help me order a "Margherita Pizza" delivery? The merchant is Domino\'s.',
        "2024-03-09",
    ),
    (
        "USR102",
        "USR103",
        "Please check the milk tea delivery options available from Heytea and purchase a cheaper milk tea "
        'for me. After making the purchase, remember to reply to me with "Already bought."',
        "2023-12-05",
    ),
    ("USR103", "USR102", "No problem Helen, I can assist you.", "2024-09-09"),
    ("USR104", "USR105", "Isaac, are you available for a call?", "2024-06-06"),
    ("USR105", "USR104", "Yes Jack, let's do it in 30 minutes.", "2024-01-15"),
)
"""Sender, receiver, text and day of the messages 1 to 6."""


class MessageApi(BaseApi):
    """An inbox of all six people, which starts full."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        fields = ("sender_id", "receiver_id", "message", "time")
        self.inbox: dict[int, dict[str, str]] = {
            number: dict(zip(fields, row, strict=True)) for number, row in enumerate(MESSAGES, 1)
        }
        self.last_id = len(MESSAGES)

    def send_message(self, sender_name: str, receiver_name: str, message: str) -> Answer:
        """Add a message. As in the benchmark it bears no time, so later questions for times fail."""
        if not self.logged_in:
            return refuse("Device not logged in, unable to send message")
        if not self.wifi:
            return refuse("Wi-Fi is turned off, cannot send messages at this time")
        if len(self.inbox) >= CAPACITY:
            return refuse("Inbox capacity is full. You need to ask the user which message to delete.")
        if sender_name not in USER_IDS or receiver_name not in USER_IDS:
            return refuse("Sender or receiver does not exist")
        self.last_id += 1
        self.inbox[self.last_id] = {
            "sender_id": USER_IDS[sender_name],
            "receiver_id": USER_IDS[receiver_name],
            "message": message,
        }
        return accept(message=f"Message successfully sent to {receiver_name}.")

    def delete_message(self, message_id: int) -> Answer:
        """Remove the message of this number."""
        if not self.logged_in:
            return refuse("Device not logged in, unable to delete message")
        if message_id not in self.inbox:
            return refuse("Message ID does not exist")
        del self.inbox[message_id]
        return accept(message=f"Message ID {message_id} has been successfully deleted.")

    def view_messages_between_users(self, sender_name: str, receiver_name: str) -> Answer:
        """All messages from the one to the other."""
        if not self.logged_in:
            return refuse("Device not logged in, unable to view message information")
        if sender_name not in USER_IDS:
            return refuse("Sender does not exist")
        if receiver_name not in USER_IDS:
            return refuse("Receiver does not exist")
        pair = (USER_IDS[sender_name], USER_IDS[receiver_name])
        found = [
            {"id": number, "sender": sender_name, "receiver": receiver_name, "message": item["message"]}
            for number, item in self.inbox.items()
            if (item["sender_id"], item["receiver_id"]) == pair
        ]
        return accept(messages=found) if found else refuse("No related message records found")

    def search_messages(self, user_name: str, keyword: str) -> Answer:
        """Messages to or from a user that contain the keyword, in any case."""
        if user_name not in USER_IDS:
            return refuse("User does not exist")
        user = USER_IDS[user_name]
        found = [
            {"id": number, **{name: item[name] for name in ("sender_id", "receiver_id", "message")}}
            for number, item in self.inbox.items()
            if user in (item["sender_id"], item["receiver_id"]) and keyword.lower() in item["message"].lower()
        ]
        return accept(messages=found) if found else refuse("No messages found containing the keyword")

    def get_latest_message_id(self) -> Answer:
        """The number of the newest message; KeyError if one bears no time."""
        return self._extreme("latest", max)

    def get_earliest_message_id(self) -> Answer:
        """The number of the oldest message; KeyError if one bears no time."""
        return self._extreme("earliest", min)

    def _extreme(self, which: str, choose: Callable[[Iterable[tuple[str, int]]], tuple[str, int]]) -> Answer:
        if not self.logged_in:
            return refuse(f"Device not logged in, unable to retrieve the {which} sent message ID.")
        if not self.inbox:
            return refuse("No message records found")
        # No two messages bear the same day, so the number never decides.
        _, number = choose([(item["time"], number) for number, item in self.inbox.items()])
        return accept(message=f"The {which} message ID is {number}", message_id=number)
