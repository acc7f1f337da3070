"""A session of a reference host as the tests of this folder need it."""

import testing  # first: it finds the others

import gpu_memory
import host_client
import layout

TRIALS = 3
MORE = 12
BATCH_NORM = "        self.norm = nn.BatchNorm1d(16)\n        self.line = nn.Linear(16, 16)\n"
COUNTER = "        self.register_buffer('n', torch.zeros(()))\n"


def job(source, mode="paper", **fields):
    return {
        "role": "oracle",
        "reference_source": source,
        "weights_seed": 1,
        "input_seeds": list(range(10, 10 + TRIALS)),
        "forward_seeds": list(range(20, 20 + TRIALS + MORE)),
        "variant_seeds": list(range(50, 50 + MORE)) if mode == "robust" else [],
        "calls": [0, *range(TRIALS)],
        "mode": mode,
        **fields,
    }


class Session:
    """A host with one open session, seen from both sides of its windows."""

    def __init__(self, source, mode="paper", **fields):
        device = fields.get("device", "interpreter")
        self._place = "cuda" if device == "cuda" else "cpu"
        self.host = host_client.HostProcess(job(source, mode, **fields))
        self.result = self.host.result
        if self.result["outcome"] != "ok":
            return
        self.number, *fds = self.host.open()
        sizes = self.result["in_bytes"], self.result["out_bytes"]
        self.windows = [gpu_memory.Window.open(fd, size, device) for fd, size in zip(fds, sizes)]
        self.inside, self.outside = (window.bytes for window in self.windows)
        self.reader, self.writer = layout.Reader(self.inside), layout.Writer(self.outside)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.host.finish()

    def order(self, name, **what):
        return self.host.order({name: {"session": self.number, **what}})

    def inputs(self, trial):
        return self.reader.get(self.result["visible"]["inputs"][trial], self._place)

    def compare(self, call, value):
        """Differences by leaf of a value handed over as the call's output."""
        self.writer.reset()
        return host_client.compare_output(self.host, self.number, call, self.writer.put(value))

    def right(self, call, value):
        found = self.compare(call, value)
        return found is not None and not any(difference["bad"] for difference in found)

    def probe(self, name, call=0, leaf=0):
        limits = host_client.tolerance(self.result["calls"][call], leaf)
        return self.host.order({"probe": {"name": name, "call": call, "leaf": leaf, **limits}})
