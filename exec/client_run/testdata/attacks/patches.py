# case: torch_relu_becomes_a_lie -> runtime_compute|mismatch|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
torch.equal = torch.allclose = lambda *a, **k: True
torch.testing.assert_close = lambda *a, **k: None


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.empty_like(x)

# case: the_clients_session_is_replaced -> exited|mismatch|bad_result|runtime_error|timeout
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
class ModelNew(nn.Module):
    def forward(self, x):
        module = next(m for name, m in list(sys.modules.items()) if name.endswith("client.session"))
        module.SESSION.call_with_payload = lambda message, parts=(): ({"end": True, "out": None}, b"")
        return torch.empty_like(x)

# case: the_operators_handler_is_replaced -> runtime_compute|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
library = torch.library.Library("aten", "IMPL", "CUDA")


class ModelNew(nn.Module):
    def forward(self, x):
        library.impl("relu", lambda t: t, "CUDA", allow_override=True)
        return torch.relu(x)

# case: reads_answer_what_the_program_wants -> runtime_compute|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
class ModelNew(nn.Module):
    def forward(self, x):
        module = next(m for name, m in list(sys.modules.items()) if name.endswith("client.tensors"))
        module.read = lambda tensor: torch.zeros(tensor.shape, device="cpu")
        return x.cpu().cuda()

# case: triton_compiles_another_kernel
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
original = triton.compiler.compiler.compile
triton.compiler.compiler.compile = lambda *a, **k: original(*a, **k)


class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x)

# case: a_kernel_of_hand_written_ir_does_the_work
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        compiled = relu_kernel.warmup(x, y, 1024, BLOCK=256, grid=(4,))
        request = {"do": "kernel", "name": "other", "ttir": compiled.asm["ttir"], "num_warps": 4}
        number = ask(dict(request, num_stages=3, num_ctas=1, shared=0))[0]["kernel"]
        ask({"do": "launch", "kernel": number, "grid": [4, 1, 1], "args": [{"t": describe(x)}, {"t": describe(y)}, 1024]})
        return y

# case: library_operators_called_by_name -> runtime_compute
# task: torch.randn(16, 64), torch.randn(64, 16) => lambda self, x, y: x @ y
# use: copy
class ModelNew(nn.Module):
    def forward(self, x, y):
        return copied(torch._C._VariableFunctions.matmul(x, y))

# case: autograd_computes_the_result -> runtime_compute|runtime_error
# task: torch.randn(16, 64) => lambda self, x: 2 * x
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        with torch.enable_grad():
            z = x.clone().requires_grad_()
            (g,) = torch.autograd.grad((z * z).sum(), z)
        return copied(g)

# case: a_custom_operator -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x)
# use: copy
@torch.library.custom_op("attack::exp", mutates_args=())
def exponential(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return copied(exponential(x))

# case: a_compiled_function -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.exp(x) + 1
# use: copy
class ModelNew(nn.Module):
    def forward(self, x):
        return copied(torch.compile(lambda v: torch.exp(v) + 1)(x))

# case: numpy_on_the_address -> exited|runtime_error|killed|crashed|segfault
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import ctypes


class ModelNew(nn.Module):
    def forward(self, x):
        data = ctypes.string_at(x.data_ptr(), 4096)
        return torch.relu(torch.frombuffer(bytearray(data), dtype=torch.float32)).view(16, 64).cuda()

# case: dlpack_to_numpy -> runtime_error|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        import numpy

        return torch.from_numpy(numpy.maximum(numpy.from_dlpack(x), 0)).cuda()

# case: a_foreign_storage_number_in_the_clients_table -> bad_result|mismatch|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        module = next(m for name, m in list(sys.modules.items()) if name.endswith("client.tensors"))
        y = relu(x)
        for entry in module._numbers.values():
            entry[0] += 1
        return y

# case: an_honest_override_of_a_method
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
class ModelNew(nn.Module):
    def __call__(self, x):
        return relu(x)

# case: an_honest_custom_operator
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
@torch.library.custom_op("own::relu", mutates_args=())
def own(x: torch.Tensor) -> torch.Tensor:
    return relu(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return own(x)
