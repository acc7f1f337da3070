"""Takes pages of shared memory with several threads before gigabytes are copied there: page by page, as one copy meets
them, it is ten times slower than the copy itself."""

import ctypes
import os
import threading

LEAST = 32 << 20  # bytes; less is not worth it
_WRITE = 23  # MADV_POPULATE_WRITE of Linux 5.14
_PAGE = 4096
_PIECE = 16 << 20
_MOST_THREADS = 8


def _madvise():
    function = ctypes.CDLL(None, use_errno=True).madvise
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    function.restype = ctypes.c_int
    return function


def populate(tensor):
    """Makes the pages under a byte tensor of mapped memory present. Does nothing where the kernel cannot, or where
    there is no room: whoever touches them then finds out."""
    size = tensor.numel()
    if size < LEAST:
        return
    start = tensor.data_ptr() // _PAGE * _PAGE
    end = tensor.data_ptr() + size
    madvise = _madvise()
    pieces = iter(range(start, end, _PIECE))
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                piece = next(pieces, None)
            # The call releases the interpreter's lock.
            if piece is None or madvise(piece, min(_PIECE, end - piece), _WRITE) != 0:
                return

    threads = [threading.Thread(target=work) for _ in range(min(_MOST_THREADS, os.cpu_count() or 1) - 1)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
