"""A window: memory that two processes share by passing a descriptor. GPU memory by CUDA's virtual memory management
(cuMemCreate with a POSIX descriptor as handle), or a memfd where there is no GPU.

Whoever maps a window can write it at any time: nothing that is read from one may be trusted, and nothing secret may lie
in one.
"""

import ctypes
import fcntl
import mmap
import os

import torch

from plain_torch import plain_torch

_PINNED, _ON_DEVICE, _POSIX_FD, _READ_WRITE = 1, 1, 1, 3  # of CUmemAllocationType and the like
_PAGE = 4096


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Flags(ctypes.Structure):
    _fields_ = [
        ("compression", ctypes.c_ubyte),
        ("rdma", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    ]


class _Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32", ctypes.c_void_p),
        ("flags", _Flags),
    ]


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class _Driver:
    """The few calls of libcuda that a window takes, on torch's current device."""

    def __init__(self):
        self._library = ctypes.CDLL("libcuda.so.1")
        torch.zeros(1, device="cuda")  # torch's context is this thread's from here on
        self.location = _Location(_ON_DEVICE, torch.cuda.current_device())

    def call(self, name, *arguments):
        code = getattr(self._library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            error = (text.value or b"").decode()
            if error == "CUDA_ERROR_OUT_OF_MEMORY":
                raise torch.OutOfMemoryError(f"CUDA out of memory in {name}")
            raise RuntimeError(f"{name} failed: {error or code}")

    def properties(self):
        return _Properties(_PINNED, _POSIX_FD, self.location)

    def granularity(self):
        size = ctypes.c_size_t()
        self.call("cuMemGetAllocationGranularity", ctypes.byref(size), ctypes.byref(self.properties()), 0)
        return size.value


class _Mapped:
    """What torch needs to take foreign memory for a tensor."""

    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


def round_up(size, device):
    """The least size of a window on that device ("cuda" or "interpreter") with room for so many bytes."""
    grain = _Driver().granularity() if device == "cuda" else _PAGE
    return max(1, -(-size // grain)) * grain


class Window:
    """`bytes` is the memory as a tensor of uint8; its size is a multiple of what round_up() gives."""

    def __init__(self, mapped, release):
        self.bytes = mapped
        self._release = release

    @staticmethod
    def create(size, device):
        """(window of zeros, descriptor): the descriptor is the caller's to pass on and to close."""
        window, fd = (_create_cuda if device == "cuda" else _create_shared)(size)
        # Fresh GPU memory may hold what this process had there before: expected outputs, say.
        with plain_torch():
            window.bytes.zero_()
        synchronize(device)
        return window, fd

    @staticmethod
    def open(fd, size, device):
        """A window that another process made with this size. The descriptor is closed."""
        if size <= 0:
            raise ValueError("a window's size is missing: the job needs in_bytes and out_bytes")
        try:
            return _open_cuda(fd, size) if device == "cuda" else _map_shared(fd, size)
        finally:
            os.close(fd)

    def close(self):
        """Gives the mapping back. Tensors that are views of `bytes` must not be used any more."""
        self.bytes = None
        release, self._release = self._release, None
        if release is not None:
            release()


def synchronize(device):
    """Waits until all that this process queued on a GPU is done."""
    if device == "cuda":
        torch.cuda.synchronize()


@plain_torch()
def _map_shared(fd, size):
    if os.fstat(fd).st_size != size:
        raise ValueError(f"a window of {os.fstat(fd).st_size} bytes instead of {size}")
    memory = mmap.mmap(fd, size)
    return Window(torch.frombuffer(memory, dtype=torch.uint8), None)  # unmapped with the last tensor


def _create_shared(size):
    fd = os.memfd_create("window", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, size)
        # Nobody whom the descriptor is passed to can make the memory end where it is read.
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        return _map_shared(fd, size), fd
    except BaseException:
        os.close(fd)
        raise


def _map_cuda(driver, handle, size):
    """Maps a handle, which is let go in any case: the mapping keeps the memory."""
    address, length = ctypes.c_ulonglong(), ctypes.c_size_t(size)
    try:
        zero = ctypes.c_ulonglong(0)
        driver.call("cuMemAddressReserve", ctypes.byref(address), length, ctypes.c_size_t(0), zero, zero)
        try:
            driver.call("cuMemMap", address, length, ctypes.c_size_t(0), handle, zero)
        except BaseException:
            driver.call("cuMemAddressFree", address, length)
            raise
    finally:
        driver.call("cuMemRelease", handle)

    def release():
        torch.cuda.synchronize()
        driver.call("cuMemUnmap", address, length)
        driver.call("cuMemAddressFree", address, length)

    try:
        access = _Access(driver.location, _READ_WRITE)
        driver.call("cuMemSetAccess", address, length, ctypes.byref(access), ctypes.c_size_t(1))
        return Window(torch.as_tensor(_Mapped(address.value, size), device="cuda"), release)
    except BaseException:
        release()
        raise


def _create_cuda(size):
    driver, handle, fd = _Driver(), ctypes.c_ulonglong(), ctypes.c_int(-1)
    none = ctypes.c_ulonglong(0)
    driver.call(
        "cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(driver.properties()), none
    )
    try:
        driver.call("cuMemExportToShareableHandle", ctypes.byref(fd), handle, _POSIX_FD, none)
    except BaseException:
        driver.call("cuMemRelease", handle)
        raise
    try:
        return _map_cuda(driver, handle, size), fd.value
    except BaseException:
        os.close(fd.value)
        raise


def _open_cuda(fd, size):
    driver, handle = _Driver(), ctypes.c_ulonglong()
    driver.call("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(fd), _POSIX_FD)
    return _map_cuda(driver, handle, size)
