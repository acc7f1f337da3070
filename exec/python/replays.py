"""Times of a reference's call as the executor times a candidate's (exec/device/cuda/replay_timer.h).

One timed call is a CUDA graph: a flush of the L2 cache, an event, the call, an event. Where torch cannot capture the
call it is made directly, behind a wait of the GPU that hides the host's time.
"""

import statistics
import time

import torch

import layout
from failures import describe, is_device_full

WARM_UPS = 3
SPIN_MARGIN, LEAST_SPIN, MOST_SPIN = 1.5, 30e-6, 2e-3  # seconds
OPERATORS = 100


class Replays:
    """Of one model on one list of inputs. `clock` is a CudaClock. `mutates`: the call changes its inputs."""

    def __init__(self, model, clock, inputs, seed, mutates, graph=True):
        self._model, self._clock, self._seed = model, clock, seed
        self._inputs = layout.map_tensors(inputs, lambda tensor: tensor.clone()) if mutates else inputs
        self._base = inputs if mutates else []
        self._graph = None
        self.not_a_graph = "" if graph else "it was not asked for"
        enqueue = [clock.enqueue_seconds(self._prepare, self._call) for _ in range(WARM_UPS)]
        self._spin = min(MOST_SPIN, max(LEAST_SPIN, SPIN_MARGIN * statistics.median(enqueue)))
        if graph:
            try:
                self._capture()
            except Exception as error:
                if is_device_full(error):
                    raise
                self._graph = None
                self.not_a_graph = describe(error)[:400]
                torch.cuda.synchronize()

    def _call(self):
        with torch.no_grad():
            return self._model(*self._inputs)

    def _prepare(self):
        self._clock.seed(self._seed)
        for source, target in zip(layout.tensors(self._base), layout.tensors(self._inputs)):
            target.copy_(source)

    def _capture(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                self._call()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        events = [torch.cuda.Event(enable_timing=True, external=True) for _ in range(2)]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            self._clock.flush_cache()
            events[0].record()
            output = self._call()
            events[1].record()
        self._graph = graph, events, output  # the output keeps its memory

    def seconds(self, count):
        """Of each of so many timed calls."""
        return [self._replayed() if self._graph else self._queued() for _ in range(count)]

    def _replayed(self):
        graph, events, _ = self._graph
        self._prepare()
        torch.cuda.synchronize()
        graph.replay()
        torch.cuda.synchronize()
        return max(events[0].elapsed_time(events[1]) * 1e-3, 1e-7)

    def _queued(self):
        return self._clock.queued(self._prepare, self._call, self._spin)

    @staticmethod
    def operator_seconds():
        """What Python's host takes to queue an operator of torch, the best of a few rounds."""
        one = torch.ones(1, device="cuda" if torch.cuda.is_available() else "cpu")
        rounds = []
        for _ in range(3):
            start = time.perf_counter()
            for _ in range(OPERATORS):
                torch.add(one, one)
            rounds.append((time.perf_counter() - start) / OPERATORS)
        return min(rounds)

    def plain_seconds(self, count):
        """Of each of so many direct calls, with the host's time for launches (the paper's figure)."""
        return [self._clock.plain(self._prepare, self._call) for _ in range(count)]
