"""The typed ways in which a job can end before the comparison, and how to find the line they belong to."""

import traceback

import torch

MAX_DETAIL = 4000


# What a full GPU gives beside torch's own error: CUDA's, and those of libraries that find no memory to begin with.
_FULL = ("CUDA error: out of memory", "ALLOC_FAILED", "CUBLAS_STATUS_NOT_INITIALIZED")


def memory_outcome(error):
    """Which memory was full: "out_of_device_memory" for that of a GPU, which others may have used, "out_of_memory" for
    what the job itself may use; None: neither."""
    text = str(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return "out_of_memory"
    if isinstance(error, torch.OutOfMemoryError) or any(words in text for words in _FULL):
        return "out_of_device_memory"
    return None


def is_device_full(error):
    return memory_outcome(error) == "out_of_device_memory"


class JobFailure(Exception):
    """Ends the job with a typed outcome. `line` is 1-based in the candidate's source, 0 if unknown."""

    def __init__(self, outcome, fault, phase, message, detail="", line=0):
        super().__init__(message)
        self.outcome = outcome
        self.fault = fault
        self.phase = phase
        self.message = one_line(message)
        self.detail = detail[-MAX_DETAIL:]
        self.line = line
        self.out_of_memory = False  # of the device, which others may have used


def one_line(text, limit=400):
    """The text on one line, cut to `limit` characters."""
    flat = " ".join(str(text).split())
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


def line_in_file(error, path):
    """The innermost line of `path` on the traceback of `error` (or of its causes), 0 if none."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, SyntaxError) and error.filename == path:
            return error.lineno or 0
        line = 0
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == path:
                line = frame.lineno or 0
        if line:
            return line
        error = error.__cause__ or error.__context__
    return 0


def describe(error):
    """'TypeName: message' on one line."""
    return one_line(f"{type(error).__name__}: {error}")


def traceback_text(error):
    """The traceback as text, its end kept when it is long."""
    return "".join(traceback.format_exception(error))[-MAX_DETAIL:]
