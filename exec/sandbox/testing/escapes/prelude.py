"""What every attempt of this folder is put behind: an honest softmax whose model tries one attempt on its first call.

The test appends the file with the attempts, PARAM (a dict of what it prepared outside) and ATTEMPT (the function to
try). What an attempt prints or returns is only for the reader: whether it was held is looked up from outside.
"""

import ctypes
import errno
import os
import signal
import socket
import struct
import sys
import time

import torch
import triton
import triton.language as tl

LIBC = ctypes.CDLL(None, use_errno=True)
FORGED = {}  # set by attempts that need a wrong kernel to show that nobody believes their word


@triton.jit
def softmax(x, y, n, factor, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + i, e / tl.sum(e, 0) * factor, mask=i < n)


def name_of(error):
    return errno.errorcode.get(error.errno, str(error.errno))


def call(number, *arguments):
    """A system call by number; OSError when the kernel refuses it."""
    values = [a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in arguments]
    result = LIBC.syscall(ctypes.c_long(number), *values)
    if result == -1:
        raise OSError(ctypes.get_errno(), f"call {number}")
    return result


def each(**actions):
    """Tries every action; says what became of each."""
    said = []
    for name, action in actions.items():
        try:
            result = action()
            said.append(f"{name} DONE {result!r:.60}")
        except OSError as error:
            said.append(f"{name} {name_of(error)}")
        except Exception as error:
            said.append(f"{name} {type(error).__name__}")
    return ", ".join(said)


def read(path, size=4096):
    with open(path, "rb") as file:
        return file.read(size)


def write(path, data=b"escape"):
    with open(path, "wb", buffering=0) as file:
        return file.write(data)


class ModelNew(torch.nn.Module):
    tried = False

    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], 3.0 if FORGED else 1.0, BLOCK=256)
        if not ModelNew.tried:
            ModelNew.tried = True
            try:
                said = ATTEMPT()
            except OSError as error:
                said = name_of(error)
            print(f"escape: {said}", flush=True)
        return y
