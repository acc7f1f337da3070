"""The control channel: what a job says to the supervisor while it runs, and what it is told. Whole JSON messages."""

import json
import os

MAX_MESSAGE = 120 << 10  # the supervisor takes a little more


class SupervisorGone(Exception):
    """The other end is closed: nobody waits for this job any more."""


class MessageTooLong(Exception):
    """A description of values with thousands of parts."""


class Control:
    """One end of a socket that keeps messages apart (SOCK_SEQPACKET)."""

    def __init__(self, fd):
        self._fd = fd

    def send(self, message):
        data = json.dumps(message, allow_nan=False).encode()
        if len(data) > MAX_MESSAGE:
            raise MessageTooLong(f"a message of {len(data)} bytes, at most {MAX_MESSAGE} are taken")
        os.write(self._fd, data)

    def receive(self):
        data = os.read(self._fd, 2 * MAX_MESSAGE)
        if not data:
            raise SupervisorGone()
        return json.loads(data)

    def ask(self, message):
        self.send(message)
        return self.receive()
