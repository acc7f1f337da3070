"""Frames between the supervisor and the zygote: a 4-byte big-endian length, then UTF-8 JSON.

The socket is held by the supervisor and the zygote alone; a job's process closes it before any
code of a candidate runs. Descriptors for a job come as SCM_RIGHTS with the first bytes of its frame.
"""

import json
import os
import socket
import struct

MAX_FRAME = 64 << 20
_MAX_FDS = 8
_HEADER = struct.Struct(">I")


class ProtocolError(Exception):
    """The supervisor sent something that is not a frame."""


class Connection:
    """One end of the socket. Reads into a buffer, so that it can be polled while a job runs."""

    def __init__(self, fd):
        self.fd = fd
        self._socket = socket.socket(fileno=fd)
        self._buffer = bytearray()
        self._fds = []
        self.closed = False

    def fill(self):
        """Reads what is there (blocks when there is nothing). Sets `closed` at the end."""
        data, fds, _, _ = socket.recv_fds(self._socket, 1 << 16, _MAX_FDS, socket.MSG_CMSG_CLOEXEC)
        self._fds += fds
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

    def take_fds(self, count):
        """The oldest `count` descriptors that came; ProtocolError when there are fewer."""
        if len(self._fds) < count:
            raise ProtocolError(f"{len(self._fds)} descriptors, expected {count}")
        taken = self._fds[:count]
        del self._fds[:count]
        return taken

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
