"""A candidate's process: `prepare()` once in a zygote, then in each fork `run(sock)` for one candidate.

The process has no GPU and no contents of tensors. Nothing that it says is trusted: it imports, constructs and calls the
candidate, and everything that computes is a request to the executor at the other end of the socket.
"""

import contextlib
import gc
import importlib.util
import linecache
import os
import sys
import traceback

import torch
import triton
import triton.language as tl

from . import older_inductor, operators, tensors, torch_cuda, triton_driver, wire
from .session import SESSION

MAX_TEXT = 2000  # characters of a failure
FILE = "candidate.py"
# Imported late by torch or Triton where a program first uses them, which would cost each fork its time.
_LATE = (
    "numpy.random",
    "torch.nn.utils.parametrize",
    "torch.utils._device",
    "triton.language.extra.cuda.libdevice",
    "triton.language.extra.libdevice",
    "triton.tools.tensor_descriptor",
)
# The same, but a third of a zygote's start, and most programs use none of them.
_COMPILER = (
    "torch._dynamo",
    "torch._higher_order_ops.triton_kernel_wrap",
    "torch._inductor.runtime.triton_heuristics",
    "torch._library.triton",
)


@triton.jit
def _warm(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    acc = tl.zeros((BLOCK,), tl.float32)
    for _ in range(0, tl.cdiv(n, BLOCK)):
        acc += e / tl.sum(e, 0)
    tl.store(y + i, acc, mask=i < n)


def prepare():
    """Imports, registers and compiles ahead what every candidate needs. Once in a process, with no socket yet."""
    torch.set_num_threads(1)
    sys.dont_write_bytecode = True
    for name in _LATE:
        importlib.import_module(name)
    torch_cuda.install()
    triton_driver.install()
    tensors.install()
    operators.register()
    signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    triton_driver.compile_to_ir(triton.compiler.ASTSource(_warm, signature, {"BLOCK": 64}))
    _freeze()


def prepare_compiler():
    """Imports ahead, once in a process, what a program that names parts of torch's compiler needs too."""
    if all(name in sys.modules for name in _COMPILER):
        return
    for name in _COMPILER:
        importlib.import_module(name)
    _freeze()


def _freeze():
    gc.collect()
    gc.freeze()  # a collection in a fork would copy the zygote's pages


def run(sock, folder="."):
    """Runs one candidate with the executor at the other end of `sock`; the candidate's file goes into `folder`. Returns
    True if all of the executor's calls were answered. Closes all descriptors above 2 but the socket's."""
    _close_others(sock.fileno())
    SESSION.connection = wire.Connection(sock)
    SESSION.path = os.path.join(os.path.abspath(folder), FILE)
    phase = _Phase()
    try:
        _run(phase)
        return True
    except BaseException as error:  # SystemExit and KeyboardInterrupt of the candidate are its failures too
        with contextlib.suppress(Exception):
            SESSION.call(_failure(error, phase.name))
        return False


class _Phase:
    """Where the candidate is: "import", "init", "forward" or "output"."""

    def __init__(self):
        self.name = "import"


def _run(phase):
    begin, payload = SESSION.call_with_payload({"do": "begin"})
    SESSION.device = begin["device"]
    torch_cuda.seed_process(begin["seed"])
    module = _load(begin["source"], SESSION.path)
    phase.name = "init"
    entry = getattr(module, begin["entry"], None)
    if not callable(entry):
        raise AttributeError(f"the program defines no {begin['entry']}")
    model = _Program(module, entry) if begin.get("program") else _construct(entry, begin, payload)
    gc.collect()  # the executor judges what the constructor keeps
    state = [[name, {"t": tensors.describe(tensor)}] for name, tensor in _state(model)]
    with torch.no_grad():
        call, payload = SESSION.call_with_payload({"do": "constructed", "state": state})
        while not call.get("end"):
            phase.name = "forward"
            call, payload = _forward(model, call, payload, phase)


class _Program:
    """An entry that is run once: a function on the program's own inputs, or a class that is constructed first."""

    def __init__(self, module, entry):
        self._module, self._entry = module, entry

    def __call__(self):
        entry = self._entry
        if isinstance(entry, type):
            entry = entry(*self._made("get_init_inputs"))
            if isinstance(entry, torch.nn.Module):
                entry = entry.to("cuda")
        inputs = self._made("get_inputs")
        return entry(*[x.to("cuda") if isinstance(x, torch.Tensor) else x for x in inputs])

    def _made(self, name):
        make = getattr(self._module, name, None)
        if make is None:
            return []
        with torch.device("cuda"):
            return list(make())


def _forward(model, call, payload, phase):
    """One call of the model; the next one."""
    torch_cuda.seed_process(call["seed"])
    args, kwargs = tensors.receive(call["args"], payload), tensors.receive(call["kwargs"], payload)
    out = model(*args, **kwargs)
    phase.name = "output"
    sender = tensors.Sender()
    return SESSION.call_with_payload({"do": "output", "value": sender.encode(out)}, sender.payload.parts)


def _load(source, path):
    """The candidate as a module. Triton reads the kernels' source from a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    linecache.checkcache(path)
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    older_inductor.provide_names(source)
    spec.loader.exec_module(module)
    return module


def _construct(entry, begin, payload):
    """The model on the device. torch's default device is the GPU meanwhile, so that the executor draws the weights.
    Code that cannot work so is run without it; where the executor refused something it is not run again."""

    def construct():
        args, kwargs = tensors.receive(begin["args"], payload), tensors.receive(begin["kwargs"], payload)
        return entry(*args, **kwargs)

    try:
        with torch.device("cuda"):
            model = construct()
    except Exception:
        if SESSION.refused:
            raise
        torch_cuda.seed_process(begin["seed"])
        torch_cuda.seed_device(begin["seed"])
        model = construct()
    return model.to("cuda") if isinstance(model, torch.nn.Module) else model


def _state(model):
    """(name, tensor) of the parameters and buffers on the device."""
    if not isinstance(model, torch.nn.Module):
        return []
    state = model.state_dict(keep_vars=True).items()
    made = [(str(n), t) for n, t in state if isinstance(t, torch.Tensor) and not torch.nn.parameter.is_lazy(t)]
    return [(name, tensor.detach()) for name, tensor in made if tensor.is_cuda]


def _failure(error, phase):
    chain = _chain(error)
    compiled = [link for link in chain if _line_in_kernel(link)]
    said = compiled[-1] if compiled else error  # the innermost, where a kernel's helper does not compile
    text = " ".join(str(getattr(said, "error_message", None) or said).split())[:MAX_TEXT]
    line = _line_in_kernel(said) or next(filter(None, map(_line_in_file, chain)), 0)
    kind, text = (_sendable(part) for part in (type(said).__name__[:200], text))
    return {"do": "failed", "phase": phase, "kind": kind, "text": text, "line": line}


def _sendable(text):
    """Without the halves of characters that Python's texts may hold and no other JSON does."""
    return text.encode("utf-8", "replace").decode()


def _chain(error):
    """The error, its cause, the cause's cause, ..."""
    chain = []
    while error is not None and not any(error is link for link in chain):
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def _line_in_file(error):
    """The innermost line of the candidate's file on the error's traceback, 0 if none."""
    if isinstance(error, SyntaxError) and error.filename == SESSION.path:
        return error.lineno or 0
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == SESSION.path:
            return frame.lineno or 0
    return 0


def _line_in_kernel(error):
    """The line that does not compile, 0 for other errors. Triton counts from the kernel's `def`; `src` is its text."""
    node, text = getattr(error, "node", None), getattr(error, "src", None)
    if node is None or not isinstance(text, str):
        return 0
    source = "".join(linecache.getlines(SESSION.path))
    position = source.find(text)
    return source.count("\n", 0, position) + getattr(node, "lineno", 1) if position >= 0 else 0


def _close_others(kept):
    """A descriptor that the zygote held is none of the candidate's."""
    os.closerange(3, kept) if kept > 3 else None
    os.closerange(max(kept + 1, 3), os.sysconf("SC_OPEN_MAX"))
