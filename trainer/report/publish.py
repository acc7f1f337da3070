"""Writes report.html and TensorBoard events from the files of a run folder.

publish.py --run=DIR            once
publish.py --run=DIR --follow   again whenever there are new steps, until SIGTERM; then a last time

The trainer starts it with --follow as a child, and with --parent=PID, its own: when that process is
gone, or with SIGHUP, which says that it is going, this one ends without a last time. It only reads what the trainer writes and runs at the lowest
priority, so that it can neither hold up nor fail the run. A lock file keeps a second publisher out.
"""

import argparse
import fcntl
import importlib
import os
import signal
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import page  # noqa: E402
import run_data  # noqa: E402

_EXAMPLES = 4
_LOCK = ".report.lock"  # in the run folder
_ROUND = 1.0  # most seconds between two looks at the parent
_LOCK_WAIT = 10.0  # seconds that a single rendering waits for another publisher


def load_part(name):
    """(module, None), or (None, reason): a machine with a GPU may have only torch."""
    try:
        return importlib.import_module(name), None
    except ModuleNotFoundError as error:
        return None, f"not made here: this Python lacks {error.name}"


figures, no_figures = load_part("figures")
events, no_events = load_part("events")


class NoEvents:
    """Replaces the event writer when tensorboardX is missing."""

    def update(self, run):
        pass

    def close(self):
        pass


def write_atomic(path, text):
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".report-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def publish(folder, writer):
    """Updates page and events; returns the published state, to detect changes."""
    run = run_data.RunData(folder)
    writer.update(run)
    examples = []
    first, last = run.before_after()
    if first and last:
        examples = run_data.choose_examples(
            run.samples(first["step"]), run.samples(last["step"]), _EXAMPLES
        )
    if figures is None:
        svg = f"<p>Curves are {no_figures}; <code>trainer/report/publish.py --run=DIR</code> adds them elsewhere.</p>"
    else:
        svg = figures.curves(run.metrics, run.evaluations, run.modelled)
    write_atomic(os.path.join(folder, "report.html"), page.render(run, svg, examples))
    return len(run.metrics), len(run.evaluations)


def state_of(folder):
    run = run_data.RunData(folder)
    return len(run.metrics), len(run.evaluations)


class Follower:
    """Tells a publisher when to stop."""

    def __init__(self, parent):
        self._parent = parent  # 0: whoever it is
        self._stop, self._hung_up = threading.Event(), threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: self._stop.set())
        signal.signal(signal.SIGHUP, lambda *_: self._hung_up.set() or self._stop.set())

    def orphaned(self):
        """A killed parent keeps its pid until its last thread has ended; SIGHUP arrives before that."""
        return self._hung_up.is_set() or (self._parent != 0 and os.getppid() != self._parent)

    def stopped(self):
        return self._stop.is_set() or self.orphaned()

    def wait(self, seconds):
        """Sleeps, but not past a reason to stop."""
        end = time.monotonic() + seconds
        while not self.stopped() and (left := end - time.monotonic()) > 0:
            self._stop.wait(min(_ROUND, left))


def take_lock(folder, follower, patience):
    """An open, locked file: this is the folder's only publisher while it is open. None: there is another
    publisher, or a reason to stop."""
    lock = open(os.path.join(folder, _LOCK), "a", encoding="utf-8")
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if follower.stopped() or time.monotonic() > end:
                lock.close()
                return None
        follower.wait(0.2)


def keep_published(options, follower):
    if follower.orphaned():
        return
    writer = NoEvents() if events is None else events.EventWriter(options.run)
    try:
        shown = None
        while options.follow and not follower.stopped():
            if state_of(options.run) != shown:
                shown = publish(options.run, writer)
            follower.wait(options.interval)
        # When the parent is gone, another publisher may have started, and the run is not finished.
        if not follower.orphaned():
            publish(options.run, writer)
    finally:
        writer.close()


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--run", required=True, help="run folder")
    parser.add_argument("--follow", action="store_true", help="until SIGTERM")
    parser.add_argument("--interval", type=float, default=30, help="seconds between two renderings")
    parser.add_argument("--parent", type=int, default=0, help="end when this parent process is gone")
    options = parser.parse_args(arguments)
    # Under `bazel run` a relative folder is relative to the user's working directory.
    options.run = os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", ""), options.run)
    if not os.path.isdir(options.run):
        print(f"{options.run}: no such folder", file=sys.stderr)
        return 2
    follower = Follower(options.parent)
    if options.follow:
        os.nice(19)
    for what, problem in (("curves", no_figures), ("TensorBoard events", no_events)):
        if problem:
            print(f"{what}: {problem}", file=sys.stderr)
    # The publisher of a killed run may still be rendering when the resumed run starts.
    lock = take_lock(options.run, follower, float("inf") if options.follow else _LOCK_WAIT)
    if lock is None:
        print(f"{options.run}: another publisher keeps the report up to date", file=sys.stderr)
        return 1
    with lock:
        keep_published(options, follower)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
