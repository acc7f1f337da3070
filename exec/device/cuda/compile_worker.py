"""Compiles Triton IR for GPUs, without one. The IR was parsed and verified before, but a candidate wrote it.

A program of lines of JSON, a request each on stdin, an answer each on stdout; and a runner of a zygote (exec/workers),
which has a process for each request in the sandbox of candidates. Requests:
  {"do": "compile", "ttir": text, "arch": 90, "options": {num_warps, num_stages, num_ctas, maxnreg, ...}}
    -> {"cubin": base64, "name", "shared", "num_warps", ...}
  {"do": "flatten", "ttir": text} -> {"ttir": text in which descriptors are pointers, as before sm_90}
An answer may be {"error": text} instead.
"""

import base64
import json
import os
import re
import resource
import sys
import tempfile

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
os.environ["TRITON_ALWAYS_COMPILE"] = "1"

import triton
from triton._C.libtriton import ir, passes
from triton.backends.compiler import GPUTarget, Language
from triton.compiler.compiler import make_backend

_MEMORY = 16 << 30
_STAGES = ("ttgir", "llir", "ptx", "cubin")
_EMPTY_KERNEL = """module {
  tt.func public @warm_up(%arg0: !tt.ptr<f32>) attributes {noinline = false} {
    tt.return
  }
}
"""
_KEPT = (
    "name",
    "shared",
    "num_warps",
    "num_ctas",
    "global_scratch_size",
    "global_scratch_align",
    "profile_scratch_size",
    "profile_scratch_align",
    "tensordesc_meta",
    "launch_cooperative_grid",
    "launch_pdl",
    "tmem_size",
)


def _module(text, backend):
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    with tempfile.NamedTemporaryFile("w", suffix=".ttir") as file:
        file.write(text)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    return module


def compile_ir(request):
    target = GPUTarget("cuda", request["arch"], 32)
    backend = make_backend(target)
    options = backend.parse_options(request["options"])
    stages = {}
    backend.add_stages(stages, options, Language.TRITON)
    metadata = {"target": target, **vars(options)}
    module = _module(request["ttir"], backend)
    for stage in _STAGES:
        module = stages[stage](module, metadata)
    answer = {key: metadata[key] for key in _KEPT if metadata.get(key) is not None}
    answer["cubin"] = base64.b64encode(module).decode()
    return answer


def flatten(request):
    module = _module(request["ttir"], make_backend(GPUTarget("cuda", 80, 32)))
    manager = ir.pass_manager(module.context)
    passes.ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    passes.common.add_canonicalizer(manager)
    manager.run(module, "flatten")
    return {"ttir": str(module)}


_ACTIONS = {"compile": compile_ir, "flatten": flatten}


def _one_line(error):
    text = str(error).strip() or type(error).__name__
    if type(error).__name__ == "PTXASError":
        lines = [line for line in text.splitlines() if re.match(r"ptxas .*\b(error|fatal)\s*:", line)]
        first = text.splitlines()[0].removeprefix("PTXAS error: ")
        return f"PTXAS error: {first} {' '.join(lines)}"[:2000]
    return text.splitlines()[0][:2000]


def answer(request):
    try:
        return _ACTIONS[request["do"]](request)
    except Exception as error:  # also Triton's own, whose classes are many
        return {"error": _one_line(error)}


def main():
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Triton prints goes elsewhere
    print(json.dumps({"triton": triton.__version__}), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=out, flush=True)


def warm_up():
    """Of a zygote: its jobs find loaded and asked what Triton loads and asks when it compiles for the first time."""
    compile_ir({"ttir": _EMPTY_KERNEL, "arch": 90, "options": {}})


def run_job(job, _report):
    """Of a zygote: the answer goes into the file `answer`, whose position is that of the job before."""
    tempfile.tempdir = None  # a job has its own
    fd = job["fds"]["answer"]
    os.lseek(fd, 0, os.SEEK_SET)
    with open(fd, "wb", closefd=False) as file:
        file.write(json.dumps(answer(job["request"])).encode())


if __name__ == "__main__":
    main()
