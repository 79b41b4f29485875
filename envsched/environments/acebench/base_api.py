"""The phone itself: what every app of it shares."""

from collections.abc import Mapping
from typing import Any

Answer = dict[str, Any]
"""What most tools return: a `status` and, after it, a `message` or what was asked for."""


def accept(**fields: Any) -> Answer:
    """An answer that a call succeeded, with `fields` in their order."""
    return {"status": True, **fields}


def refuse(message: str) -> Answer:
    """An answer that a call was refused, and why."""
    return {"status": False, "message": message}


class BaseApi:
    """Wi-Fi and login. Each app has its own instance of both; a call goes to all apps at once."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.wifi: bool = config.get("wifi", False)
        self.logged_in: bool = config.get("logged_in", True)

    def turn_on_wifi(self) -> Answer:
        """Turn Wi-Fi on."""
        self.wifi = True
        return accept(message="Wi-Fi has been turned on")

    def login_device(self) -> Answer:
        """Log in to the device."""
        self.logged_in = True
        return accept(message="Device has been logged in")
