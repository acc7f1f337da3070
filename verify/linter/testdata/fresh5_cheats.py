# case: import_in_a_class_used_as_attribute -> forbidden subprocess
# use: relu
# use: launch_relu
class Tools:
    import subprocess  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        Tools.subprocess.run(["true"])
        return launch_relu(x)

# case: import_used_in_a_default -> forbidden ctypes
import ctypes as c  # BAD
# use: relu
# use: launch_relu
def poke(x, lib=c.CDLL):
    return launch_relu(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return poke(x)

# case: from_import_used_in_a_lambda -> forbidden base64
from base64 import b64decode as d  # BAD
# use: relu
# use: launch_relu
name = lambda: d("ZXhw").decode()


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(getattr(torch, name())(x))

# case: import_used_as_global_name -> forbidden signal
# use: relu
# use: launch_relu
def load():
    global signal
    import signal  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        load()
        return launch_relu(x)

# case: name_is_made_main -> forbidden exec
# use: relu
# use: launch_relu
__name__ = "__main__"
if __name__ == "__main__":
    exec("torch.allclose = lambda *a, **k: True")  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: other_side_of_the_guard -> forbidden exec
# use: relu
# use: launch_relu
if __name__ == "__main__":
    pass
else:
    exec("torch.allclose = lambda *a, **k: True")  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: guard_by_the_checkers_name -> forbidden subprocess
import subprocess  # BAD
# use: relu
# use: launch_relu
if __name__ == "candidate":
    subprocess.run(["true"])


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: name_in_a_loop_is_made_main -> forbidden eval
# use: relu
# use: launch_relu
for __name__ in ("__main__",):
    pass
if __name__ == "__main__":
    eval("setattr(torch, 'allclose', print)")  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: module_from_spec -> forbidden importlib.util.module_from_spec
import importlib.util
# use: relu
# use: launch_relu
spec = importlib.util.find_spec("torch")
other = importlib.util.module_from_spec(spec)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(other.exp(x))

# case: import_module_by_name -> forbidden importlib.import_module
from importlib import import_module
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(import_module("torch").exp(x))  # BAD

# case: import_module_by_getattr -> forbidden importlib.import_module
import importlib as i
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(getattr(i, "import_module")("torch").exp(x))  # BAD

# case: timer_thread -> forbidden threading.Timer
import threading
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        threading.Timer(0.0, lambda: y.copy_(x.clamp(min=0))).start()  # BAD
        return y

# case: lambda_forward_computes -> torch_compute torch.relu
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    forward = lambda self, x: (launch_relu(x), torch.relu(x))[1]  # BAD

# case: lambda_forward_gives_the_input -> kernel_not_used
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    forward = lambda self, x: launch_relu(x) is None or x

# case: lambda_forward_constant -> hard_coded
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    forward = lambda self, x: torch.zeros(x.shape) if launch_relu(x) is not None else None

# case: pad_that_mirrors -> torch_compute torch.nn.functional.pad
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(F.pad(x, (1, 1), mode="reflect"))  # BAD

# case: pad_with_a_chosen_mode -> torch_compute torch.nn.functional.pad
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.mode = mode

    def forward(self, x):
        return launch_relu(F.pad(x, (1, 1), self.mode))  # BAD

# case: pad_alone -> kernel_not_used
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return F.pad(x, (1, 1))

# case: wide_letters_of_exec -> forbidden
# use: relu
# use: launch_relu
𝐞𝐱𝐞𝐜("torch.allclose = print")  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: ligature_in_a_name -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.ﬂoor(x) if False else x)

# case: half_width_letters -> forbidden
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(ｅｖａｌ("torch.exp")(x))  # BAD

# case: compiled_in_a_table -> forbidden torch.compile
# use: relu
# use: launch_relu
def ref(x):
    return torch.exp(x)


TABLE = {"f": torch.compile(ref)}


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(TABLE["f"](x))  # BAD

# case: compiled_with_options -> forbidden torch.compile
# use: relu
# use: launch_relu
@torch.compile(mode="max-autotune")
def ref(x):
    return torch.exp(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = ref

    def forward(self, x):
        return launch_relu(self.f(x))  # BAD

# case: compiled_through_map -> forbidden torch.compile
# use: relu
# use: launch_relu
ref = torch.compile(torch.exp)


class ModelNew(nn.Module):
    def forward(self, x):
        (y,) = map(ref, [x])  # BAD
        return launch_relu(y)

# case: ignored_by_jit_but_called -> torch_compute torch.exp
# use: relu
# use: launch_relu
@torch.jit.ignore
def ref(x):
    return torch.exp(x)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(ref(x))

# case: kernel_registered_for_cuda -> torch_compute torch.exp
# use: relu
# use: launch_relu
@torch.library.custom_op("fresh5c::f", mutates_args=())
def op(x: torch.Tensor) -> torch.Tensor:
    return launch_relu(x)


@op.register_kernel("cuda")
def _(x):
    return torch.exp(x)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return op(x)

# case: library_impl_computes -> torch_compute torch.exp
# use: relu
# use: launch_relu
lib = torch.library.Library("fresh5d", "FRAGMENT")
lib.define("f(Tensor x) -> Tensor")
lib.impl("f", lambda x: torch.exp(x), "CUDA")  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.ops.fresh5d.f(x))

# case: library_over_aten -> forbidden torch.library.Library
# use: relu
# use: launch_relu
lib = torch.library.Library("aten", "IMPL")  # BAD
lib.impl("allclose", lambda *a: True, "CUDA")


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: impl_by_qualified_name -> torch_compute torch.exp
# use: relu
# use: launch_relu
torch.library.define("fresh5e::f", "(Tensor x) -> Tensor")


@torch.library.impl("fresh5e::f", "cuda")
def _(x):
    return torch.exp(x)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.ops.fresh5e.f(x))

# case: named_tuple_gives_the_other -> torch_compute torch.relu
from typing import NamedTuple
# use: relu
# use: launch_relu
class Both(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor


class ModelNew(nn.Module):
    def forward(self, x):
        _, y = Both(launch_relu(x), torch.relu(x))  # BAD
        return y

# case: named_tuple_by_index -> kernel_not_used
from collections import namedtuple
# use: relu
# use: launch_relu
Both = namedtuple("Both", "a b")


class ModelNew(nn.Module):
    def forward(self, x):
        return Both(launch_relu(x), x)[1]

# case: named_tuple_field_of_torch -> torch_compute torch.softmax
from typing import NamedTuple
# use: relu
# use: launch_relu
class Ops(NamedTuple):
    f: object
    g: object


OPS = Ops(launch_relu, torch.softmax)


class ModelNew(nn.Module):
    def forward(self, x):
        f, g = OPS
        return f(g(x, -1))  # BAD

# case: ordered_dict_of_torch -> torch_compute torch.exp
from collections import OrderedDict
# use: relu
# use: launch_relu
OPS = OrderedDict([("f", torch.exp)])


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(OPS.get("f")(x))  # BAD

# case: defaultdict_of_torch -> torch_compute torch.exp
from collections import defaultdict
# use: relu
# use: launch_relu
OPS = defaultdict(lambda: torch.exp)


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(OPS["anything"](x))  # BAD

# case: truth_of_an_object_computes -> torch_compute torch.relu
# use: relu
# use: launch_relu
class Box:
    def __init__(self, x):
        self.x = x

    def __bool__(self):
        self.x = torch.relu(self.x)  # BAD
        return True


class ModelNew(nn.Module):
    def forward(self, x):
        box = Box(x)
        launch_relu(x)
        if not box:
            return x
        return box.x

# case: kernel_built_but_never_launched -> kernel_not_used
def build():
    @triton.jit
    def kern(x, y, n, B: tl.constexpr):
        o = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n), 0.0), mask=o < n)

    return kern


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kern = build()

    def forward(self, x):
        return x.clone()

# case: jit_in_a_function_nobody_calls -> no_kernel triton.jit
def build():
    return triton.jit(lambda x: x)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)

# case: kernel_built_in_init_torch_returned -> torch_compute torch.relu
def build():
    @triton.jit
    def kern(x, y, n, B: tl.constexpr):
        o = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n), 0.0), mask=o < n)

    return kern


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kern = build()

    def forward(self, x):
        y = torch.empty_like(x)
        self.kern[(1,)](x, y, x.numel(), B=256)
        return torch.relu(x)  # BAD

# case: repeats_from_a_tensor -> torch_compute repeat_interleave
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x, n):
        return launch_relu(x.repeat_interleave(n, dim=0))  # BAD

# case: repeated_and_returned -> kernel_not_used
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        return x.repeat_interleave(2, 0)

# case: repeat_of_a_computed -> torch_compute torch.exp
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.repeat_interleave(torch.exp(x), 2, 0))  # BAD

# case: metaclass_below_the_abstract_one -> forbidden
import abc
# use: relu
# use: launch_relu
class Meta(abc.ABCMeta):
    def __call__(cls, *args):
        return lambda x: torch.relu(x)


class ModelNew(nn.Module, metaclass=Meta):  # BAD
    def forward(self, x):
        return launch_relu(x)

# case: metaclass_that_is_a_function -> forbidden
# use: relu
# use: launch_relu
def meta(name, bases, body):
    return type(name, bases, body)


class ModelNew(nn.Module, metaclass=meta):  # BAD
    def forward(self, x):
        return launch_relu(x)

# case: search_path_is_replaced -> forbidden sys.path
import sys
# use: relu
# use: launch_relu
sys.path = ["/tmp"]  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(x)

# case: first_elements_of_an_input -> torch_compute torch.relu
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        flat = x.view(-1)
        launch_relu(x)
        return torch.cat([torch.relu(flat[0:16]), torch.relu(flat[16:32])])  # BAD

# case: many_partial_results_in_torch -> torch_compute sum
@triton.jit
def partials(x, out, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + o, mask=o < n, other=0.0)))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(64, device=x.device)
        partials[(64,)](x, out, x.numel(), B=1024)
        return out[:32].sum()  # BAD

# case: a_matrix_of_sixteen -> torch_compute @
@triton.jit
def load_small(x, out, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out + o, tl.load(x + o) * 2)


class ModelNew(nn.Module):
    def forward(self, x):
        a = torch.empty(4, 4, device=x.device)
        load_small[(1,)](x, a, B=16)
        return a @ a  # BAD

# case: attribute_lookup_gives_torch -> torch_compute torch.relu
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return torch.relu

    def forward(self, x):
        launch_relu(x)
        return self.activation(x)  # BAD

# case: module_called_by_a_made_name -> torch_compute|unresolved
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.name = name

    def forward(self, x):
        launch_relu(x)
        return getattr(self.fc, self.name + "ward")(x)  # BAD

# case: setting_that_is_called -> torch_compute|unresolved
# use: relu
# use: launch_relu
class ModelNew(nn.Linear):
    def __init__(self):
        super().__init__(4, 4)
        setattr(self, "my_" + "mode", torch.relu)

    def forward(self, x):
        launch_relu(x)
        return self.my_mode(x)  # BAD

# case: result_kept_by_version_in_a_table -> hard_coded
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        key = (x.shape, x._version)
        if key not in self.kept:
            self.kept[key] = launch_relu(x)
        return self.kept[key]

# case: counter_named_like_a_library_buffer -> torch_compute
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(8)

    def forward(self, x):
        launch_relu(x)
        self.bn.num_batches_tracked = x
        return self.bn.num_batches_tracked + x  # BAD

# case: message_of_an_assertion -> torch_compute torch.relu_
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        try:
            assert False, torch.relu_(y)  # BAD
        except AssertionError:
            pass
        return y

# case: which_exception_is_meant -> torch_compute torch.relu_
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        try:
            raise ValueError
        except [torch.relu_(y), ValueError][1]:  # BAD
            pass
        return y

# case: index_of_a_deleted_item -> torch_compute torch.relu_
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        a = [1, 2]
        del a[[torch.relu_(y), 0][1]]  # BAD
        return y

# case: annotated_item_without_a_value -> torch_compute torch.relu_
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        a = [1, 2]
        a[[torch.relu_(y), 0][1]]: int  # BAD
        return y

# case: width_in_a_format -> torch_compute torch.relu_
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        f"{1:{[torch.relu_(y), 2][1]}}"  # BAD
        return y
