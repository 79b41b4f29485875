"""An airline: customers, flights, reservations.

Some answers are Python's own: booking an unknown flight, or with a wrong password, fails with an exception in
the benchmark too, and an agent reads its text.
"""

from collections.abc import Mapping
from typing import Any

USERS = {
    "user1": ("Eve", "password123", 2000.0, 50000.0, "regular"),
    "user2": ("Frank", "password456", 8000.0, 8000.0, "silver"),
    "user3": ("Grace", "password789", 1000.0, 5000.0, "gold"),
}
USER_FIELDS = ("user_name", "password", "cash_balance", "bank_balance", "membership_level")
# fmt: off
FLIGHTS = (
    ("CA1234", "Beijing", "Shanghai", "2024-07-15 08:00:00", "2024-07-15 10:30:00", 5, 1200, 3000),
    ("MU5678", "Shanghai", "Beijing", "2024-07-16 09:00:00", "2024-07-16 11:30:00", 3, 1900, 3000),
    ("CZ4321", "Shanghai", "Beijing", "2024-07-16 20:00:00", "2024-07-16 22:00:00", 8, 2500, 4000),
    ("CZ4352", "Shanghai", "Beijing", "2024-07-17 20:00:00", "2024-07-17 22:00:00", 8, 1600, 2500),
    ("MU3561", "Beijing", "Nanjing", "2024-07-18 08:00:00", "2024-07-18 10:00:00", 8, 1500, 4000),
    ("MU1566", "Beijing", "Nanjing", "2024-07-18 20:00:00", "2024-07-18 22:00:00", 8, 1500, 4000),
    ("CZ1765", "Nanjing", "Shenzhen", "2024-07-17 20:30:00", "2024-07-17 22:00:00", 8, 1500, 2500),
    ("CZ1765", "Nanjing", "Shenzhen", "2024-07-18 12:30:00", "2024-07-18 15:00:00", 8, 1500, 2500),
    ("MH1765", "Xiamen", "Chengdu", "2024-07-17 12:30:00", "2024-07-17 15:00:00", 8, 1500, 2500),
    ("MH2616", "Chengdu", "Xiamen", "2024-07-18 18:30:00", "2024-07-18 21:00:00", 8, 1500, 2500),
    ("MH2616", "Chengdu", "Fuzhou", "2024-07-16 18:30:00", "2024-07-16 21:00:00", 8, 1500, 2500),
)
# fmt: on
"""All of them have the status `available`."""
FLIGHT_FIELDS = (
    "flight_no",
    "origin",
    "destination",
    "depart_time",
    "arrival_time",
    "status",
    "seats_available",
    "economy_price",
    "business_price",
)
RESERVATIONS = (
    ("res_1", "user1", "CA1234", "bank", "Economy Class", 1, "Beijing", "Shanghai"),
    ("res_2", "user1", "MU5678", "bank", "Business Class", 1, "Shanghai", "Beijing"),
    ("res_3", "user2", "MH1765", "bank", "Business Class", 1, "Xiamen", "Chengdu"),
    ("res_4", "user2", "MU2616", "bank", "Business Class", 1, "Chengdu", "Xiamen"),
)
RESERVATION_FIELDS = (
    "reservation_id",
    "user_id",
    "flight_no",
    "payment_method",
    "cabin",
    "baggage",
    "origin",
    "destination",
)
FREE_BAGS = {
    "regular": {"Economy Class": 1, "Business Class": 2},
    "silver": {"Economy Class": 2, "Business Class": 3},
    "gold": {"Economy Class": 3, "Business Class": 3},
}
"""By membership and cabin."""
BAG_FEE = 50
NOT_KNOWN = {"status": "error", "message": "Incorrect username or password."}


class Travel:
    """Bookings are paid in cash or from the bank at once; refunds are in cash."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.users: dict[str, dict[str, Any]] = {
            name: dict(zip(USER_FIELDS, row, strict=True)) for name, row in USERS.items()
        }
        self.flights: list[dict[str, Any]] = [
            dict(zip(FLIGHT_FIELDS, (*row[:5], "available", *row[5:]), strict=True)) for row in FLIGHTS
        ]
        self.reservations: list[dict[str, Any]] = [
            dict(zip(RESERVATION_FIELDS, row, strict=True)) for row in RESERVATIONS
        ]

    def get_flight_details(
        self, origin: str | None = None, destination: str | None = None
    ) -> list[dict[str, Any]] | str:
        """Flights from and to the places that are named."""
        found = [
            flight
            for flight in self.flights
            if (not origin or flight["origin"] == origin)
            and (not destination or flight["destination"] == destination)
        ]
        return found or "There are no direct flights that meet the criteria."

    def get_user_details(self, user_id: str, password: str) -> dict[str, Any]:
        """Everything about a user but the password."""
        user = self._authenticated(user_id, password)
        return {name: value for name, value in user.items() if name != "password"}

    def get_reservation_details(
        self, reservation_id: str | None = None, user_id: str | None = None
    ) -> list[dict[str, Any]] | dict[str, Any]:
        """The reservations of this id, or else of this user, each with its flight."""
        if not (reservation_id or user_id):
            return {"status": "error", "message": "Please provide a valid reservation ID or user ID"}
        name, wanted = ("reservation_id", reservation_id) if reservation_id else ("user_id", user_id)
        return [
            {**item, "flight_info": self._flight(item["flight_no"])}
            for item in self.reservations
            if item[name] == wanted
        ]

    def find_transfer_flights(
        self, origin_city: str, transfer_city: str, destination_city: str
    ) -> list[dict[str, Any]] | str:
        """Pairs of flights that meet in the transfer city, the first landing before the second leaves."""
        found = [
            {"first_leg": first, "second_leg": second}
            for first in self.flights
            if first["origin"] == origin_city and first["destination"] == transfer_city
            for second in self.flights
            if second["origin"] == transfer_city and second["destination"] == destination_city
            if first["arrival_time"] < second["depart_time"]
        ]
        return found or "No connecting flights that meet the criteria were found."

    def reserve_flight(
        self,
        user_id: str,
        password: str,
        flight_no: str,
        cabin: str,
        payment_method: str,
        baggage_count: int,
    ) -> str:
        """Book a seat, which costs more with each bag above the free ones."""
        user = self._authenticated(user_id, password)
        flight: Any = self._flight(flight_no)
        price = _price(flight, cabin)
        bags = max(baggage_count - FREE_BAGS[user["membership_level"]][cabin], 0)
        total = price + bags * BAG_FEE
        if payment_method not in ("cash", "bank"):
            return "Invalid payment method"
        if not _pay(user, payment_method, total):
            found = f"Your {payment_method} balance is insufficient."
            return f"{found} Please consider using another payment method."
        flight["seats_available"] -= 1
        reservation_id = f"res_{len(self.reservations) + 1}"
        booked = (reservation_id, user_id, flight_no, payment_method, cabin, baggage_count)
        # As in the benchmark, only the reservations it starts with name their places.
        self.reservations.append(dict(zip(RESERVATION_FIELDS, booked, strict=False)))
        return (
            f"Booking successful. Reservation ID: {reservation_id}. "
            f"Total cost: {total} yuan (including baggage fees)."
        )

    def modify_flight(
        self,
        user_id: str,
        reservation_id: str,
        new_flight_no: str | None = None,
        new_cabin: str | None = None,
        add_baggage: int = 0,
        new_payment_method: str | None = None,
    ) -> str:
        """Change flight, cabin, bags, in this order. What cannot be paid is changed all the same."""
        reservation = self._reservation(user_id, reservation_id)
        if reservation is None:
            return "Reservation not found or user ID does not match."
        flight = self._flight(reservation["flight_no"])
        if flight is None:
            return "Flight information not found."
        user = self.users[user_id]
        method = new_payment_method or reservation["payment_method"]
        messages = []
        if new_flight_no and new_flight_no != reservation["flight_no"]:
            other = self._flight(new_flight_no)
            if other is None or any(other[end] != flight[end] for end in ("origin", "destination")):
                return "Flight change failed: Invalid new flight number or destination does not match."
            reservation["flight_no"] = new_flight_no
            messages.append("Flight number has been changed.")
        if new_cabin and new_cabin != reservation["cabin"]:
            prices = {name: _price(flight, name) for name in ("Economy Class", "Business Class")}
            difference = prices.get(new_cabin, 0) - prices.get(reservation["cabin"], 0)
            reservation["cabin"] = new_cabin
            paid = _pay(user, method, difference)
            if difference < 0:
                messages.append(f"Cabin change successful. Price difference refunded: {-difference}.")
            elif difference > 0 and paid:
                messages.append(f"Cabin change successful. Price difference paid: {difference}.")
            elif difference > 0:
                messages.append("Insufficient balance to pay the cabin price difference.")
        if add_baggage > 0:
            free = FREE_BAGS[user["membership_level"]].get(reservation["cabin"], 0)
            reservation["baggage"] += add_baggage
            fee = max(0, reservation["baggage"] - free) * BAG_FEE
            if fee > 0 and _pay(user, method, fee):
                messages.append(f"Baggage has been added. Additional fee to be paid: {fee}.")
            elif fee > 0:
                messages.append("Insufficient balance to pay the additional baggage fees.")
        return " ".join(messages) or "Modification completed with no additional fees."

    def cancel_reservation(self, user_id: str, reservation_id: str, reason: str) -> str:
        """Refund a reservation, which stays listed.

        Every flight leaves more than a day after the benchmark's clock, 2024-07-14 06:00: none costs a fee.
        """
        user = self.users.get(user_id)
        if user is None:
            return "Invalid user ID."
        reservation = self._reservation(user_id, reservation_id)
        if reservation is None:
            return "Invalid reservation ID or it does not belong to the user."
        flight = self._flight(reservation["flight_no"])
        if flight is None:
            return "Invalid flight information."
        refund = _price(flight, reservation["cabin"])
        user["cash_balance"] += refund
        if reason == "The airline has canceled the flight.":
            return (
                "The flight has been canceled. Your reservation will be canceled free of charge, and "
                f"{refund} yuan has been refunded."
            )
        return (
            "More than 24 hours before departure. Free cancellation successful, "
            f"{refund} yuan has been refunded."
        )

    def _authenticated(self, user_id: str, password: str) -> dict[str, Any]:
        """The user, or the benchmark's word that there is none."""
        user = self.users.get(user_id)
        return user if user is not None and user["password"] == password else NOT_KNOWN

    def _flight(self, flight_no: str) -> dict[str, Any] | None:
        return next((flight for flight in self.flights if flight["flight_no"] == flight_no), None)

    def _reservation(self, user_id: str, reservation_id: str) -> dict[str, Any] | None:
        mine = (item for item in self.reservations if item["user_id"] == user_id)
        return next((item for item in mine if item["reservation_id"] == reservation_id), None)


def _price(flight: Mapping[str, Any], cabin: str) -> Any:
    """The price of a seat; any other cabin costs what business class does."""
    return flight["economy_price"] if cabin == "Economy Class" else flight["business_price"]


def _pay(user: dict[str, Any], method: str, amount: float) -> bool:
    """Whether the user had `amount`, negative for a refund. Other ways to pay than the two cost nothing."""
    if method not in ("cash", "bank"):
        return True
    if user[f"{method}_balance"] - amount < 0:
        return False
    user[f"{method}_balance"] -= amount
    return True
