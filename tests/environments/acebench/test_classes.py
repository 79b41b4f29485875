"""The benchmark's worlds answer as they do there; expected answers were taken from it."""

from typing import Any

import pytest

from envsched.environments.acebench.food_platform import FoodPlatform
from envsched.environments.acebench.message_api import MessageApi
from envsched.environments.acebench.reminder_api import ReminderApi
from envsched.environments.acebench.travel import Travel

ONLINE = {"wifi": True, "logged_in": True}


def booking(**changes: Any) -> dict[str, Any]:
    right = {"user_id": "user1", "password": "password123", "flight_no": "MU3561", "cabin": "Economy Class"}
    return {**right, "payment_method": "cash", "baggage_count": 1, **changes}


def test_messages_fill_the_inbox() -> None:
    phone = MessageApi(ONLINE)
    full = "Inbox capacity is full. You need to ask the user which message to delete."
    assert phone.send_message("Eve", "Frank", "hi") == {"status": False, "message": full}
    assert phone.get_latest_message_id()["message_id"] == 4
    assert phone.get_earliest_message_id()["message"] == "The earliest message ID is 3"
    assert phone.delete_message(3)["status"]
    assert phone.send_message("Eve", "Frank", "hi")["status"]
    assert phone.inbox[7] == {"sender_id": "USR100", "receiver_id": "USR101", "message": "hi"}
    with pytest.raises(KeyError, match="time"):  # a message that was sent bears none
        phone.get_latest_message_id()


def test_messages_are_found() -> None:
    phone = MessageApi({"wifi": False, "logged_in": True})
    assert [found["id"] for found in phone.search_messages("Isaac", "CALL")["messages"]] == [5]
    assert [found["id"] for found in phone.view_messages_between_users("Eve", "Frank")["messages"]] == [1]
    assert phone.view_messages_between_users("Frank", "Eve")["message"] == "No related message records found"
    assert not phone.send_message("Eve", "Frank", "hi")["status"]
    phone.turn_on_wifi()
    assert phone.wifi


def test_reminders_are_at_most_six() -> None:
    phone = ReminderApi({"logged_in": False})
    assert not phone.view_reminder_by_title("To-do list")["status"]
    phone.login_device()
    assert phone.view_reminder_by_title("To-do list")["reminder"]["reminder_id"] == 1003
    answers = [phone.add_reminder("t", "d", "2024-06-11 16:00")["status"] for _ in range(4)]
    assert answers == [True, True, True, False]
    assert phone.reminder_list[6]["reminder_id"] == 6


def test_food_is_paid_from_the_balance() -> None:
    platform = FoodPlatform(ONLINE)
    pizza = [{"product": "Margherita Pizza"}]
    assert not platform.add_food_delivery_order("Jack", "Domino's", pizza)["status"]
    assert platform.login_food_platform("Jack", "password654")["status"]
    assert platform.login_food_platform("Jack", "password654")["message"] == "Jack is already logged in"
    ordered = platform.add_food_delivery_order("Jack", "Domino's", pizza)
    wanted = "Food delivery order successfully placed with Domino's. Total amount: 68.0 yuan"
    assert ordered == {"status": True, "message": wanted}
    assert platform.check_balance("Jack") == 52.0
    assert platform.check_balance("Nobody") == 0.0
    again = platform.add_food_delivery_order("Jack", "Domino's", pizza)
    assert again["message"] == "Insufficient balance to place the order"
    assert len(platform.orders) == 1
    zero = platform.add_food_delivery_order("Jack", "Domino's", [{**pizza[0], "quantity": 0}])
    assert zero["message"] == "Invalid quantity 0 for product Margherita Pizza"


def test_flights_are_found() -> None:
    airline = Travel({})
    assert len(airline.get_flight_details()) == 11
    assert airline.get_flight_details("Beijing", "Shenzhen") == (
        "There are no direct flights that meet the criteria."
    )
    [pair] = airline.find_transfer_flights("Beijing", "Nanjing", "Shenzhen")
    assert isinstance(pair, dict)
    assert (pair["first_leg"]["flight_no"], pair["second_leg"]["depart_time"]) == (
        "MU3561",
        "2024-07-18 12:30:00",
    )
    [mine] = airline.get_reservation_details(reservation_id="res_4")
    assert isinstance(mine, dict)
    assert mine["flight_info"] is None
    assert "password" not in airline.get_user_details("user1", "password123")
    assert airline.get_user_details("user1", "x")["status"] == "error"


def test_flights_are_booked() -> None:
    airline = Travel({})
    wanted = "Booking successful. Reservation ID: res_5. Total cost: 1600 yuan (including baggage fees)."
    assert airline.reserve_flight(**booking(baggage_count=3)) == wanted
    assert airline.users["user1"]["cash_balance"] == 400.0
    assert airline.reserve_flight(**booking()).startswith("Your cash balance is insufficient.")
    assert airline.reserve_flight(**booking(payment_method="card")) == "Invalid payment method"
    assert list(airline.reservations[-1]) == [
        "reservation_id",
        "user_id",
        "flight_no",
        "payment_method",
        "cabin",
        "baggage",
    ]


def test_a_wrong_booking_fails_as_in_the_benchmark() -> None:
    airline = Travel({})
    with pytest.raises(TypeError, match="'NoneType' object is not subscriptable"):
        airline.reserve_flight(**booking(flight_no="XX"))
    with pytest.raises(KeyError, match="membership_level"):
        airline.reserve_flight(**booking(password="x"))
    with pytest.raises(KeyError, match="First"):
        airline.reserve_flight(**booking(cabin="First"))
    assert len(airline.reservations) == 4


def test_bookings_are_modified() -> None:
    airline = Travel({})
    answer = airline.modify_flight("user1", "res_2", "CZ4352", "Economy Class", add_baggage=2)
    assert answer == (
        "Flight number has been changed. Cabin change successful. Price difference refunded: 1100. "
        "Baggage has been added. Additional fee to be paid: 100."
    )
    assert airline.users["user1"]["bank_balance"] == 51000.0
    paid = airline.modify_flight("user1", "res_2", None, "Business Class", 0, "cash")
    assert paid == "Cabin change successful. Price difference paid: 900."
    assert airline.reservations[1]["cabin"] == "Business Class"
    assert airline.modify_flight("user1", "res_2").startswith("Modification completed")
    assert airline.modify_flight("user2", "res_2").startswith("Reservation not found")
    assert airline.modify_flight("user2", "res_4") == "Flight information not found."
    assert airline.modify_flight("user1", "res_1", "CZ4321").startswith("Flight change failed")


def test_bookings_are_cancelled() -> None:
    airline = Travel({})
    answer = airline.cancel_reservation("user1", "res_1", "other")
    assert answer == (
        "More than 24 hours before departure. Free cancellation successful, 1200 yuan has been refunded."
    )
    assert airline.users["user1"]["cash_balance"] == 3200.0
    assert len(airline.reservations) == 4
    assert airline.cancel_reservation("user9", "res_1", "other") == "Invalid user ID."
    assert airline.cancel_reservation("user2", "res_4", "other") == "Invalid flight information."
