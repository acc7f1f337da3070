# case: a_length_without_a_body -> timeout|bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        connection().sendall(struct.pack("<II", 1 << 20, 0))
        receive(1)
        return relu(x)

# case: a_header_above_the_limit -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        connection().sendall(struct.pack("<II", (8 << 20) + 1, 0))
        receive(1)

# case: a_payload_above_the_limit -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        connection().sendall(struct.pack("<II", 2, (1 << 30) + 1) + b"{}")
        receive(1)

# case: a_payload_that_is_announced_and_never_sent -> timeout|exited
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        connection().sendall(struct.pack("<II", 2, 1 << 30) + b"{}")
        raise SystemExit(0)

# case: bytes_that_are_no_json -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask(b"\xff\xfe{")
        return relu(x)

# case: json_that_is_nested_deeply -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask(b'{"do":' + b"[" * 100000 + b"]" * 100000 + b"}")
        return relu(x)

# case: json_of_many_nodes -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask(b'{"do":"op","name":"zero_","overload":"","args":[' + b"0," * 3000000 + b"0]}")
        return relu(x)

# case: json_with_repeated_keys -> bad_result|mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        ask(b'{"do":"read","do":"output","value":null}')
        return y

# case: a_number_beyond_all_types -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask(b'{"do":"seed","seed":1e999}')
        return relu(x)

# case: an_unknown_request -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask({"do": "expected"})
        return relu(x)

# case: begin_once_more -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask({"do": "begin"})
        return relu(x)

# case: constructed_once_more -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask({"do": "constructed", "state": []})
        return relu(x)

# case: a_storage_of_another_number -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        t = describe(x, s=10**9)
        ask({"do": "read", "tensor": t})
        return relu(x)

# case: a_storage_of_a_negative_number -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask({"do": "read", "tensor": describe(x, s=-1)})
        return relu(x)

# case: a_geometry_outside_of_its_storage -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        op("zero_", {"t": describe(x, shape=[1 << 20], stride=[1])})
        return relu(x)

# case: a_negative_stride -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask({"do": "read", "tensor": describe(x, shape=[4], stride=[-1], offset=8)})
        return relu(x)

# case: a_geometry_that_overflows -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        op("zero_", {"t": describe(x, shape=[1 << 40, 1 << 40], stride=[1 << 40, 1])})
        return relu(x)

# case: an_offset_that_overflows -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        op("zero_", {"t": describe(x, shape=[1], stride=[1], offset=(1 << 63) - 1)})
        return relu(x)

# case: a_tensor_of_sixty_five_dimensions -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        op("zero_", {"t": describe(x, shape=[1] * 65, stride=[1] * 65)})
        return relu(x)

# case: an_expanded_tensor_of_terabytes -> bad_result|out_of_memory|runtime_error|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        op("copy_", {"t": describe(x, shape=[1 << 40], stride=[0])}, 1)
        return relu(x)

# case: contents_outside_of_the_payload -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        op("copy_", {"t": describe(x)}, {"host": {"dtype": "float32", "shape": [16, 64], "at": 1 << 40}})
        return relu(x)

# case: a_free_of_a_foreign_storage -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask({"do": "generator", "free": [123456]})
        return relu(x)

# case: a_free_of_the_inputs -> mismatch|bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        ask({"do": "generator", "free": [describe(y)["s"]]})
        return y

# case: a_kernel_of_another_number -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask({"do": "launch", "kernel": 99, "grid": [1, 1, 1], "args": []})
        return relu(x)

# case: a_launch_of_too_few_arguments -> runtime_error|bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        reply = ask({"do": "launch", "kernel": 0, "grid": [1, 1, 1], "args": []})[0]
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return y

# case: a_launch_with_numbers_for_pointers -> runtime_error|out_of_bounds
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        reply = ask({"do": "launch", "kernel": 0, "grid": [1, 1, 1], "args": [x.data_ptr(), 0x7fff00000000, 64]})[0]
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return y

# case: a_grid_of_negative_size -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        ask({"do": "launch", "kernel": 0, "grid": [-1, 1, 1], "args": [{"t": describe(x)}, {"t": describe(y)}, 64]})
        return y

# case: a_grid_of_too_many_programs -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        ask({"do": "launch", "kernel": 0, "grid": [1 << 30, 60000, 60000], "args": [{"t": describe(x)}, {"t": describe(y)}, 64]})
        return y

# case: triton_ir_that_is_none -> runtime_error|compile_error|not_executable
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        reply = ask({"do": "kernel", "name": "k", "ttir": "module { " * 50000, "num_warps": 4, "num_stages": 3, "num_ctas": 1, "shared": 0})[0]
        raise RuntimeError(reply)

# case: an_end_of_a_benchmark_that_never_began -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask({"do": "bench", "begin": False})
        return relu(x)

# case: an_output_inside_of_a_benchmark -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        ask({"do": "bench", "begin": True})
        return y

# case: an_output_inside_of_a_graph -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        ask({"do": "graph", "begin": True})
        return y

# case: a_graph_of_another_number -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask({"do": "replay", "graph": 7})
        return relu(x)

# case: a_forged_output_of_null -> mismatch|bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask({"do": "output", "value": None})
        return relu(x)

# case: a_forged_output_of_the_inputs -> mismatch|bad_result|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask({"do": "output", "value": {"t": describe(x)}})
        return relu(x)

# case: an_output_from_the_host -> runtime_compute|mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        import math
        ask({"do": "output", "value": {"host": {"dtype": "float32", "shape": [16, 64], "at": 0}}}, bytes(4096))
        return relu(x)

# case: an_output_that_is_nested_deeply -> bad_result|mismatch|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        v = {"t": describe(relu(x))}
        for _ in range(60):
            v = [v]
        ask({"do": "output", "value": v})
        return x

# case: an_output_of_many_expanded_tensors -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = relu(x)
        v = {"t": describe(y, shape=[1 << 28], stride=[0])}
        ask({"do": "output", "value": [v] * 4000})
        return y

# case: a_state_of_foreign_tensors -> bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        ask({"do": "constructed", "state": [["w", {"t": {"s": 77, "dtype": "float32", "shape": [1], "stride": [1], "offset": 0}}]]})

    def forward(self, x):
        return relu(x)

# case: a_second_thread_that_sends_at_the_same_time -> bad_result|runtime_error|exited|mismatch|timeout
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        import threading
        def flood():
            while True:
                try:
                    connection().sendall(b"\x02\0\0\0\0\0\0\0{}")
                except OSError:
                    return
        threads = [threading.Thread(target=flood, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        return relu(x)

# case: a_process_that_never_reads_replies -> timeout|bad_result|exited
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        header = json.dumps({"do": "generator"}).encode()
        message = struct.pack("<II", len(header), 0) + header
        while True:
            connection().sendall(message)

# case: failed_with_a_hostile_text -> bad_result|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask({"do": "failed", "phase": "forward", "kind": "K\u0000\ud800", "text": "\u0000<script>" * 1000, "line": 3})
        return relu(x)

# case: failed_in_a_phase_that_was_over -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        ask({"do": "failed", "phase": "import", "kind": "ImportError", "text": "no", "line": -5})
        return relu(x)

# case: a_raw_copy_from_the_host_and_back -> bad_result|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        for i in range(4):
            op("copy_", {"t": describe(y[4 * i : 4 * i + 4])}, {"host": {"dtype": "float32", "shape": [4, 64], "at": 0}})
        return y

# case: an_operator_that_sets_storages -> runtime_compute|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        reply = op("set_", {"t": describe(x)}, {"t": describe(x)})
        raise RuntimeError(reply)

# case: an_operator_that_reads_files -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        reply = op("from_file", "/etc/passwd")
        raise RuntimeError(reply)

# case: an_operator_that_knows_no_bounds -> bad_result|runtime_compute|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        reply = op("_unsafe_index", {"t": describe(x)}, [{"host": {"dtype": "int64", "shape": [1], "at": 0}}])
        raise RuntimeError(reply)

# case: two_honest_requests_by_hand
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        z = relu(x)
        op("copy_", {"t": describe(y)}, {"t": describe(z)})
        return y

# case: an_unused_generator_and_a_seed
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        number = ask({"do": "generator"})[0]["generator"]
        ask({"do": "seed", "seed": 3, "generator": number})
        return relu(x)

# case: an_honest_thread
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: raw
# use: relu
class ModelNew(nn.Module):
    def forward(self, x):
        import threading
        result = []
        thread = threading.Thread(target=lambda: result.append(relu(x)))
        thread.start()
        thread.join()
        return result[0]
