"""Buy: products have prices that have to be looked up, and are sold to buyers or repriced."""

import random
from typing import Any

from envsched.environments.synthetic import words
from envsched.environments.synthetic.draft import Draft
from envsched.environments.synthetic.family import Entities, Family, Rule, World, rules, tool


class Shop(World):
    """A shop that sells products to buyers at their prices."""

    prices: dict[str, int]
    sales: dict[str, str]
    wishes: dict[str, str]
    cards: dict[str, bool]
    carts: dict[str, str]
    stocks: dict[str, int]

    @tool("read", "price", "cost", "value", "worth")
    def price(self, product: str) -> str:
        """Say the price of a product."""
        if not self._knows(self.prices, product):
            return "error: no such product"
        return str(self.prices[product])

    @tool("search", "wish", "want", "need", "choice")
    def wish(self, buyer: str) -> str:
        """Say which product a buyer wants."""
        if not self._knows(self.wishes, buyer):
            return "error: no such buyer"
        return self.wishes[buyer]

    @tool("create", "sell", "buy", "trade", "purchase", noun="product")
    def sell(self, buyer: str, product: str, amount: int) -> str:
        """Sell a product to a buyer for an amount, which must be its price."""
        if not self._knows(self.wishes, buyer):
            return "error: no such buyer"
        if not self._knows(self.prices, product):
            return "error: no such product"
        if not self._positive(amount) or self.prices[product] != amount:
            return "error: wrong amount"
        if rules.card and not self.cards[buyer]:
            return "error: no card"
        if rules.cart and self.carts.get(buyer) != product:
            return "error: not reserved"
        self.sales[buyer] = product
        return "ok"

    @tool("create", "enroll", "register", "join", "card", noun="buyer", rule="card")
    def enroll(self, buyer: str) -> str:
        """Give a buyer a card, so that products can be sold to them."""
        if not self._knows(self.cards, buyer):
            return "error: no such buyer"
        if self.cards[buyer]:
            return "error: done before"
        self.cards[buyer] = True
        return "ok"

    @tool("create", "reserve", "hold", "keep", "basket", noun="product", rule="cart")
    def reserve(self, buyer: str, product: str) -> str:
        """Reserve a product for a buyer, so that it can be sold."""
        if not self._knows(self.wishes, buyer):
            return "error: no such buyer"
        if not self._knows(self.prices, product):
            return "error: no such product"
        self.carts[buyer] = product
        return "ok"

    @tool("update", "reprice", "change", "set", "adjust", noun="product")
    def reprice(self, product: str, amount: int) -> str:
        """Give a product a new price."""
        if not self._knows(self.prices, product):
            return "error: no such product"
        if not self._positive(amount):
            return "error: wrong amount"
        self.prices[product] = amount
        return "ok"

    @tool("update", "stock", "order", "supply", "count", noun="product")
    def stock(self, product: str, amount: int) -> str:
        """Set how many of a product are in stock."""
        if not self._knows(self.stocks, product):
            return "error: no such product"
        if not self._positive(amount):
            return "error: wrong amount"
        self.stocks[product] = amount
        return "ok"

    @tool("delete", "remove", "drop", "delete", "cancel", noun="product", optional=True)
    def remove(self, product: str) -> str:
        """Stop selling a product."""
        if not self._knows(self.prices, product):
            return "error: no such product"
        del self.prices[product]
        return "ok"


def start(entities: Entities, rng: random.Random) -> dict[str, Any]:
    products, buyers = entities["product"], entities["buyer"]
    return {
        "prices": {product: rng.choice(entities["amount"]) for product in products},
        "sales": {},
        "wishes": {buyer: rng.choice(products) for buyer in buyers},
        "cards": dict.fromkeys(buyers, False),
        "carts": {},
        "stocks": dict.fromkeys(products, 0),
    }


def _sell(task: Draft, buyer: str, product: str, amount: int) -> None:
    if task.rules["card"]:
        task.call("enroll", buyer=buyer)
    if task.rules["cart"]:
        task.call("reserve", buyer=buyer, product=product)
    task.call("sell", buyer=buyer, product=product, amount=amount)


def sell(task: Draft) -> None:
    buyer, product = task.take("buyer"), task.take("product")
    amount = task.value("prices", product)
    _sell(task, buyer, product, amount)
    task.say(f"sell the {product} to {buyer} for {amount}", f"let {buyer} buy the {product} for {amount}")


def sell_at_price(task: Draft) -> None:
    buyer, product = task.take("buyer"), task.take("product")
    _sell(task, buyer, product, int(task.call("price", product=product)))
    task.say(f"sell the {product} to {buyer}", f"let {buyer} buy the {product} at its price")


def sell_wish(task: Draft) -> None:
    buyer = task.take("buyer")
    product = task.call("wish", buyer=buyer)
    _sell(task, buyer, product, int(task.call("price", product=product)))
    task.say(f"sell {buyer} what {buyer} wants", f"let {buyer} buy the wanted product")


def reprice(task: Draft) -> None:
    product, amount = task.take("product"), task.pick("amount")
    task.call("reprice", product=product, amount=amount)
    task.say(f"set the price of the {product} to {amount}", f"let the {product} cost {amount}")


def reprice_alike(task: Draft) -> None:
    product, other = task.take("product"), task.take("product")
    task.call("reprice", product=product, amount=int(task.call("price", product=other)))
    task.say(
        f"set the price of the {product} to that of the {other}",
        f"let the {product} cost as much as the {other}",
    )


def stock(task: Draft) -> None:
    product, amount = task.take("product"), task.pick("amount")
    task.call("stock", product=product, amount=amount)
    task.say(f"have {amount} of the {product} in stock", f"set the stock of the {product} to {amount}")


def remove(task: Draft) -> None:
    product = task.take("product")
    task.call("remove", product=product)
    task.say(f"stop selling the {product}", f"let the {product} not be sold any more")


def remove_wish(task: Draft) -> None:
    buyer = task.take("buyer")
    task.call("remove", product=task.call("wish", buyer=buyer))
    task.say(f"stop selling what {buyer} wants", f"the product {buyer} wants is not sold any more")


FAMILY = Family(
    name="shop",
    template=Shop,
    entities={"product": (words.FOODS, 8), "buyer": (words.PEOPLE, 7), "amount": (words.TENS, 8)},
    rules={
        "card": Rule("A buyer needs a card before a product is sold to them."),
        "cart": Rule("A product must be reserved for its buyer before it is sold."),
    },
    arguments={
        "product": ("product", "item", "goods", "food"),
        "buyer": ("buyer", "client", "person", "guest"),
        "amount": ("amount", "number", "sum", "money"),
    },
    fields={
        "prices": ("prices", "costs"),
        "sales": ("sales", "receipts"),
        "wishes": ("wishes", "interests"),
        "cards": ("cards", "accounts"),
        "carts": ("carts", "reservations"),
        "stocks": ("stocks", "stores"),
    },
    start=start,
    subtasks=(sell, sell_at_price, sell_wish, reprice, reprice_alike, stock, remove, remove_wish),
    sites=("market", "bridge", "river", "park", "square"),
)
