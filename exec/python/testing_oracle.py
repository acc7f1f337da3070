"""An oracle job in this process, for tests."""

import os

import testing

import oracle_worker
import testing_host


class Made:
    """An oracle job's result with the values it handed over."""

    def __init__(self, source, mode="robust", **fields):
        fds = {name: os.memfd_create(name) for name in ("visible", "hidden")}
        for fd in fds.values():
            os.ftruncate(fd, 64 << 20)
        job = testing_host.job(source, mode, fds=fds, **fields)
        try:
            self.result = oracle_worker.run_job(job)
            self.calls, self.inputs = [], []
            if self.result["outcome"] == "ok":
                hidden = testing.Reader(fds["hidden"])
                self.calls = [self._read(call, hidden) for call in self.result["calls"]]
                visible = testing.Reader(fds["visible"])
                self.inputs = [visible.get(node) for node in self.result["visible"]["inputs"]]
                self.state = visible.get(self.result["visible"]["state"])
        finally:
            for fd in fds.values():
                os.close(fd)

    @staticmethod
    def _read(call, hidden):
        read = {"trial": call["trial"], "output": hidden.get(call["output"])}
        if "precise" in call:
            precise = call["precise"]
            read.update(exact=hidden.get(precise["exact"]), slack=hidden.get(precise["slack"]))
            read.update(limits=precise["limits"], notes=precise["notes"])
        for name, node in call.get("probes", {}).items():
            read[name] = None if node is None else hidden.get(node)
        return read

    def share(self, call, got, leaf=0):
        """Largest error over its tolerance, as the supervisor reckons."""
        exact, slack = call["exact"][leaf].double(), call["slack"][leaf].double()
        absolute, relative = call["limits"][leaf]
        return float(((got.double() - exact).abs() / (absolute + relative * exact.abs() + slack)).max())


def only(made):
    assert made.result["outcome"] == "ok", made.result
    return made.calls[0]
