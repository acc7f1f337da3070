# torch computes, by names made at run time.
# case: getattr_constant -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return getattr(torch, "ta" + "nh")(launch_relu(x))  # BAD

# case: keyword_function -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu((lambda **k: k["f"](k["x"]))(f=torch.exp, x=x))  # BAD

# case: getattr_hook_class -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class Lazy:
    def __getattr__(self, name):
        return torch.exp


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(Lazy().anything(x))  # BAD

# case: f_string_computes -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        out = launch_relu(x)
        f"{out.copy_(x.exp())}"  # BAD
        return out

# case: custom_op_by_function -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
def f(x: torch.Tensor) -> torch.Tensor:
    return x.exp()  # BAD


op = torch.library.custom_op("mini::f", f, mutates_args=())


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(op(x))

# case: getattr_split_string -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return getattr(torch, "so" + "ftmax")(launch_relu(x), -1)  # BAD

# case: getattr_hook_class_again -> runtime_compute aten::_softmax
# task: torch.randn(16, 64) => lambda self, x: torch.softmax(x, -1)
# use: relu
# use: launch_relu
class Proxy:
    def __getattr__(self, name):
        return getattr(torch, name)


P = Proxy()


class ModelNew(nn.Module):
    def forward(self, x):
        return P.softmax(launch_relu(x), -1)  # BAD

# case: getattr_on_module_class -> runtime_compute aten::tanh
# task: torch.randn(16, 64) => lambda self, x: torch.tanh(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        return self.magic(launch_relu(x))  # BAD

    def __getattr__(self, name):
        if name == "magic":
            return torch.tanh
        return super().__getattr__(name)

# case: einsum_out_of_getattr_default -> runtime_compute aten::bmm
# task: torch.randn(64, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        f = getattr(torch, "einsum", None)
        return launch_relu(f("ij,jk->ik", x, x))  # BAD

# case: namedtuple_op -> runtime_compute aten::erf
# task: torch.randn(16, 64) => lambda self, x: torch.erf(x)
# use: relu
# use: launch_relu
from collections import namedtuple

ns = namedtuple('N', 'f')(torch.erf)


class ModelNew(nn.Module):
    def forward(self, x):
        return ns.f(launch_relu(x))  # BAD

# case: struct_unpack -> runtime_compute came from the program
# task: torch.randn(64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
import struct


class ModelNew(nn.Module):
    def forward(self, x):
        launch_relu(x)
        v = struct.unpack('f', struct.pack('f', float(x[0])))
        return torch.tensor(v)

# case: kernel_registered_for_cuda -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
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

# case: library_impl_computes -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
lib = torch.library.Library("fresh5d", "FRAGMENT")
lib.define("f(Tensor x) -> Tensor")
lib.impl("f", lambda x: torch.exp(x), "CUDA")  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.ops.fresh5d.f(x))

# case: impl_by_qualified_name -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
torch.library.define("fresh5e::f", "(Tensor x) -> Tensor")


@torch.library.impl("fresh5e::f", "cuda")
def _(x):
    return torch.exp(x)  # BAD


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(torch.ops.fresh5e.f(x))

# case: ordered_dict_of_torch -> runtime_compute aten::exp
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
from collections import OrderedDict
# use: relu
# use: launch_relu
OPS = OrderedDict([("f", torch.exp)])


class ModelNew(nn.Module):
    def forward(self, x):
        return launch_relu(OPS.get("f")(x))  # BAD

# case: attribute_lookup_gives_torch -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
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

# case: module_called_by_a_made_name -> runtime_compute aten::addmm
# task: torch.randn(32, 4) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def __init__(self, name="for"):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.name = name

    def forward(self, x):
        launch_relu(x)
        return getattr(self.fc, self.name + "ward")(x)  # BAD

# case: setting_that_is_called -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Linear):
    def __init__(self):
        super().__init__(4, 4)
        setattr(self, "my_" + "mode", torch.relu)

    def forward(self, x):
        launch_relu(x)
        return self.my_mode(x)  # BAD

# case: width_in_a_format -> runtime_compute aten::relu_
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = launch_relu(x)
        f"{1:{[torch.relu_(y), 2][1]}}"  # BAD
        return y

# case: eval_works_on_what_is_kept -> runtime_compute aten::exp_
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: relu
# use: launch_relu
class ModelNew(nn.Module):
    kept = []

    def eval(self):
        self.kept[0].exp_()  # BAD
        return self

    def forward(self, x):
        y = launch_relu(x)
        self.kept.append(y)
        self.eval()
        return y

# case: chain_map_is_alive -> runtime_compute aten::relu
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
import collections


class ModelNew(nn.Module):
    def forward(self, x):
        d = {'f': torch.empty_like}
        chain = collections.ChainMap(d)
        d['f'] = torch.relu
        return chain['f'](x)  # BAD
