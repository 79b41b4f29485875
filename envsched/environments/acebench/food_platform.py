"""Food delivery: users with a balance, and merchants with a menu."""

from collections.abc import Mapping, Sequence
from typing import Any

from envsched.environments.acebench.base_api import Answer, BaseApi, accept, refuse

USERS = (
    ("Eve", "U100", "password123", 500.0),
    ("Frank", "U101", "password456", 300.0),
    ("Grace", "U102", "password789", 150.0),
    ("Helen", "U103", "password321", 800.0),
    ("Isaac", "U104", "password654", 400.0),
    ("Jack", "U105", "password654", 120.0),
)
"""Name, id, password and balance."""
MENUS: dict[str, tuple[tuple[str, float], ...]] = {
    "Domino's": (("Margherita Pizza", 68.0), ("Super Supreme Pizza", 88.0)),
    "Rice Village Bibimbap": (("Stone Pot Bibimbap", 35.0), ("Korean Beef Bibimbap", 45.0)),
    "Haidilao": (("Beef Rolls", 68.0), ("Seafood Platter", 88.0)),
    "Heytea": (("Cheese Milk Tea", 25.0), ("Four Seasons Spring Milk Tea", 22.0)),
    "Hema Fresh": (("Organic Vegetable Pack", 15.0), ("Fresh Gift Pack", 99.0)),
    "Jiutian BBQ": (("Korean Grilled Beef", 128.0), ("Grilled Pork Belly", 78.0)),
}
"""Products and prices, by merchant."""


class FoodPlatform(BaseApi):
    """Orders are paid from the user's balance at once."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.users: dict[str, dict[str, Any]] = {
            name: {"user_id": user_id, "password": password, "balance": balance}
            for name, user_id, password, balance in USERS
        }
        self.logged_in_users: list[str] = list(config.get("logged_in_users", ()))
        self.orders: list[dict[str, Any]] = []

    def login_food_platform(self, username: str, password: str) -> Answer:
        """Log a user in."""
        if not self.wifi:
            return refuse("Wi-Fi is not enabled, unable to login")
        if username not in self.users:
            return refuse("User does not exist")
        if self.users[username]["password"] != password:
            return refuse("Incorrect password")
        if username in self.logged_in_users:
            return refuse(f"{username} is already logged in")
        self.logged_in_users.append(username)
        return accept(message=f"User {username} has successfully logged in!")

    def check_balance(self, user_name: str) -> float:
        """A user's balance; 0 for nobody."""
        return float(self.users[user_name]["balance"]) if user_name in self.users else 0.0

    def add_food_delivery_order(
        self, username: str, merchant_name: str, items: Sequence[Mapping[str, Any]]
    ) -> Answer:
        """Place an order of `items`, each with a `product` and perhaps a `quantity`."""
        if username not in self.logged_in_users:
            return refuse(f"User {username} is not logged in to the food platform")
        if merchant_name not in MENUS:
            return refuse("Merchant does not exist")
        total = 0.0
        lines = []
        for item in items:
            product, quantity = item.get("product"), item.get("quantity", 1)
            if not isinstance(quantity, int) or quantity <= 0:
                return refuse(f"Invalid quantity {quantity} for product {product}")
            price = next((price for name, price in MENUS[merchant_name] if name == product), None)
            if price is None:
                return refuse(f"Product {product} does not exist in {merchant_name}'s menu")
            total += price * quantity
            lines.append({"product": product, "quantity": quantity, "price_per_unit": price})
        if total > self.users[username]["balance"]:
            return refuse("Insufficient balance to place the order")
        self.users[username]["balance"] -= total
        self.orders.append(
            {"user_name": username, "merchant_name": merchant_name, "items": lines, "total_price": total}
        )
        message = f"Food delivery order successfully placed with {merchant_name}. Total amount: {total} yuan"
        return accept(message=message)

    def get_products(self, merchant_name: str) -> list[dict[str, Any]] | Answer:
        """A merchant's menu."""
        if merchant_name not in MENUS:
            return refuse(f"Merchant '{merchant_name}' does not exist")
        return [{"product": name, "price": price} for name, price in MENUS[merchant_name]]
