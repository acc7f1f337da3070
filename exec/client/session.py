"""The state of this process: its connection, the candidate's file, and what the executor said of its device.

There is one session in a process, as torch's dispatcher and Triton's driver are the process's too.
"""

import collections
import sys
import threading

from . import wire

MAX_FREED = 4096  # storages in one request


class Session:
    """Requests to the executor. `freed` may grow at any moment, by the garbage collector of any thread."""

    def __init__(self):
        self.connection = None
        self.path = ""  # of the candidate's file
        self.device = {"name": "cuda", "capability": [8, 9], "multiprocessors": 1, "total_bytes": 0}
        self.device.update(shared_bytes=0, compiles=False)
        self.freed = collections.deque()
        self.generators = {}  # address of a generator of torch's -> the executor's number
        self.capturing = False  # a CUDA graph
        self.refused = False  # at least one request was
        self._lock = threading.Lock()
        self._owner = None

    def call(self, message, parts=()):
        """The reply to a request. RuntimeError where the executor refuses it or fails, as torch would."""
        return self.call_with_payload(message, parts)[0]

    def call_with_payload(self, message, parts=()):
        """(reply, payload) of a request."""
        thread = threading.get_ident()
        if self._owner == thread:
            raise RuntimeError("an operator on the device inside of another one")  # of an object's __del__
        with self._lock:
            self._owner = thread
            try:
                if self.connection is None:
                    raise wire.ProtocolError("there is no executor")
                if self.freed:
                    message["free"] = self._take_freed()
                reply, payload = self.connection.exchange(message, parts)
            finally:
                self._owner = None
        if "refused" in reply:
            self.refused = True
            raise RuntimeError(f"refused: {reply['refused']}")
        if "error" in reply:
            raise RuntimeError(str(reply["error"]))
        return reply, payload

    def line(self):
        """The innermost line of the candidate's file on this thread's stack, 0 if there is none."""
        frame, path = sys._getframe(1), self.path
        while frame is not None:
            if frame.f_code.co_filename == path:
                return frame.f_lineno
            frame = frame.f_back
        return 0

    def _take_freed(self):
        return [self.freed.popleft() for _ in range(min(len(self.freed), MAX_FREED))]


SESSION = Session()
