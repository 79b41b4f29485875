"""A WebSocket in plain blocking calls: workers have neither threads nor an event loop."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

CHUNK = 1 << 16
DATA = (0, 1, 2)
"""Frames that carry a message: the first of one, text or binary, and its continuations."""


class Connection:
    """Sends a text, waits for a text. The time limit of a call is the worker's."""

    def __init__(self, url: str) -> None:
        """Connect and shake hands; OSError or ConnectionError where that fails."""
        from websockets.client import ClientProtocol
        from websockets.uri import parse_uri

        uri = parse_uri(url)
        if uri.secure:
            raise ConnectionError(f"{url}: found wss; expected ws, to a server of one's own")
        self._socket = socket.create_connection((uri.host, uri.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._protocol = ClientProtocol(uri, max_size=None)
        self._waiting: list[Any] = []
        self._protocol.send_request(self._protocol.connect())
        self._flush()
        self._next()
        if self._protocol.handshake_exc is not None:
            raise ConnectionError(f"{url}: {self._protocol.handshake_exc}")

    def ask(self, text: str) -> str:
        """The next message after sending `text`; ConnectionError where there is none."""
        self._protocol.send_text(text.encode())
        self._flush()
        parts: list[bytes] = []
        while True:
            frame = self._next()
            if frame.opcode in DATA:
                parts.append(bytes(frame.data))
                if frame.fin:
                    return b"".join(parts).decode()

    def close(self) -> None:
        """Say goodbye, without waiting for an answer."""
        with suppress(OSError, ConnectionError):
            self._protocol.send_close()
            self._flush()
        self._socket.close()

    def _next(self) -> Any:
        """The next event, of those received or still to come."""
        while not self._waiting:
            data = self._socket.recv(CHUNK)
            if not data:
                self._protocol.receive_eof()
                raise ConnectionError("the server closed the connection")
            self._protocol.receive_data(data)
            self._flush()
            self._waiting += self._protocol.events_received()
        return self._waiting.pop(0)

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._socket.sendall(data)
