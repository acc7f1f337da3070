"""Watches Triton compile: which kernels were built, which failed and why, which were launched."""

import contextlib
import functools
import io
import re

from triton.compiler.compiler import CompiledKernel
from triton.runtime.jit import JITFunction

from failures import describe, one_line


MOST_SHOWN = 200  # launches in a result


class LaunchRecord:
    """One launch; `counters` is None where nothing was counted (on a GPU). `tensors` is what launch_arguments noted."""

    def __init__(self, name, line, grid, metadata, counters, tensors=()):
        self.name = name
        self.line = line
        self.grid = grid
        self.num_warps = metadata.num_warps
        self.num_stages = getattr(metadata, "num_stages", 0)
        self.shared_bytes = metadata.shared
        self.counters = counters
        self.tensors = tensors
        self.arguments = []  # descriptions of `tensors`, once it is known what they are to forward

    @property
    def programs(self):
        return self.grid[0] * self.grid[1] * self.grid[2]


class Recorder:
    """What happened so far, and what launches are to do."""

    def __init__(self, source_path="", deadline=None):
        self.source_path = source_path
        self.deadline = deadline  # of time.monotonic
        self.counting = False
        self.records = []  # LaunchRecord of launches made while counting
        self.launches = 0  # all launches
        self.launched = set()  # names of kernels that were launched
        self.kernels = {}  # (name, line) of each kernel of which programs ran -> launches, in the order of the first
        self.binaries = {}  # on a GPU: name of the compiled kernel -> launches since this was last cleared
        self.left_out = lambda kernel: False  # kernels that are to write nothing in this call
        self.not_run = 0  # launches that were left out
        self.compiled = 0
        self.compile_failures = []  # (kernel name, line of its def, error)
        self.kernel_errors = []  # also those that the candidate swallowed

    def begin(self, name, line, grid):
        """Notes a launch. False when nothing is to run: its grid is empty, or the kernel is left out of this call."""
        self.launches += 1
        self.launched.add(name)
        if min(grid) == 0:
            return False
        kernel = (name, line)
        self.kernels[kernel] = self.kernels.get(kernel, 0) + 1
        if self.left_out(kernel):
            self.not_run += 1
            return False
        return True

    @property
    def shown_records(self):
        """What is told of the launches: the last ones, as the result has a limited size and an autotuner on a GPU tries
        its configurations hundreds of times before the launch that counts."""
        return self.records[-MOST_SHOWN:]

    @property
    def compile_state(self):
        """True, False, or None when no kernel was compiled. A configuration that an autotuner drops is no failure."""
        if any(name not in self.launched for name, _, _ in self.compile_failures):
            return False
        return True if self.compiled else None

    def raise_swallowed(self):
        """Raises what the candidate caught and hid: kernel errors, and kernels that never compiled."""
        if self.kernel_errors:
            raise self.kernel_errors[0]
        for name, _, error in self.compile_failures:
            if name not in self.launched:
                raise error

    def explain_compile_error(self, chain, source):
        """(outcome, fault, message, detail, line) if one of the errors in `chain` is a compile failure, else None."""
        for name, line, failure in self.compile_failures:
            if any(failure is error for error in chain):
                inner, line = compile_error_line(failure, source, line)
                message = f"kernel {name} does not compile, line {line}: {compiler_message(inner)}"
                return "compile_error", "candidate", message, str(failure), line
        return None


class CompileWatch:
    """Context manager. `guard()` surrounds each compilation, `loaded(kernel)` is called for each kernel that is ready."""

    def __init__(self, recorder, guard=contextlib.nullcontext, loaded=lambda kernel: None):
        self.recorder = recorder
        self.guard = guard
        self.loaded = loaded

    def __enter__(self):
        self._compile, self._init_handles = JITFunction._do_compile, CompiledKernel._init_handles
        recorder, compile_, init_handles = self.recorder, self._compile, self._init_handles
        guard, loaded = self.guard, self.loaded

        @functools.wraps(compile_)
        def do_compile(function, *args, **kwargs):
            output = io.StringIO()  # Triton prints whole PTX files when ptxas refuses one
            try:
                with contextlib.redirect_stdout(output), guard():
                    kernel = compile_(function, *args, **kwargs)
            except Exception as error:
                recorder.compile_failures.append((function.__name__, definition_line(function), error))
                raise
            recorder.compiled += 1
            return kernel

        @functools.wraps(init_handles)
        def init(kernel):
            if kernel.module is not None:
                return
            try:
                init_handles(kernel)
            except Exception as error:
                function = kernel.src.fn
                recorder.compile_failures.append((function.__name__, definition_line(function), error))
                raise
            loaded(kernel)

        JITFunction._do_compile, CompiledKernel._init_handles = do_compile, init
        return self

    def __exit__(self, *error):
        JITFunction._do_compile, CompiledKernel._init_handles = self._compile, self._init_handles
        return False


def definition_line(function):
    """Line of the kernel's `def` in its file."""
    for offset, text in enumerate(function.raw_src):
        if text.strip().startswith("def "):
            return function.starting_line_number + offset
    return function.starting_line_number


def error_chain(error):
    """The error, its cause, the cause's cause, ..."""
    chain = []
    while error is not None and not any(error is e for e in chain):
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def compile_error_line(failure, source, fallback):
    """(innermost compilation error, line in the candidate). Triton counts lines from the kernel's `def`."""
    inner, line = failure, fallback
    for error in error_chain(failure):
        node, text = getattr(error, "node", None), getattr(error, "src", None)
        position = source.find(text) if node is not None and isinstance(text, str) else -1
        if position >= 0:
            inner, line = error, source.count("\n", 0, position) + getattr(node, "lineno", 1)
    return inner, line


def compiler_message(error):
    """What the compiler says, without the source it repeats."""
    text = getattr(error, "error_message", None)
    if not text and error.__cause__ is not None:
        return describe(error.__cause__)
    if text and "ptxas" in text:
        lines = [line for line in text.splitlines() if re.search(r"\berror\s*:", line)]
        return one_line(" ".join(lines) or text)
    return one_line(text) if text else describe(error)
