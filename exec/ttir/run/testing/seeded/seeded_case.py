"""A kernel with a planted defect: a Triton function, launches that meet the defect, and launches that do not.

The line of the defect ends with "# planted". A function with the constant BAD is compiled with and without the defect;
of another one, the launch is what is wrong. A launch is a text "GRID ARGUMENT...", with an argument for each parameter
that is no constant:

  z256        a tensor of 256 bytes, all 0
  m64%10      64 numbers i % 10 of 32 bits
  u256@64     256 bytes, of which those from 64 on were never written
  v256@64+32  the view of 32 bytes from byte 64 on, of a storage with 256 bytes
  i5, f0.5    numbers
"""

from collections import namedtuple

Seeded = namedtuple("Seeded", "kind function signature constants capability bad good")

CASES = []


def seeded(kind, signature, bad, good, capability=80, **constants):
    """Decorator of a kernel. A type of `signature` with ":16" behind it is declared to be divisible by 16."""

    def register(function):
        constant_names = set(constants) | {"BAD"}
        names = [name for name in function.arg_names if name not in constant_names]
        types = dict(zip(names, signature.split()))
        assert len(types) == len(names) == len(signature.split()), function.__name__
        for launch in bad + good:
            assert len(launch.split()) == len(names) + 1, (function.__name__, launch)
        CASES.append(Seeded(kind, function, types, constants, capability, bad, good))
        return function

    return register
