"""The simplest check one would write: Triton's own interpreter, both programs in one process, torch.allclose.

The peer of //bench/verify:verify_bench: `python naive_check.py reference.py candidate.py` prints a JSON object.
"""

import importlib.util
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402  (after the switch, which Triton reads when kernels are decorated)


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    torch.manual_seed(0)
    reference = load(sys.argv[1], "reference")
    candidate = load(sys.argv[2], "candidate")
    arguments = reference.get_init_inputs()
    torch.manual_seed(1)
    want_model = reference.Model(*arguments)
    torch.manual_seed(1)
    got_model = candidate.ModelNew(*arguments)
    with torch.no_grad():
        for trial in range(5):
            inputs = reference.get_inputs()
            if not torch.allclose(want_model(*inputs), got_model(*inputs), atol=1e-2, rtol=1e-2):
                print('{"correct": false}')
                return
    print('{"correct": true}')


main()
