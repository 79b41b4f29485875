"""Lend: books stand on shelves, are held by readers, and go from hand to hand."""

import random
from typing import Any

from envsched.environments.synthetic import words
from envsched.environments.synthetic.draft import Draft
from envsched.environments.synthetic.family import Entities, Family, Rule, World, rules, tool


class Library(World):
    """A library whose books are lent to readers and come back."""

    holders: dict[str, str]
    members: dict[str, bool]
    shelves: dict[str, str]
    notes: dict[str, str]
    wishes: dict[str, str]

    @tool("search", "holder", "keeper", "whose", "who")
    def holder(self, book: str) -> str:
        """Say who holds a book; nobody holds a book that is at home."""
        if not self._knows(self.holders, book):
            return "error: no such book"
        return self.holders[book]

    @tool("update", "lend", "loan", "hand", "issue", noun="book")
    def lend(self, book: str, reader: str) -> str:
        """Lend a book that is at home to a reader."""
        if not self._knows(self.holders, book):
            return "error: no such book"
        if not self._knows(self.members, reader):
            return "error: no such reader"
        if self.holders[book] != "nobody":
            return "error: not here"
        if rules.membership and not self.members[reader]:
            return "error: no member"
        if rules.reservation and self.notes.get(book) != reader:
            return "error: not reserved"
        self.holders[book] = reader
        return "ok"

    @tool("update", "retrieve", "accept", "collect", "back", noun="book")
    def accept(self, book: str, reader: str) -> str:
        """Take a book back from the reader who holds it."""
        if not self._knows(self.holders, book):
            return "error: no such book"
        if reader == "nobody" or self.holders[book] != reader:
            return "error: wrong reader"
        self.holders[book] = "nobody"
        return "ok"

    @tool("create", "enroll", "join", "admit", "register", noun="reader", rule="membership")
    def enroll(self, reader: str) -> str:
        """Make a reader a member, so that books can be lent to them."""
        if not self._knows(self.members, reader):
            return "error: no such reader"
        if self.members[reader]:
            return "error: done before"
        self.members[reader] = True
        return "ok"

    @tool("create", "reserve", "note", "hold", "keep", noun="book")
    def reserve(self, book: str, reader: str) -> str:
        """Reserve a book for a reader."""
        if not self._knows(self.holders, book):
            return "error: no such book"
        if not self._knows(self.members, reader):
            return "error: no such reader"
        self.notes[book] = reader
        return "ok"

    @tool("search", "wish", "want", "favorite", "choice")
    def wish(self, reader: str) -> str:
        """Say which book a reader wants."""
        if not self._knows(self.wishes, reader):
            return "error: no such reader"
        return self.wishes[reader]

    @tool("update", "shelve", "store", "file", "put", noun="book", optional=True)
    def shelve(self, book: str, shelf: str) -> str:
        """Give a book another shelf."""
        if not self._knows(self.shelves, book):
            return "error: no such book"
        if not self._knows(list(self.shelves.values()), shelf):
            return "error: no such shelf"
        self.shelves[book] = shelf
        return "ok"

    @tool("read", "shelf", "home", "where", "rack", optional=True)
    def shelf(self, book: str) -> str:
        """Say on which shelf a book belongs."""
        if not self._knows(self.shelves, book):
            return "error: no such book"
        return self.shelves[book]


def start(entities: Entities, rng: random.Random) -> dict[str, Any]:
    books, readers, shelves = entities["book"], entities["reader"], entities["shelf"]
    lent = rng.sample(books, len(books) // 2)
    return {
        "holders": {book: rng.choice(readers) if book in lent else "nobody" for book in books},
        "members": dict.fromkeys(readers, False),
        "shelves": {book: shelves[i % len(shelves)] for i, book in enumerate(rng.sample(books, len(books)))},
        "notes": {},
        "wishes": {reader: rng.choice([book for book in books if book not in lent]) for reader in readers},
    }


def _take_book(task: Draft, lent: bool) -> str:
    holders = task.field("holders")
    book: str = task.take("book", where=lambda book: (holders[book] != "nobody") == lent)
    return book


def _lend(task: Draft, book: str, reader: str) -> None:
    if task.rules["membership"] and not task.value("members", reader):
        task.call("enroll", reader=reader)
    if task.rules["reservation"]:
        task.call("reserve", book=book, reader=reader)
    task.call("lend", book=book, reader=reader)


def lend(task: Draft) -> None:
    book, reader = _take_book(task, lent=False), task.take("reader")
    _lend(task, book, reader)
    task.say(f"lend the {book} book to {reader}", f"let {reader} have the book on {book}")


def lend_wish(task: Draft) -> None:
    reader = task.take("reader")
    book = task.call("wish", reader=reader)
    _lend(task, book, reader)
    task.say(f"lend {reader} the book {reader} wants", f"let {reader} have the wanted book")


def lend_wish_of_other(task: Draft) -> None:
    reader, other = task.take("reader"), task.take("reader")
    book = task.call("wish", reader=other)
    _lend(task, book, reader)
    task.say(f"lend {reader} the book that {other} wants", f"let {reader} have what {other} wants")


def accept(task: Draft) -> None:
    book = _take_book(task, lent=True)
    reader = task.value("holders", book)
    task.call("accept", book=book, reader=reader)
    task.say(f"take the {book} book back from {reader}", f"{reader} brings the book on {book} back")


def find_and_accept(task: Draft) -> None:
    book = _take_book(task, lent=True)
    reader = task.call("holder", book=book)
    task.call("accept", book=book, reader=reader)
    task.say(f"get the {book} book back from whoever has it", f"take back the lent book on {book}")


def pass_on(task: Draft) -> None:
    book, reader = _take_book(task, lent=True), task.take("reader")
    holder = task.call("holder", book=book)
    if holder == reader:
        task.unfit("it is there")
    task.call("accept", book=book, reader=holder)
    _lend(task, book, reader)
    task.say(
        f"get the {book} book back from whoever has it and lend it to {reader}",
        f"take back the lent book on {book} and let {reader} have it",
    )


def reserve(task: Draft) -> None:
    book, reader = task.take("book"), task.pick("reader")
    task.call("reserve", book=book, reader=reader)
    task.say(f"reserve the {book} book for {reader}", f"keep the book on {book} for {reader}")


def shelve(task: Draft) -> None:
    book, shelf = task.take("book"), task.pick("shelf")
    task.call("shelve", book=book, shelf=shelf)
    task.say(f"put the {book} book on the {shelf} shelf", f"the book on {book} belongs on the {shelf} shelf")


def shelve_beside(task: Draft) -> None:
    book, other = task.take("book"), task.take("book")
    shelf = task.call("shelf", book=other)
    task.call("shelve", book=book, shelf=shelf)
    task.say(
        f"put the {book} book on the shelf of the {other} book", f"put {book} on the shelf where {other} is"
    )


FAMILY = Family(
    name="library",
    template=Library,
    entities={"book": (words.TOPICS, 9), "reader": (words.PEOPLE, 7), "shelf": (words.COLORS, 4)},
    rules={
        "membership": Rule("A reader must be a member before a book is lent to them."),
        "reservation": Rule("A book must be reserved for its reader before it is lent."),
    },
    arguments={
        "book": ("book", "title", "item", "volume"),
        "reader": ("reader", "member", "person", "guest"),
        "shelf": ("shelf", "row", "place", "rack"),
    },
    fields={
        "holders": ("holders", "loans"),
        "members": ("members", "readers"),
        "shelves": ("shelves", "racks"),
        "notes": ("notes", "reservations"),
        "wishes": ("wishes", "favorites"),
    },
    start=start,
    subtasks=(
        lend,
        lend_wish,
        lend_wish_of_other,
        accept,
        find_and_accept,
        pass_on,
        reserve,
        shelve,
        shelve_beside,
    ),
    sites=("school", "town", "castle", "village", "museum"),
)
