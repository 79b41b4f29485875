"""Transfer: accounts hold amounts, which are paid from one to another."""

import random
from typing import Any

from envsched.environments.synthetic import words
from envsched.environments.synthetic.draft import Draft
from envsched.environments.synthetic.family import Entities, Family, Rule, World, rules, tool


class Bank(World):
    """A bank whose clients hold one account each and pay each other."""

    accounts: dict[str, int]
    activations: dict[str, bool]
    approvals: dict[str, int]
    heirs: dict[str, str]
    blocks: dict[str, bool]

    @tool("read", "balance", "funds", "total", "savings")
    def balance(self, owner: str) -> str:
        """Say how much an owner has."""
        if not self._knows(self.accounts, owner):
            return "error: no such owner"
        return str(self.accounts[owner])

    @tool("update", "transfer", "pay", "wire", "give")
    def transfer(self, owner: str, payee: str, amount: int) -> str:
        """Pay an amount from one owner to another."""
        if not self._knows(self.accounts, owner, payee) or owner == payee:
            return "error: no such owner"
        if not self._positive(amount) or amount > self.accounts[owner]:
            return "error: wrong amount"
        if rules.opening and not self.activations[owner]:
            return "error: not active"
        if rules.approval and self.approvals[owner] != amount:
            return "error: not approved"
        if rules.approval:
            self.approvals[owner] = 0
        self.accounts[owner] -= amount
        self.accounts[payee] += amount
        return "ok"

    @tool("update", "activate", "start", "open", "enable", noun="owner", rule="opening")
    def activate(self, owner: str) -> str:
        """Activate an owner's account, so that money can leave it."""
        if not self._knows(self.activations, owner):
            return "error: no such owner"
        if self.activations[owner]:
            return "error: done before"
        self.activations[owner] = True
        return "ok"

    @tool("update", "approve", "allow", "confirm", "permit", noun="amount", rule="approval")
    def approve(self, owner: str, amount: int) -> str:
        """Approve that exactly this amount leaves an owner's account next."""
        if not self._knows(self.approvals, owner):
            return "error: no such owner"
        if not self._positive(amount) or amount > self.accounts[owner]:
            return "error: wrong amount"
        self.approvals[owner] = amount
        return "ok"

    @tool("search", "heir", "child", "partner", "friend")
    def heir(self, owner: str) -> str:
        """Say who an owner's heir is."""
        if not self._knows(self.heirs, owner):
            return "error: no such owner"
        return self.heirs[owner]

    @tool("update", "deposit", "add", "save", "put", noun="amount")
    def deposit(self, owner: str, amount: int) -> str:
        """Add an amount to an owner's account."""
        if not self._knows(self.accounts, owner):
            return "error: no such owner"
        if not self._positive(amount):
            return "error: wrong amount"
        self.accounts[owner] += amount
        return "ok"

    @tool("update", "freeze", "block", "stop", "lock", noun="owner", optional=True)
    def freeze(self, owner: str) -> str:
        """Freeze an owner's account."""
        if not self._knows(self.blocks, owner):
            return "error: no such owner"
        if self.blocks[owner]:
            return "error: done before"
        self.blocks[owner] = True
        return "ok"

    @tool("delete", "cash", "withdraw", "take", "draw", noun="amount", optional=True)
    def withdraw(self, owner: str, amount: int) -> str:
        """Pay out an amount to an owner."""
        if not self._knows(self.accounts, owner):
            return "error: no such owner"
        if not self._positive(amount) or amount > self.accounts[owner]:
            return "error: wrong amount"
        self.accounts[owner] -= amount
        return "ok"


def start(entities: Entities, rng: random.Random) -> dict[str, Any]:
    owners = entities["owner"]
    ring = rng.sample(owners, len(owners))
    return {
        "accounts": dict(zip(owners, rng.sample(entities["balance"], len(owners)), strict=True)),
        "activations": dict.fromkeys(owners, False),
        "approvals": dict.fromkeys(owners, 0),
        "heirs": dict(zip(ring, ring[1:] + ring[:1], strict=True)),
        "blocks": dict.fromkeys(owners, False),
    }


def _transfer(task: Draft, owner: str, payee: str, amount: int) -> None:
    if task.rules["opening"]:
        task.call("activate", owner=owner)
    if task.rules["approval"]:
        task.call("approve", owner=owner, amount=amount)
    task.call("transfer", owner=owner, payee=payee, amount=amount)


def pay(task: Draft) -> None:
    owner, payee, amount = task.take("owner"), task.take("owner"), task.pick("amount")
    _transfer(task, owner, payee, amount)
    task.say(f"pay {amount} from {owner} to {payee}", f"let {owner} give {amount} to {payee}")


def pay_everything(task: Draft) -> None:
    owner, payee = task.take("owner"), task.take("owner")
    amount = int(task.call("balance", owner=owner))
    _transfer(task, owner, payee, amount)
    task.say(f"pay everything {owner} has to {payee}", f"let {owner} give all the money to {payee}")


def pay_heir(task: Draft) -> None:
    owner, amount = task.take("owner"), task.pick("amount")
    payee = task.call("heir", owner=owner)
    _transfer(task, owner, payee, amount)
    task.say(f"pay {amount} from {owner} to the heir of {owner}", f"let {owner} give {amount} to the heir")


def deposit(task: Draft) -> None:
    owner, amount = task.take("owner"), task.pick("amount")
    task.call("deposit", owner=owner, amount=amount)
    task.say(f"add {amount} to what {owner} has", f"put {amount} in the account of {owner}")


def deposit_alike(task: Draft) -> None:
    owner, other = task.take("owner"), task.take("owner")
    amount = int(task.call("balance", owner=other))
    task.call("deposit", owner=owner, amount=amount)
    task.say(
        f"add as much as {other} has to what {owner} has",
        f"put what {other} has in the account of {owner} too",
    )


def freeze(task: Draft) -> None:
    owner = task.take("owner")
    task.call("freeze", owner=owner)
    task.say(f"freeze the account of {owner}", f"let the account of {owner} be frozen")


def freeze_heir(task: Draft) -> None:
    owner = task.take("owner")
    task.call("freeze", owner=task.call("heir", owner=owner))
    task.say(
        f"freeze the account of the heir of {owner}", f"find the heir of {owner} and freeze that account"
    )


def withdraw(task: Draft) -> None:
    owner, amount = task.take("owner"), task.pick("amount")
    task.call("withdraw", owner=owner, amount=amount)
    task.say(f"pay out {amount} to {owner} in cash", f"give {owner} {amount} in cash")


FAMILY = Family(
    name="bank",
    template=Bank,
    entities={"owner": (words.PEOPLE, 8), "amount": (words.DIGITS, 9), "balance": (words.TENS, 9)},
    rules={
        "opening": Rule("An account must be activated before money is transferred from it."),
        "approval": Rule("A transfer must be approved first, with its amount."),
    },
    arguments={
        "owner": ("owner", "client", "payer", "person"),
        "payee": ("payee", "receiver", "target", "other"),
        "amount": ("amount", "sum", "value", "number"),
    },
    fields={
        "accounts": ("accounts", "balances"),
        "activations": ("activations", "openings"),
        "approvals": ("approvals", "permits"),
        "heirs": ("heirs", "partners"),
        "blocks": ("blocks", "freezes"),
    },
    start=start,
    subtasks=(pay, pay_everything, pay_heir, deposit, deposit_alike, freeze, freeze_heir, withdraw),
    sites=("harbor", "city", "river", "valley", "hill"),
)
