"""Compiles the kernels of the corpus to Triton IR and writes one text for each: make_corpus.py FOLDER.

It runs in the workspace's root with the pinned wheels, needs no GPU, and is run again when Triton's version changes.
The paths in the texts are relative, so that they do not depend on the machine.
"""

import builtins
import os
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

HERE = os.path.join("exec", "ttir", "testing")
FILES = ["elementwise_kernels.py", "tensor_kernels.py", "control_kernels.py", "bench_kernels.py", "race_kernels.py"]


def load_kernels():
    """All cases. The code's file names stay relative, as they come into the texts."""
    sys.path.insert(0, HERE)
    import corpus_case

    for name in FILES:
        path = os.path.join(HERE, name)
        with open(path) as file:
            code = builtins.compile(file.read(), path, "exec")
        exec(code, {"__name__": name.removesuffix(".py"), "__file__": path})
    return corpus_case.CASES


def compile_case(case):
    """The text of one kernel before or, for `raw`, after the passes on Triton IR."""
    signature = dict(case.signature, **{name: "constexpr" for name in case.constants})
    signature = {name: signature[name] for name in case.function.arg_names}
    constants = {(case.function.arg_names.index(name),): value for name, value in case.constants.items()}
    attributes = {
        (index,): [["tt.divisibility", 16]]
        for index, name in enumerate(case.function.arg_names)
        if signature[name].startswith("*")
    }
    target = GPUTarget("cuda", case.capability, 32)
    source = ASTSource(case.function, signature, constants, attributes)
    return source, target


def texts_of(case):
    """The texts as the front end emits it and after the passes on Triton IR, by name."""
    from triton._C.libtriton import ir

    source, target = compile_case(case)
    backend = make_backend(target)
    options = backend.parse_options({"debug": case.debug, "sanitize_overflow": False})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    stages = {}
    backend.add_stages(stages, options, source.language)
    module = source.make_ir(target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context)
    raw = str(module)
    optimized = str(stages["ttir"](module, {}))
    return raw, optimized


def main(folder):
    site = os.path.dirname(os.path.dirname(os.path.abspath(triton.__file__)))
    os.makedirs(folder, exist_ok=True)
    for case in load_kernels():
        name = case.function.__name__
        raw, optimized = texts_of(case)
        with open(os.path.join(folder, name + ".ttir"), "w") as file:
            file.write(optimized.replace(site, "site-packages"))
        if os.environ.get("RAW"):
            with open(os.path.join(os.environ["RAW"], name + ".raw.ttir"), "w") as file:
                file.write(raw.replace(site, "site-packages"))


if __name__ == "__main__":
    main(sys.argv[1])
