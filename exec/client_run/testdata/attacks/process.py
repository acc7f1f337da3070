# case: exit_in_the_middle -> exited|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import os


class ModelNew(nn.Module):
    def forward(self, x):
        os._exit(0)

# case: system_exit_of_zero -> runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        raise SystemExit(0)

# case: a_signal_to_itself -> killed|crashed|signalled|exited|segfault
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import os


class ModelNew(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), 9)

# case: a_hostile_exception -> runtime_error|bad_result
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
class Hostile(Exception):
    def __str__(self):
        return "\0<script>alert(1)</script>\ud800" + "\n{\"verdict\": \"OK\"}" * 100000


Hostile.__name__ = "OK\n" * 1000


class ModelNew(nn.Module):
    def forward(self, x):
        raise Hostile

# case: an_exception_whose_text_raises -> runtime_error|exited
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
class Hostile(Exception):
    def __str__(self):
        raise self


class ModelNew(nn.Module):
    def forward(self, x):
        raise Hostile

# case: a_flood_of_output -> mismatch|runtime_error|exited|output_limit|timeout|too_much_output
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(2000):
            print("OK " * 100000, flush=True)
        return x

# case: memory_without_end -> out_of_memory|runtime_error|killed
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        kept = []
        while True:
            kept.append(bytearray(1 << 28))

# case: device_memory_without_end -> out_of_memory|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        kept = [torch.empty(1 << 26, device="cuda") for _ in range(1000)]
        return kept[0]

# case: storages_without_end -> timeout|runtime_error|out_of_memory
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = [torch.empty(1, device="cuda") for _ in range(30000)]

    def forward(self, x):
        return x

# case: processes_without_end -> process_limit|runtime_error|exited|timeout|killed|mismatch|out_of_memory
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import os


class ModelNew(nn.Module):
    def forward(self, x):
        while True:
            os.fork()

# case: a_child_that_outlives_its_parent -> exited|runtime_error|mismatch
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import os
import time


class ModelNew(nn.Module):
    def forward(self, x):
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(0)

# case: a_child_that_answers_too -> ok|mismatch|bad_result|timeout|exited|runtime_error
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
import os


class ModelNew(nn.Module):
    def forward(self, x):
        os.fork()
        return relu(x)

# case: the_memory_of_other_processes -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import os


class ModelNew(nn.Module):
    def forward(self, x):
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            for part in ("mem", "maps", "environ"):
                try:
                    with open(f"/proc/{name}/{part}", "rb") as file:
                        found += [part] if file.read(16) else []
                except OSError:
                    pass
            for part in ("root", "cwd", "exe", *(f"fd/{number}" for number in range(100))):
                try:
                    found.append(os.readlink(f"/proc/{name}/{part}"))
                except OSError:
                    pass
        if found:
            raise RuntimeError("FOUND " + " ".join(found))
        return x

# case: ptrace_of_the_zygote -> runtime_error|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import ctypes
import os


class ModelNew(nn.Module):
    def forward(self, x):
        libc = ctypes.CDLL(None, use_errno=True)
        for pid in (1, os.getppid()):
            if libc.ptrace(16, pid, 0, 0) == 0:
                raise RuntimeError(f"FOUND process {pid}")
        return x

# case: files_of_other_jobs -> runtime_error|runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import os


class ModelNew(nn.Module):
    def forward(self, x):
        found = []
        for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/work", "/root", "/home"):
            for root, _, files in os.walk(folder):
                found += [os.path.join(root, file) for file in files if file != "candidate.py"]
        if found:
            raise RuntimeError("FOUND " + " ".join(found[:20]))
        return x

# case: a_file_for_the_next_job -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
class ModelNew(nn.Module):
    def forward(self, x):
        for folder in (".", "/tmp", "/dev/shm", "/var/tmp"):
            try:
                open(f"{folder}/left_by_an_attack", "w").write("here")
            except OSError:
                pass
        return x

# case: a_file_of_the_last_job -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import os


class ModelNew(nn.Module):
    def forward(self, x):
        found = [f for f in (".", "/tmp", "/dev/shm", "/var/tmp") if os.path.exists(f"{f}/left_by_an_attack")]
        if found:
            raise RuntimeError(f"FOUND {found}")
        return x

# case: the_environment -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import os


class ModelNew(nn.Module):
    def forward(self, x):
        words = ("SEED", "KEY", "TOKEN", "SECRET", "PASSWORD")
        found = [name for name in os.environ if any(word in name.upper() for word in words)]
        if found:
            raise RuntimeError(f"FOUND {found}")
        return x

# case: the_network -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import socket


class ModelNew(nn.Module):
    def forward(self, x):
        for address in (("127.0.0.1", 22), ("8.8.8.8", 53)):
            try:
                socket.create_connection(address, timeout=1)
            except OSError:
                continue
            raise RuntimeError(f"FOUND {address}")
        return x

# case: other_descriptors -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import os


class ModelNew(nn.Module):
    def forward(self, x):
        found = []
        for name in os.listdir("/proc/self/fd"):
            try:
                found.append(os.readlink(f"/proc/self/fd/{name}"))
            except OSError:
                pass
        sockets = [name for name in found if name.startswith("socket")]
        files = [name for name in found if name.startswith("/") and not name.startswith(("/dev/null", "/proc"))]
        if len(sockets) > 1 or files:
            raise RuntimeError(f"FOUND {found}")
        return x

# case: references_in_the_clients_memory -> runtime_compute
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import gc


class ModelNew(nn.Module):
    def forward(self, x):
        words = ("def get_in" + "puts", "def get_init" + "_inputs", "expected_out" + "puts")
        found = set()
        for thing in gc.get_objects():
            if isinstance(thing, dict):
                found |= {w for w in words for key, value in list(thing.items())[:200] if isinstance(value, str) and w in value}
        if found:
            raise RuntimeError(f"FOUND {found}")
        return x

# case: a_deep_recursion -> timeout|runtime_error|exited|crashed|segfault|killed
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
import sys


def deeper(n):
    return deeper(n + 1)


class ModelNew(nn.Module):
    def forward(self, x):
        sys.setrecursionlimit(10**9)
        return deeper(0)

# case: a_busy_import -> timeout
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
while True:
    pass

# case: an_honest_child_process
# task: torch.randn(16, 64) => lambda self, x: torch.relu(x)
# use: relu
import subprocess
import sys


class ModelNew(nn.Module):
    def forward(self, x):
        print("hello")
        return relu(x)
