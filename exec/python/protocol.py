"""Frames between the supervisor and the zygote: a 4-byte big-endian length, then UTF-8 JSON.

The socket is held by the supervisor and the zygote alone; a job's process closes it before any
code of a candidate runs.
"""

import json
import os
import struct

MAX_FRAME = 64 << 20
_HEADER = struct.Struct(">I")


class ProtocolError(Exception):
    """The supervisor sent something that is not a frame."""


class Connection:
    """One end of the socket. Reads into a buffer, so that it can be polled while a job runs."""

    def __init__(self, fd):
        self.fd = fd
        self._buffer = bytearray()
        self.closed = False

    def fill(self):
        """Reads what is there (blocks when there is nothing). Sets `closed` at the end."""
        data = os.read(self.fd, 1 << 16)
        if not data:
            self.closed = True
        self._buffer += data

    def next_frame(self):
        """The next whole frame in the buffer as an object, or None."""
        if len(self._buffer) < _HEADER.size:
            return None
        (length,) = _HEADER.unpack_from(self._buffer)
        if length > MAX_FRAME:
            raise ProtocolError(f"frame of {length} bytes")
        end = _HEADER.size + length
        if len(self._buffer) < end:
            return None
        payload = bytes(self._buffer[_HEADER.size : end])
        del self._buffer[:end]
        return json.loads(payload)

    def read(self):
        """Blocks for the next frame; None when the supervisor has gone."""
        while True:
            frame = self.next_frame()
            if frame is not None:
                return frame
            if self.closed:
                return None
            self.fill()

    def write(self, frame):
        payload = json.dumps(frame).encode()
        data = memoryview(_HEADER.pack(len(payload)) + payload)
        while data:
            data = data[os.write(self.fd, data) :]
