"""Task after task in the process of a reference host: a GPU context takes a quarter of a second to make, and a GPU makes
only a few of them a second."""

import gc
import json
import os

import torch

from channel import Control, SupervisorGone, for_json
from torch_state import TorchState


class Tasks:
    """`run_one(job, serve)` runs an oracle's job as a host; it calls serve(host, result) once all is made, and gives the
    result."""

    def __init__(self, job, run_one):
        self._fds, self._folder = job["fds"], job.get("work_dir", "")
        self._run_one = run_one
        self._control = Control(self._fds["control"])
        self._state = TorchState()
        self._served = self._goes_on = False

    def run(self, job):
        """The result of the first task, returned when no more tasks come or at once when that one failed."""
        first = self._run(job)
        try:
            self._go_on()
        except (SupervisorGone, OSError):
            pass
        return first

    def _go_on(self):
        while self._served and self._goes_on:
            clean = self._state.restore()
            gc.collect()
            if torch.cuda.is_initialized():
                torch.cuda.empty_cache()
            self._control.send({"dropped": clean})
            order = self._control.receive()
            if "task" not in order:
                break
            text = os.pread(self._fds["result"], order["task"], 0)
            result = self._run({**json.loads(text), "fds": self._fds, "work_dir": self._folder})
            if not self._served:
                self._control.send({"failed": self._write(result)})
                self._served = self._goes_on = "drop" in self._control.receive()

    def _run(self, job):
        self._served = self._goes_on = False
        return self._run_one(job, self._serve)

    def _serve(self, host, result):
        self._control.send({"made": self._write(result)})
        self._served = True
        self._goes_on = host.serve(self._control)

    def _write(self, result):
        text = json.dumps(for_json(result), allow_nan=False).encode()
        if len(text) > os.fstat(self._fds["result"]).st_size:
            raise RuntimeError(f"the result of {len(text)} bytes does not fit into the memory for it")
        os.pwrite(self._fds["result"], text, 0)
        return len(text)
