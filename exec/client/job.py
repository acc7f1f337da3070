"""The job of a worker of exec/workers/python/worker.py that is one candidate's process.

The executor talks with it through the socket that the job gets as "executor". It writes no result: all that is known of
the candidate is known by the executor.
"""

import os
import socket
import sys

from . import main


def warm_up():
    """Once in the worker, before it forks jobs."""
    main.prepare()


def before_fork(job):
    """In the worker, for each job; the fields are the supervisor's."""
    if job.get("compiler"):
        main.prepare_compiler()


def run_job(job, on_phase):
    """Never returns. Exit code 0: the candidate came to its end, or said why not."""
    on_phase("import")
    main.run(socket.socket(fileno=job["fds"]["executor"]), job["work_dir"])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(0)
