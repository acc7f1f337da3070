"""A window: memory that two processes share by passing a descriptor. GPU memory by CUDA's virtual memory management
(cuMemCreate with a POSIX descriptor as handle), or a memfd where there is no GPU.

Whoever maps a window can write it at any time: nothing that is read from one may be trusted, and nothing secret may lie
in one.
"""

import ctypes
import fcntl
import mmap
import os
import struct

import torch

from plain_torch import plain_torch

_PINNED, _ON_DEVICE, _POSIX_FD, _READ_WRITE = 1, 1, 1, 3  # of CUmemAllocationType and the like
_PAGE = 4096


class _Driver:
    """The few calls of libcuda that a window takes, on torch's current device."""

    def __init__(self):
        self._library = ctypes.CDLL("libcuda.so.1")
        torch.zeros(1, device="cuda")  # torch's context is this thread's from here on
        device = torch.cuda.current_device()
        # CUmemAllocationProp: type, kind of handle, location (type, id), none of Windows', no flags.
        self.properties = struct.pack("4iP8x", _PINNED, _POSIX_FD, _ON_DEVICE, device, 0)
        self.access = struct.pack("3i", _ON_DEVICE, device, _READ_WRITE)  # CUmemAccessDesc

    def call(self, name, *arguments):
        code = getattr(self._library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            error = (text.value or b"").decode()
            if error == "CUDA_ERROR_OUT_OF_MEMORY":
                raise torch.OutOfMemoryError(f"CUDA out of memory in {name}")
            raise RuntimeError(f"{name} failed: {error or code}")

    def granularity(self):
        size = ctypes.c_size_t()
        self.call("cuMemGetAllocationGranularity", ctypes.byref(size), self.properties, 0)
        return size.value


class _Mapped:
    """What torch needs to take foreign memory for a tensor."""

    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


def round_up(size, device):
    """The least size of a window on that device ("cuda" or "cpu") with room for so many bytes."""
    grain = _Driver().granularity() if device == "cuda" else _PAGE
    return max(1, -(-size // grain)) * grain


class Window:
    """`bytes` is the memory as a tensor of uint8."""

    def __init__(self, mapped, release=lambda: None):
        self.bytes = mapped
        self._release = release

    def close(self):
        """Gives the mapping back, once. Tensors that are views of `bytes` must not be used any more."""
        self.bytes = None
        self._release()


def create(size, device):
    """(window of zeros, descriptor) of a size that round_up() gives: the descriptor is the caller's to pass on and to
    close."""
    window, fd = (_create_cuda if device == "cuda" else _create_shared)(size)
    # Fresh GPU memory may hold what this process had there before: expected outputs, say.
    with plain_torch():
        window.bytes.zero_()
    synchronize(device)
    return window, fd


def synchronize(device):
    """Waits until all that this process queued on a GPU is done."""
    if device == "cuda":
        torch.cuda.synchronize()


@plain_torch()
def _create_shared(size):
    fd = os.memfd_create("window", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    # Nobody whom the descriptor is passed to can make the memory end where it is read.
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return Window(torch.frombuffer(mmap.mmap(fd, size), dtype=torch.uint8)), fd  # unmapped with the last tensor


def _create_cuda(size):
    driver, handle, fd = _Driver(), ctypes.c_ulonglong(), ctypes.c_int(-1)
    address, length, zero = ctypes.c_ulonglong(), ctypes.c_size_t(size), ctypes.c_ulonglong(0)
    driver.call("cuMemCreate", ctypes.byref(handle), length, driver.properties, zero)
    try:  # the mapping keeps the memory
        driver.call("cuMemAddressReserve", ctypes.byref(address), length, ctypes.c_size_t(0), zero, zero)
        driver.call("cuMemMap", address, length, ctypes.c_size_t(0), handle, zero)
        driver.call("cuMemSetAccess", address, length, driver.access, ctypes.c_size_t(1))
        driver.call("cuMemExportToShareableHandle", ctypes.byref(fd), handle, _POSIX_FD, zero)
    finally:
        driver.call("cuMemRelease", handle)

    def release():
        torch.cuda.synchronize()
        driver.call("cuMemUnmap", address, length)
        driver.call("cuMemAddressFree", address, length)

    return Window(torch.as_tensor(_Mapped(address.value, size), device="cuda"), release), fd.value
