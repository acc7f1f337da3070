"""The control channel: what a job says to the supervisor while it runs, and what it is told. Whole JSON messages."""

import json
import math
import os
import socket
import time

MAX_MESSAGE = 120 << 10  # the supervisor takes a little more


class SupervisorGone(Exception):
    """The other end is closed: nobody waits for this job any more."""


class MessageTooLong(Exception):
    """A description of values with thousands of parts."""


def for_json(value):
    """The same value with NaN and infinities as None and broken Unicode mended, as JSON wants it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {str(key): for_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [for_json(item) for item in value]
    return value


class Control:
    """One end of a socket that keeps messages apart (SOCK_SEQPACKET)."""

    def __init__(self, fd):
        self._fd = fd
        self.waited = 0.0  # seconds for which receive() had nothing to read

    def send(self, message, fds=()):
        """Descriptors go along in the same packet."""
        data = json.dumps(message, allow_nan=False).encode()
        if len(data) > MAX_MESSAGE:
            raise MessageTooLong(f"a message of {len(data)} bytes, at most {MAX_MESSAGE} are taken")
        if not fds:
            os.write(self._fd, data)
            return
        with socket.socket(fileno=os.dup(self._fd)) as line:
            socket.send_fds(line, [data], list(fds))

    def receive(self):
        start = time.monotonic()
        data = os.read(self._fd, 2 * MAX_MESSAGE)
        self.waited += time.monotonic() - start
        if not data:
            raise SupervisorGone()
        return json.loads(data)

    def ask(self, message):
        self.send(message)
        return self.receive()
