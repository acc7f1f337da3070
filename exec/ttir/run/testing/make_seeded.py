"""Compiles the kernels with planted defects to Triton IR: make_seeded.py FOLDER, in the workspace's root.

Each file of kernels becomes a text of parts. A part is a line "//// NAME KIND LINE", lines "//// bad LAUNCH" or
"//// good LAUNCH", and a module. KIND and LINE are those of the defect; a part without one has no bad launches.
"""

import builtins
import os
import sys

import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

HERE = os.path.join("exec", "ttir", "run", "testing", "seeded")
FILES = ["bounds_kernels", "program_race_kernels", "thread_race_kernels", "value_kernels", "hardware_kernels"]


def cases_of(name):
    """The cases of one file. The code's file names stay relative, as they come into the texts."""
    import seeded_case

    path = os.path.join(HERE, name + ".py")
    with open(path) as file:
        code = builtins.compile(file.read(), path, "exec")
    seeded_case.CASES.clear()
    exec(code, {"__name__": name, "__file__": path})
    return list(seeded_case.CASES)


def text_of(case, constants):
    """The text behind the passes on Triton IR."""
    names = case.function.arg_names
    signature = {name: case.signature.get(name, "constexpr").split(":")[0] for name in names}
    values = {(names.index(name),): value for name, value in constants.items()}
    attributes = {
        (index,): [["tt.divisibility", 16]]
        for index, name in enumerate(names)
        if case.signature.get(name, "").endswith(":16")
    }
    target = GPUTarget("cuda", case.capability, 32)
    source = ASTSource(case.function, signature, values, attributes)
    backend = make_backend(target)
    options = backend.parse_options({"sanitize_overflow": False})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    stages = {}
    backend.add_stages(stages, options, source.language)
    functions = backend.get_codegen_implementation(options)
    module = source.make_ir(target, options, functions, backend.get_module_map(), context)
    return str(stages["ttir"](module, {}))


def planted_line(function):
    """The line in the file of the only one that ends with the comment."""
    lines, first = function.raw_src, function.starting_line_number
    planted = [first + i for i, line in enumerate(lines) if line.rstrip().endswith("# planted")]
    assert len(planted) == 1, (function.__name__, planted)
    return planted[0]


def parts_of(case):
    name = case.function.__name__
    launches = {"bad": case.bad, "good": case.good}
    both = "BAD" in case.function.arg_names
    for kinds in (["bad"], ["good"]) if both else (["bad", "good"],):
        constants = dict(case.constants, BAD=kinds == ["bad"]) if both else case.constants
        is_bad = "bad" in kinds
        head = f"//// {name} {case.kind if is_bad else 'none'} {planted_line(case.function) if is_bad else 0}\n"
        lines = "".join(f"//// {kind} {launch}\n" for kind in kinds for launch in launches[kind])
        yield head + lines + text_of(case, constants)


def main(folder):
    sys.path.insert(0, HERE)
    site = os.path.dirname(os.path.dirname(os.path.abspath(triton.__file__)))
    os.makedirs(folder, exist_ok=True)
    for name in FILES:
        text = "".join(part for case in cases_of(name) for part in parts_of(case))
        with open(os.path.join(folder, name + ".ttir"), "w") as file:
            file.write(text.replace(site, "site-packages"))


if __name__ == "__main__":
    main(sys.argv[1])
