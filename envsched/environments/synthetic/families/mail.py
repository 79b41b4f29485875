"""Message: letters come in, and topics are sent on to people who may have to be looked up."""

import random
from typing import Any

from envsched.environments.synthetic import words
from envsched.environments.synthetic.draft import Draft
from envsched.environments.synthetic.family import Entities, Family, Rule, World, rules, tool


class Mail(World):
    """A mailbox with letters from people, and messages to them."""

    inbox: dict[str, str]
    outbox: dict[str, str]
    bosses: dict[str, str]
    contacts: dict[str, bool]
    drafts: dict[str, str]
    folders: dict[str, str]
    topics: list[str]
    labels: list[str]

    @tool("read", "read", "view", "show", "topic")
    def read(self, sender: str) -> str:
        """Say what a sender's letter is about."""
        if not self._knows(self.inbox, sender):
            return "error: no such letter"
        return self.inbox[sender]

    @tool("search", "boss", "chief", "leader", "manager")
    def boss(self, person: str) -> str:
        """Say who a person's boss is."""
        if not self._knows(self.bosses, person):
            return "error: no such person"
        return self.bosses[person]

    @tool("communicate", "send", "write", "mail", "tell", noun="topic")
    def send(self, person: str, topic: str) -> str:
        """Send a person a message on a topic."""
        if not self._knows(self.bosses, person):
            return "error: no such person"
        if not self._knows(self.topics, topic):
            return "error: no such topic"
        if rules.contact and not self.contacts[person]:
            return "error: no contact"
        if rules.drafting and self.drafts.get(person) != topic:
            return "error: no draft"
        self.outbox[person] = topic
        return "ok"

    @tool("create", "connect", "add", "contact", "meet", noun="person", rule="contact")
    def connect(self, person: str) -> str:
        """Make a person a contact, so that messages can be sent to them."""
        if not self._knows(self.contacts, person):
            return "error: no such person"
        if self.contacts[person]:
            return "error: done before"
        self.contacts[person] = True
        return "ok"

    @tool("create", "draft", "compose", "prepare", "type", noun="topic", rule="drafting")
    def draft(self, person: str, topic: str) -> str:
        """Prepare a message to a person on a topic, so that it can be sent."""
        if not self._knows(self.bosses, person):
            return "error: no such person"
        if not self._knows(self.topics, topic):
            return "error: no such topic"
        self.drafts[person] = topic
        return "ok"

    @tool("update", "label", "flag", "mark", "tag", noun="sender")
    def label(self, sender: str, color: str) -> str:
        """Give a sender's letter a label of a color."""
        if not self._knows(self.inbox, sender):
            return "error: no such letter"
        if not self._knows(self.labels, color):
            return "error: no such color"
        self.folders[sender] = color
        return "ok"

    @tool("read", "color", "shade", "hue", "look", optional=True)
    def color(self, sender: str) -> str:
        """Say the color of the label of a sender's letter."""
        if not self._knows(self.folders, sender):
            return "error: no label"
        return self.folders[sender]

    @tool("delete", "delete", "erase", "remove", "drop", noun="sender")
    def delete(self, sender: str, topic: str) -> str:
        """Delete a sender's letter on a topic."""
        if not self._knows(self.inbox, sender) or self.inbox[sender] != topic:
            return "error: no such letter"
        del self.inbox[sender]
        return "ok"


def start(entities: Entities, rng: random.Random) -> dict[str, Any]:
    people = entities["person"]
    ring = rng.sample(people, len(people))
    return {
        "inbox": {person: rng.choice(entities["topic"]) for person in people},
        "outbox": {},
        "bosses": dict(zip(ring, ring[1:] + ring[:1], strict=True)),
        "contacts": dict.fromkeys(people, False),
        "drafts": {},
        "folders": {person: rng.choice(entities["color"]) for person in people},
        "topics": entities["topic"],
        "labels": entities["color"],
    }


def _send(task: Draft, person: str, topic: str) -> None:
    if task.rules["contact"] and not task.value("contacts", person):
        task.call("connect", person=person)
    if task.rules["drafting"]:
        task.call("draft", person=person, topic=topic)
    task.call("send", person=person, topic=topic)


def send(task: Draft) -> None:
    person, topic = task.take("person"), task.pick("topic")
    _send(task, person, topic)
    task.say(f"send {person} a message on {topic}", f"write to {person} about {topic}")


def send_on(task: Draft) -> None:
    person, sender = task.take("person"), task.take("person")
    topic = task.call("read", sender=sender)
    _send(task, person, topic)
    task.say(f"send {person} what {sender} wrote about", f"tell {person} the topic of {sender}")


def send_boss(task: Draft) -> None:
    worker, topic = task.take("person"), task.pick("topic")
    person = task.call("boss", person=worker)
    _send(task, person, topic)
    task.say(
        f"send the boss of {worker} a message on {topic}", f"write to the boss of {worker} about {topic}"
    )


def report(task: Draft) -> None:
    sender = task.take("person")
    topic = task.call("read", sender=sender)
    person = task.call("boss", person=sender)
    _send(task, person, topic)
    task.say(
        f"send the boss of {sender} what {sender} wrote about", f"report the topic of {sender} to the boss"
    )


def label(task: Draft) -> None:
    sender, color = task.take("person"), task.pick("color")
    task.call("label", sender=sender, color=color)
    task.say(f"give the letter of {sender} a {color} label", f"label the letter from {sender} {color}")


def label_alike(task: Draft) -> None:
    sender, other = task.take("person"), task.take("person")
    color = task.call("color", sender=other)
    task.call("label", sender=sender, color=color)
    task.say(f"label the letter of {sender} as that of {other}", f"give {sender} the same label as {other}")


def delete(task: Draft) -> None:
    sender = task.take("person")
    topic = task.value("inbox", sender)
    task.call("delete", sender=sender, topic=topic)
    task.say(f"delete the {topic} letter of {sender}", f"get rid of the letter from {sender} on {topic}")


def read_and_delete(task: Draft) -> None:
    sender = task.take("person")
    topic = task.call("read", sender=sender)
    task.call("delete", sender=sender, topic=topic)
    task.say(f"read the letter of {sender} and delete it", f"get rid of whatever {sender} wrote")


FAMILY = Family(
    name="mail",
    template=Mail,
    entities={"person": (words.PEOPLE, 9), "topic": (words.TOPICS, 7), "color": (words.COLORS, 5)},
    rules={
        "contact": Rule("A person must be a contact before a message is sent to them."),
        "drafting": Rule("A message must be prepared before it is sent."),
    },
    arguments={
        "sender": ("sender", "author", "writer", "source"),
        "person": ("person", "reader", "receiver", "friend"),
        "topic": ("topic", "subject", "title", "text"),
        "color": ("color", "shade", "hue", "paint"),
    },
    fields={
        "inbox": ("inbox", "letters"),
        "outbox": ("outbox", "messages"),
        "bosses": ("bosses", "chiefs"),
        "contacts": ("contacts", "friends"),
        "drafts": ("drafts", "prepared"),
        "folders": ("folders", "flags"),
        "topics": ("topics", "subjects"),
        "labels": ("labels", "colors"),
    },
    start=start,
    subtasks=(send, send_on, send_boss, report, label, label_alike, delete, read_and_delete),
    sites=("office", "palace", "club", "press", "station"),
)
