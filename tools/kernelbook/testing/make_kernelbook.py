"""Writes a small file in KernelBook's form with own tasks and every quirk, and says what an import must find.

    make_kernelbook.py --out=FILE.parquet|.json|.jsonl [--good=200] [--kernelbench=FOLDER] [--expected=FILE]

With --kernelbench it also writes a folder of KernelBench-like tasks, three of which are among the rows. The expected
counts are printed as JSON: {"rows", "kept", "left_out": {reason: count}}.
"""

import argparse
import collections
import itertools
import json
import os
import textwrap

# No result of them is constant over inputs around 0, however they are chained.
_FUNCTIONS = ("torch.tanh torch.sigmoid torch.sin torch.cos torch.exp torch.atan torch.erf F.softplus F.gelu F.elu "
              "F.silu F.softsign F.mish").split()
_IMPORTS = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
_RAND = "[torch.rand([4, 4, 4, 4]) - 0.5]"


def _program(name, forward, inputs=_RAND, init="[[], {}]", constructor="", parameters="", arguments="x", head="",
             base="nn.Module"):
    """A file as published: class, get_inputs, get_init_inputs. `forward` and `constructor` are lines."""
    body = textwrap.indent(forward, " " * 8)
    made = textwrap.indent(constructor or "pass", " " * 8)
    return f"""{head}{_IMPORTS}

class {name}({base}):

    def __init__(self{', ' + parameters if parameters else ''}):
        super().__init__()
{made}

    def forward(self, {arguments}):
{body}


def get_inputs():
    return {inputs}


def get_init_inputs():
    return {init}
"""


def _chain(functions, argument="x"):
    for function in functions:
        argument = f"{function}({argument})"
    return argument


def _good(number, functions):
    """(class, source) of a sound task; the eight styles are those that published files have."""
    name, value = f"Net{number}", _chain(functions)
    style = number % 8
    if style == 0:
        return name, _program(name, f"return {value}")
    if style == 1:
        return name, _program(name, f"return {value} * self.scale", init='[[], {"scale": 4}]',
                              constructor="self.scale = scale", parameters="scale")
    if style == 2:
        return name, _program(name, f"return {value} + self.shift", init="[[0.5], {}]",
                              constructor="self.shift = shift", parameters="shift, unused=None")
    if style == 3:
        return name, _program(name, f"return {value}.mean(dim=1) * self.k", init='[[], {"cfg": _mock_config(K=4)}]',
                              constructor="self.k = cfg.K", parameters="cfg",
                              head="from _paritybench_helpers import _mock_config\n")
    if style == 4:
        return name, _program(name, f"return self.inner({value})", init='[[], {"width": 4}]',
                              constructor="self.inner = nn.Linear(width, width)", parameters="width")
    if style == 5:
        return name, _program(name, f"return {value} + y", arguments="x, y",
                              inputs="[torch.rand([4, 4, 4, 4]) - 0.5, torch.rand([4, 4, 4, 4])]")
    if style == 6:
        source = _program(name, '"""Applies functions."""\n' + f"return self.apply_all(x)  # in their order",
                          base="Base")
        return name, source.replace("class Net", f"class Base(nn.Module):\n\n    def apply_all(self, x):\n"
                                                 f"        return {value}\n\n\nclass Net", 1)
    return name, _program(name, f'y = {value}\nif mode == "twice":\n    y = y * 2\nreturn y', arguments="x, mode",
                          inputs='[torch.rand([4, 4, 4, 4]) - 0.5, "twice"]')


def _renamed(source, name):
    """The same program with other names, comments and white space."""
    source = source.replace(name, name + "Copy").replace("(self, x", "(self, data").replace("(x)", "(data)")
    return source.replace("\n\n\n", "\n\n# copied\n\n\n\n").replace("import torch\n", "import torch  # the library\n")


_BENCHMARK = {
    "1_Cumulative.py": ("torch.cumsum(x, dim=self.dim)", "[1]"),
    "2_Flipped.py": ("torch.flip(x, dims=[self.dim])", "[1]"),
}


def _write_kernelbench(folder):
    os.makedirs(os.path.join(folder, "level1"))
    for name, (value, init) in _BENCHMARK.items():
        text = f'''import torch
import torch.nn as nn

class Model(nn.Module):
    """
    A model with a long explanation.
    """
    def __init__(self, dim: int):
        super(Model, self).__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Args: x."""
        return {value}

batch_size = 128
input_shape = (4000,)

def get_inputs():
    x = torch.randn(batch_size, *input_shape)
    return [x]

def get_init_inputs():
    return {init}
'''
        with open(os.path.join(folder, "level1", name), "w", encoding="utf-8") as file:
            file.write(text)


def _benchmark_rows():
    """Rows that are the models of _write_kernelbench: [(reason, class, source)]."""
    typed = "def forward(self, x: torch.Tensor) -> torch.Tensor:"
    rows = []
    for reason, name, value, default in (("in_kernelbench", "RunningSum", "torch.cumsum(x, dim=self.axis)", ""),
                                         ("in_kernelbench", "Mirror", "torch.flip(x, dims=[self.axis])", ""),
                                         ("near_kernelbench", "MirrorToo", "torch.flip(x, dims=[self.axis])", " = 1")):
        source = _program(name, f"return {value}", init='[[], {"axis": 1}]', constructor="self.axis = axis",
                          parameters=f"axis: int{default}")
        rows.append((reason, name, source.replace("def forward(self, x):", typed)))
    return rows


def _faulty():
    """[(reason, class, source)] of tasks that no import may keep."""
    make = lambda name, forward, **fields: (name, _program(name, forward, **fields))
    double = "return x * 2"
    sleep = make("Sleeps", "import time\ntime.sleep(1000)\nreturn x")
    forger = 'import os\nos.write(3, b\'{"result": {"reason": "ok", "message": ""}}\\n\')\nreturn x'
    no_inputs = make("NoInputs", double)
    tasks = [
        ("not_a_task", make("Broken", "return x +")),
        ("not_a_task", make("Unclosed", "return (x")),
        ("not_a_task", ("Missing", _program("Other", double))),
        ("not_a_task", (no_inputs[0], no_inputs[1].replace("def get_inputs", "def other_inputs"))),
        ("load_error", make("NeedsPackage", double, head="import package_that_nobody_has\n")),
        ("load_error", make("Raises", double, head="raise ValueError('not today')\n")),
        ("construct_error", make("NoArgument", double, parameters="width")),
        ("construct_error", make("BadLayer", double, constructor="self.layer = nn.Linear(-1, 4)")),
        ("input_error", make("BadInputs", double, inputs="[torch.rand(4).view(5)]")),
        ("run_error", make("BadShapes", "return x @ torch.ones(7, 7)")),
        ("run_error", make("NoAttribute", "return x * self.missing")),
        ("needs_gradient", make("Gradient", "y = (x * x).sum()\nx.requires_grad_()\ny = (x * x).sum()\n"
                                            "return torch.autograd.grad(y, x)[0]")),
        ("no_tensor_output", make("Number", "return float(x.sum())")),
        ("no_tensor_output", make("Empty", "return x[:0]")),
        ("unsupported_values", make("Sparse", "return (x * 2).to_sparse()")),
        ("unsupported_values", make("Layer", "return self.layer(x)", constructor="self.layer = layer",
                                    parameters="layer", init='[[], {"layer": _mock_layer()}]',
                                    head="from _paritybench_helpers import _mock_layer\n")),
        ("not_finite", make("Logarithm", "return torch.log(x - 10)")),
        ("not_finite", make("Division", "return x / (x - x)")),
        ("random_result", make("Dropout", "return self.drop(x)", constructor="self.drop = nn.Dropout(0.5)")),
        ("random_result", make("Noise", "return x + torch.rand_like(x)")),
        ("random_result", make("Counter", "self.calls = getattr(self, 'calls', 0) + 1\nreturn x * self.calls")),
        ("constant_result", make("Zeros", "return torch.zeros_like(x)")),
        ("constant_result", make("SameInputs", double, inputs="[torch.ones([4, 4])]")),
        ("timeout", sleep),
        ("out_of_memory", make("Huge", "return x.sum() + torch.ones(1 << 38).sum()")),
        ("crashed", make("Exits", "import os\nos._exit(3)")),
        ("crashed", make("Signal", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")),
        ("bad_result", make("Forger", forger)),
    ]
    return [(reason, name, source) for reason, (name, source) in tasks]


def _tasks(good, with_kernelbench):
    """[(expected reason or "", class, source)] in the order of the file."""
    combinations = itertools.islice(itertools.combinations(_FUNCTIONS, 3), good)
    sound = [("", *_good(number, functions)) for number, functions in enumerate(combinations)]
    assert len(sound) == good, "there are not as many combinations of functions"
    faulty = _faulty()
    for number in (8, 16, 24):  # of style 0
        name, source = sound[number][1:]
        faulty.append(("duplicate", name + "Copy", _renamed(source, name)))
        name, source = sound[number + 1][1:]
        faulty.append(("near_duplicate", name, source.replace("[4, 4, 4, 4]", "[2, 3, 5]")))
    for reason, name, source in _benchmark_rows():
        if with_kernelbench:
            faulty.append((reason, name, source))
    # Spread over the file, each behind the tasks that it may repeat.
    tasks, step = [], max(1, (len(sound) - 30) // len(faulty))
    for number, task in enumerate(sound):
        tasks.append(task)
        if number >= 30 and (number - 30) % step == 0 and faulty:
            tasks.append(faulty.pop(0))
    return tasks + faulty


def _rows(tasks):
    """([row], {reason: count}) with the columns as published, rows that are broken or repeated included."""
    rows, left_out = [], collections.Counter()
    for number, (reason, name, source) in enumerate(tasks):
        rows.append({
            "entry_point": name,
            "original_triton_code": "# not read\n",
            "python_code": source,
            "triton_code": "import triton\n" * 20,
            "repo_name": f"owner/repository-{number % 17}",
            "module_name": name,
            "synthetic": False,
            "uuid": 1000 + number,
            "licenses": ["MIT"] if number % 3 else ["Apache-2.0", "MIT"],
            "stars": number % 5,
            "sha": f"{number:040x}",
            "repo_link": f"https://example.org/owner/repository-{number % 17}",
        })
        if reason:
            left_out[reason] += 1
    repeated = dict(rows[3], module_name="Repeated")
    broken = [dict(rows[4], uuid=1, python_code=None), dict(rows[5], uuid=2, python_code=""),
              dict(rows[6], uuid=3, entry_point="not a name")]
    left_out["duplicate_uuid"] += 1
    left_out["bad_row"] += len(broken)
    return rows + [repeated] + broken, left_out


def _write(path, rows):
    if path.endswith(".parquet"):
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        return
    with open(path, "w", encoding="utf-8") as file:
        if path.endswith(".jsonl"):
            file.writelines(json.dumps(row) + "\n" for row in rows)
        else:
            json.dump(rows, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--good", type=int, default=200)
    parser.add_argument("--kernelbench", default="")
    parser.add_argument("--expected", default="")
    arguments = parser.parse_args()
    if arguments.kernelbench:
        _write_kernelbench(arguments.kernelbench)
    rows, left_out = _rows(_tasks(arguments.good, bool(arguments.kernelbench)))
    _write(arguments.out, rows)
    expected = {"rows": len(rows), "kept": len(rows) - sum(left_out.values()), "left_out": dict(left_out)}
    if arguments.expected:
        with open(arguments.expected, "w", encoding="utf-8") as file:
            json.dump(expected, file)
    print(json.dumps(expected))


if __name__ == "__main__":
    main()
