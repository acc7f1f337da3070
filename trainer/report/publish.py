"""Writes report.html and TensorBoard events from the files of a run folder.

publish.py --run=DIR            once
publish.py --run=DIR --follow   again whenever there are new steps, until SIGTERM; then a last time

The trainer starts it with --follow as a child. It only reads what the trainer writes and runs at
the lowest priority, so that it can neither hold up nor fail the run.
"""

import argparse
import importlib
import os
import signal
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import page  # noqa: E402
import run_data  # noqa: E402

_EXAMPLES = 4


def load_part(name):
    """(module, None), or (None, why not): a machine with a GPU may have torch alone."""
    try:
        return importlib.import_module(name), None
    except ModuleNotFoundError as error:
        return None, f"not made here: this Python lacks {error.name}"


figures, no_figures = load_part("figures")
events, no_events = load_part("events")


class NoEvents:
    """Where tensorboardX is missing."""

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
    """Brings both up to date; returns what was shown, to tell whether there is something new."""
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


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--run", required=True, help="run folder")
    parser.add_argument("--follow", action="store_true", help="until SIGTERM")
    parser.add_argument("--interval", type=float, default=30, help="seconds between two renderings")
    options = parser.parse_args(arguments)
    # Under `bazel run` a relative folder is meant from where the person stands.
    options.run = os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", ""), options.run)
    if not os.path.isdir(options.run):
        print(f"{options.run}: no such folder", file=sys.stderr)
        return 2
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    if options.follow:
        os.nice(19)
    for what, problem in (("curves", no_figures), ("TensorBoard events", no_events)):
        if problem:
            print(f"{what}: {problem}", file=sys.stderr)
    writer = NoEvents() if events is None else events.EventWriter(options.run)
    try:
        shown = None
        while options.follow and not stop.is_set():
            if state_of(options.run) != shown:
                shown = publish(options.run, writer)
            stop.wait(options.interval)
        publish(options.run, writer)
    finally:
        writer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
