"""A kernel of the corpus: a Triton function and what it is compiled for."""

from collections import namedtuple

Case = namedtuple("Case", "function signature constants capability debug")

CASES = []


def case(signature, capability=90, debug=False, **constants):
    """Decorator of a kernel. `signature`: the types of the parameters that are not constants, split by spaces."""

    def register(function):
        names = [name for name in function.arg_names if name not in constants]
        types = dict(zip(names, signature.split()))
        assert len(types) == len(names) == len(signature.split()), function.__name__
        CASES.append(Case(function, types, constants, capability, debug))
        return function

    return register
