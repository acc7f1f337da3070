"""Runs one task inside a worker's job and says whether it is a sound task: a runner of exec/workers/python/worker.py.

job: {"source": the task file, "seeds": two seeds of inputs, "inputs_only": whether only get_inputs() runs}
result: {"reason": "ok" or why not, "message": a sentence, "inputs": a text for each input, such as "float32[4, 8]";
empty if get_inputs() did not return}
The task runs twice on the inputs of each seed, without gradients.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # a fork after a thread pool ran can hang
    os.environ.setdefault(_name, "1")

import torch

import layout
import reference
import sources
from failures import JobFailure, describe, line_in_file, memory_outcome, one_line

_WEIGHTS_SEED = 1
_MOST_INPUTS, _MOST_TEXT = 256, 120  # of the result's "inputs", and of the bytes of each
_WARM_SOURCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Conv2d(2, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Linear(6, 3))
    def forward(self, x):
        return torch.softmax(self.inner(x), -1)
def get_inputs():
    return [torch.rand([2, 2, 8, 8])]
def get_init_inputs():
    return [[], {}]
"""


class _Refused(Exception):
    def __init__(self, reason, message):
        super().__init__(message)
        self.reason, self.message = reason, message


class _Sizes(layout.Describer):
    """Describes values as they would be handed over, without memory for them."""

    def _store(self, tensor):
        return 0


def run_job(job, on_phase=None):
    """The result; never raises."""
    inputs = []
    try:
        if job["inputs_only"]:
            inputs += _texts(_inputs_alone(job["source"], job["seeds"][0]))
        else:
            _check(job["source"], job["seeds"], inputs)
    except _Refused as refused:
        return {"reason": refused.reason, "message": one_line(refused.message), "inputs": inputs}
    return {"reason": "ok", "message": "", "inputs": inputs}


def warm_up():
    """Once in a parent that forks jobs: loads the libraries that most tasks use."""
    torch.set_num_threads(1)
    result = run_job({"source": _WARM_SOURCE, "seeds": [1, 2], "inputs_only": False})
    if result["reason"] != "ok":
        raise RuntimeError(f"the warm-up task ended with {result['reason']}: {result['message']}")


def _check(source, seeds, texts):
    """Raises _Refused; `texts` gets the texts of the inputs. Holds at most two sets of inputs and two results."""
    module = _load(source)
    arguments = _step("construct_error", "get_init_inputs() fails", lambda: sources.init_inputs(module))
    build = lambda: sources.build_model(module.Model, arguments, _WEIGHTS_SEED)
    model = _step("construct_error", "the model cannot be constructed", build)
    first = _inputs(module, seeds[0])
    _can_be_handed_over(arguments, "get_init_inputs()")
    _can_be_handed_over(first, "get_inputs()")
    texts += _texts(first)
    if not _same(first, _inputs(module, seeds[0])):
        raise _Refused("random_result", "get_inputs() gives other inputs for the same seed")
    output = _result(model, first, (0, 1))
    second = _inputs(module, seeds[1])
    if _same(output, _result(model, second, (2, 3))):
        why = "get_inputs() gives the same for each seed" if _same(first, second) else "other inputs give the same"
        raise _Refused("constant_result", f"the result is constant: {why}")


def _load(source):
    return _step("load_error", "the file does not load", lambda: sources.load_reference(source))


def _inputs_alone(source, seed):
    """The inputs, without memory for them where get_inputs() runs on torch's meta device, whose tensors have no
    elements. It does not where it reads an element."""
    module = _load(source)
    try:
        with torch.device("meta"):
            return reference.inputs_of(module)
    except BaseException:
        return _inputs(module, seed)


def _texts(inputs):
    return [_text(leaf)[:_MOST_TEXT] for _, leaf in layout.flatten(inputs)[:_MOST_INPUTS]]


def _text(leaf):
    if isinstance(leaf, torch.Tensor):
        return f"{str(leaf.dtype).removeprefix('torch.')}[{', '.join(str(size) for size in leaf.shape)}]"
    return "number" if isinstance(leaf, (bool, int, float)) else type(leaf).__name__


def _step(reason, what, work):
    try:
        return work()
    except BaseException as error:
        raise _refusal(reason, what, error) from error


def _refusal(reason, what, error):
    if memory_outcome(error) is not None:
        reason, what = "out_of_memory", f"{what} for lack of memory"
    line = line_in_file(error, sources.REFERENCE_FILE)
    return _Refused(reason, f"{what}{f' at line {line}' if line else ''}: {describe(error)}")


def _inputs(module, seed):
    def make():
        sources.seed_everything(seed)
        return reference.inputs_of(module)

    return _step("input_error", "get_inputs() fails", make)


def _can_be_handed_over(value, what):
    try:
        reference.fits(_Sizes().put(value), what)
    except JobFailure as failure:
        raise _Refused("unsupported_values", failure.message) from failure


def _result(model, inputs, seeds):
    """The result of a call, which is that of a second one."""
    first, second = (_checked(_call(model, inputs, seed)) for seed in seeds)
    if not _same(first, second):
        raise _Refused("random_result", "two calls with the same inputs give different results")
    return first


def _call(model, inputs, seed):
    """The result of one call on copies of the inputs."""

    def call(gradients):
        copies = layout.map_tensors(inputs, torch.clone)
        sources.seed_everything(seed)
        with torch.set_grad_enabled(gradients):
            return model(*copies)

    try:
        return call(False)
    except BaseException as error:
        refused = _refusal("run_error", "forward fails", error)
        if refused.reason == "run_error" and isinstance(error, RuntimeError) and "grad" in str(error):
            try:
                call(True)
            except BaseException:
                raise refused from error
            refused = _Refused("needs_gradient", f"forward runs with gradients only: {describe(error)}")
        raise refused from error


def _checked(output):
    tensors = layout.tensors(output)
    if not any(tensor.numel() for tensor in tensors):
        raise _Refused("no_tensor_output", "forward returns no tensor with elements")
    _can_be_handed_over(output, "forward's result")
    for tensor in tensors:
        if tensor.is_floating_point() and tensor.element_size() == 1:
            tensor = tensor.float()  # float8 has no isfinite
        if not bool(torch.isfinite(tensor).all()):
            raise _Refused("not_finite", "forward's result holds NaN or infinity")
    return output


def _same(a, b):
    """Whether two structures hold bitwise the same tensors and equal other values."""
    left, right = layout.flatten(a), layout.flatten(b)
    return len(left) == len(right) and all(_same_leaf(x, y) for (_, x), (_, y) in zip(left, right))


def _same_leaf(a, b):
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and layout.same(a, b)
    return type(a) is type(b) and repr(a) == repr(b)
