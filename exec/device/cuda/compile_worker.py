"""Compiles Triton IR for GPUs, one request a line of JSON on stdin, one answer a line on stdout.

No candidate reaches this process; the IR it gets was parsed and verified before. It needs no GPU. Requests:
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


def answer(line):
    try:
        request = json.loads(line)
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
        print(json.dumps(answer(line)), file=out, flush=True)


if __name__ == "__main__":
    main()
