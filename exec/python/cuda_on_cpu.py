"""Lets references that say "cuda" run on the CPU: their tensors stay there and claim to be on cuda:0."""

import torch
from torch.overrides import TorchFunctionMode

CPU = torch.device("cpu")
CUDA = torch.device("cuda", 0)

_IS_CUDA, _DEVICE = torch.Tensor.is_cuda, torch.Tensor.device
_GET_DEVICE, _TO = torch.Tensor.get_device, torch.Tensor.to
_STAY = (torch.Tensor.cuda, torch.Tensor.cpu, torch.Tensor.pin_memory)


def _names_cuda(value):
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and value.split(":")[0] == "cuda"


class _Mode(TorchFunctionMode):
    def __torch_function__(self, function, types_, args=(), kwargs=None):
        if function is torch.device:  # a device object still says what was asked for
            return function(*args, **(kwargs or {}))
        owner = getattr(function, "__self__", None)  # a property's getter arrives as its bound __get__
        if owner is _IS_CUDA:
            return True
        if owner is _DEVICE:
            return CUDA
        if function is _GET_DEVICE:
            return 0
        if function in _STAY:
            return args[0]
        if function is _TO and len(args) > 1 and type(args[1]) is int:
            args = (args[0], CPU, *args[2:])
        if any(_names_cuda(value) for value in args):
            args = tuple(CPU if _names_cuda(value) else value for value in args)
        if kwargs:
            kwargs = dict(kwargs)
            for key in ("device", "map_location"):
                if _names_cuda(kwargs.get(key)) or type(kwargs.get(key)) is int:
                    kwargs[key] = CPU
            kwargs.pop("pin_memory", None)
        return function(*args, **(kwargs or {}))


class _Generator(torch.Generator):
    def __new__(cls, device="cpu"):
        return super().__new__(cls, device=CPU)


def _seed(seed):
    """torch.manual_seed without its first call's import of torch._dynamo, which takes seconds."""
    return torch.default_generator.manual_seed(int(seed))


def _constant(value):
    """A new function each time: torch._dynamo's tables refuse one function under two names."""
    return lambda *args, **kwargs: value


def _stubs():
    """[(owner, name, what stands there meanwhile)]."""
    answers = {"is_available": True, "device_count": 1, "current_device": 0, "is_bf16_supported": True}
    cuda = {name: _constant(value) for name, value in answers.items()}
    cuda.update({name: _constant(None) for name in ("synchronize", "empty_cache", "set_device")})
    cuda.update({name: lambda seed: _seed(seed) and None for name in ("manual_seed", "manual_seed_all")})
    return [
        *((torch.cuda, name, stub) for name, stub in cuda.items()),
        (torch.backends.cudnn, "is_acceptable", _constant(False)),  # else recurrent modules flatten weights for it
        (torch, "set_default_device", _constant(None)),  # its mode would lie below ours and put "cuda" back
        (torch, "Generator", _Generator),
        (torch, "manual_seed", _seed),
        (torch.random, "manual_seed", _seed),
    ]


class CudaOnCpu:
    """Context manager; everything it patches is put back on exit."""

    def __enter__(self):
        self._saved = [(owner, name, getattr(owner, name)) for owner, name, _ in _stubs()]
        for owner, name, stub in _stubs():
            setattr(owner, name, stub)
        self._mode = _Mode()
        self._mode.__enter__()
        return self

    def __exit__(self, *error):
        self._mode.__exit__(*error)
        for owner, name, value in self._saved:
            setattr(owner, name, value)
        return False
