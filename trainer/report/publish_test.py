"""Tests of the report: contents, escaping, following a run, bad files."""

import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import figures  # noqa: E402
import page  # noqa: E402
import publish  # noqa: E402
import run_data  # noqa: E402


def step(number):
    return {
        "step": number,
        "reward_plan": 0.5 + 0.01 * number,
        "reward_code": 0.4,
        "valid_rate": 0.8,
        "compiled_rate": 0.7,
        "correct_rate": 0.5,
        "mean_speedup": 1.1,
        "speedup_modelled": True,
        "loss": None,
        "seconds_rollout": 1.0,
    }


def evaluation(number, correct):
    return {
        "step": number,
        "k": 2,
        "temperature": 1.0,
        "modelled": True,
        "tasks": 2,
        "correct": correct,
        "valid": 0.9,
        "mean_speedup": 1 + correct,
        "pass_1_correct": correct,
        "pass_2_correct": min(1.0, correct * 1.5),
        "greedy_correct": correct,
    }


def sample(task, reason, response, speedup=0.0):
    status = "STATUS_OK" if reason == "OK" else "STATUS_CANDIDATE_FAILED"
    outcome = {"status": status, "reason": reason, "message": "because"}
    verdict = {"outcome": outcome, "speedup": {"speedup": speedup}}
    return {"task": task, "prompt": "x = a < b\n", "response": response, "verdict": verdict}


def append(path, *objects):
    with open(path, "a", encoding="utf-8") as file:
        for value in objects:
            file.write(json.dumps(value) + "\n")


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.run_dir = self.temporary.name
        os.mkdir(self.path("samples"))
        with open(self.path("config.textproto"), "w", encoding="utf-8") as file:
            file.write("steps: 4\nseed: 0\n")

    def tearDown(self):
        self.temporary.cleanup()

    def path(self, name):
        return os.path.join(self.run_dir, name)

    def report(self):
        with open(self.path("report.html"), encoding="utf-8") as file:
            return file.read()

    def write_finished_run(self):
        append(self.path("metrics.jsonl"), *[step(i) for i in range(1, 5)])
        append(self.path("evaluations.jsonl"), evaluation(0, 0.25), evaluation(4, 0.75))
        append(
            self.path("samples/greedy_000000.jsonl"),
            sample("level1/1_a", "MISMATCH", "<think> two kernels </think> OLD<b>"),
            sample("level1/2_b", "OK", "same", 1.0),
        )
        append(
            self.path("samples/greedy_000004.jsonl"),
            sample("level1/1_a", "OK", "<think> fuse </think> NEW", 2.5),
            sample("level1/2_b", "OK", "same", 1.0),
        )

    def test_finished_run(self):
        self.write_finished_run()
        self.assertEqual(publish.main(["--run=" + self.run_dir]), 0)
        text = self.report()
        self.assertIn("4 of 4 steps done", text)
        self.assertIn("<svg", text)
        self.assertIn("<td>correct</td><td>25.0 %</td><td>75.0 %</td><td>+50.0</td>", text)
        self.assertIn("<td>correct, pass@2</td><td>37.5 %</td><td>100.0 %</td><td>+62.5</td>", text)
        self.assertIn("mean speedup (modelled)", text)
        self.assertIn("speedup 2.50x (modelled)", text)
        # What a model wrote must not become part of the page.
        self.assertIn("OLD&lt;b&gt;", text)
        self.assertNotIn("OLD<b>", text)
        # The task that improved comes first; nothing is fetched from elsewhere.
        self.assertLess(text.index("level1/1_a"), text.index("level1/2_b"))
        for outside in ("<script", "<link", 'src="http', "@import"):
            self.assertNotIn(outside, text)
        self.assertEqual(len(glob.glob(self.path("tensorboard/events.out.tfevents.*"))), 1)

    def test_python_without_the_plotting_packages(self):
        self.write_finished_run()
        hidden = "import sys\nfor name in ('matplotlib', 'tensorboardX'): sys.modules[name] = None\n"
        program = f"{hidden}sys.path.insert(0, {HERE!r})\nimport publish\nsys.exit(publish.main(sys.argv[1:]))\n"
        run = subprocess.run(
            [sys.executable, "-c", program, "--run=" + self.run_dir], capture_output=True, text=True, timeout=60
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("curves: not made here: this Python lacks matplotlib", run.stderr)
        self.assertIn("TensorBoard events: not made here: this Python lacks tensorboardX", run.stderr)
        text = self.report()
        self.assertIn("lacks matplotlib", text)
        self.assertIn("<td>correct</td><td>25.0 %</td><td>75.0 %</td><td>+50.0</td>", text)

    def test_events_hold_every_step_once(self):
        self.write_finished_run()
        publish.main(["--run=" + self.run_dir])
        publish.main(["--run=" + self.run_dir])  # a resumed run publishes again
        files = glob.glob(self.path("tensorboard/events.out.tfevents.*"))
        self.assertEqual(len(files), 1)
        steps = scalar_steps(files[0], "reward/reward_plan")
        self.assertEqual(steps, [1, 2, 3, 4])
        self.assertEqual(scalar_steps(files[0], "held_out/correct"), [0, 4])

    def test_empty_and_damaged_files(self):
        self.assertEqual(publish.main(["--run=" + self.run_dir]), 0)
        self.assertIn("0 of 4 steps done", self.report())
        append(self.path("metrics.jsonl"), step(1))
        with open(self.path("metrics.jsonl"), "a", encoding="utf-8") as file:
            file.write('garbage\n{"step": 2, "rew')
        self.assertEqual([m["step"] for m in run_data.RunData(self.run_dir).metrics], [1])
        self.assertEqual(publish.main(["--run=" + self.run_dir]), 0)
        self.assertIn("1 of 4 steps done", self.report())

    def test_missing_folder(self):
        self.assertEqual(publish.main(["--run=" + self.path("none")]), 2)

    def test_follow_until_sigterm(self):
        append(self.path("metrics.jsonl"), step(1))
        command = [sys.executable, os.path.join(HERE, "publish.py"), "--run=" + self.run_dir]
        child = subprocess.Popen(command + ["--follow", "--interval=0.1"])
        try:
            self.wait_for("1 of 4 steps done")
            append(self.path("metrics.jsonl"), step(2))
            self.wait_for("2 of 4 steps done")
            child.send_signal(signal.SIGTERM)
            self.assertEqual(child.wait(timeout=60), 0)
        finally:
            child.kill()
            child.wait()

    def start_parent(self):
        """(process that starts a publisher and waits for ever, the publisher's pid)."""
        program = (
            "import os, subprocess, sys, time\n"
            "follow = [sys.executable, *sys.argv[1:], '--follow', '--interval=0.1', f'--parent={os.getpid()}']\n"
            "print(subprocess.Popen(follow).pid, flush=True)\n"
            "time.sleep(600)\n"
        )
        arguments = [os.path.join(HERE, "publish.py"), "--run=" + self.run_dir]
        parent = subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True)
        self.addCleanup(parent.stdout.close)
        self.addCleanup(parent.wait)
        self.addCleanup(parent.kill)
        return parent, int(parent.stdout.readline())

    def test_follow_ends_with_a_killed_parent(self):
        append(self.path("metrics.jsonl"), step(1))
        parent, publisher = self.start_parent()
        self.addCleanup(end, publisher)
        self.wait_for("1 of 4 steps done")
        os.kill(publisher, signal.SIGSTOP)  # so that it sees the next step and the death at once
        parent.kill()
        parent.wait()
        append(self.path("metrics.jsonl"), step(2))
        os.kill(publisher, signal.SIGCONT)
        deadline = time.monotonic() + 10
        while is_running(publisher) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertFalse(is_running(publisher), "it outlived its parent")
        self.assertIn("1 of 4 steps done", self.report())

    def test_a_hang_up_ends_it_without_a_last_rendering(self):
        append(self.path("metrics.jsonl"), step(1))
        command = [sys.executable, os.path.join(HERE, "publish.py"), "--run=" + self.run_dir, "--follow"]
        child = subprocess.Popen(command)
        try:
            self.wait_for("1 of 4 steps done")
            append(self.path("metrics.jsonl"), step(2))
            child.send_signal(signal.SIGHUP)
            self.assertEqual(child.wait(timeout=60), 0)
        finally:
            child.kill()
            child.wait()
        self.assertIn("1 of 4 steps done", self.report())

    def test_one_publisher_at_a_time(self):
        append(self.path("metrics.jsonl"), step(1))
        command = [sys.executable, os.path.join(HERE, "publish.py"), "--run=" + self.run_dir, "--follow"]
        first = subprocess.Popen(command + ["--interval=0.1"])
        second = None
        try:
            self.wait_for("1 of 4 steps done")
            with unittest.mock.patch.object(publish, "_LOCK_WAIT", 0.1):
                self.assertEqual(publish.main(["--run=" + self.run_dir]), 1)
            second = subprocess.Popen(command + ["--interval=0.1"])
            first.kill()
            first.wait()
            append(self.path("metrics.jsonl"), step(2))
            self.wait_for("2 of 4 steps done")  # the second has taken over
            second.send_signal(signal.SIGTERM)
            self.assertEqual(second.wait(timeout=60), 0)
        finally:
            for child in (first, second):
                if child is not None:
                    child.kill()
                    child.wait()

    def wait_for(self, text):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if os.path.exists(self.path("report.html")) and text in self.report():
                return
            time.sleep(0.05)
        self.fail(f"the report never said {text!r}")

    def test_moving_mean(self):
        self.assertEqual(figures.moving_mean([1, 2, 3, 4], width=2), [1, 1.5, 2.5, 3.5])

    def test_a_run_in_epochs_takes_its_steps_from_the_versions(self):
        self.write_finished_run()
        with open(self.path("config.textproto"), "w", encoding="utf-8") as file:
            file.write("steps: 0\nepochs: 2\n")
        with open(self.path("versions.json"), "w", encoding="utf-8") as file:
            json.dump([{"steps": "9"}], file)
        self.assertEqual(publish.main(["--run=" + self.run_dir]), 0)
        self.assertIn("4 of 9 steps done", self.report())

    def test_levels_have_rows_of_their_own(self):
        of_levels = {"level1_tasks": 2, "level1_correct": 0.5, "level2_tasks": 1, "level2_correct": 0.25}
        text = page.table({**evaluation(0, 0.5), **of_levels}, None, modelled=False)
        self.assertIn("<td>level 1: correct</td><td>50.0 %</td></tr>", text)
        self.assertIn("<td>level 2: correct</td><td>25.0 %</td></tr>", text)
        one = page.table({**evaluation(0, 0.5), "level1_tasks": 3, "level1_correct": 0.5}, None, modelled=False)
        self.assertNotIn("level 1", one)

    def test_one_evaluation_has_one_column(self):
        text = page.table(evaluation(0, 0.5), None, modelled=False)
        self.assertIn("<td>correct</td><td>50.0 %</td></tr>", text)
        self.assertNotIn("after", text)


def is_running(pid):
    """False for one that has ended, whether or not somebody has collected it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def end(pid):
    if is_running(pid):
        os.kill(pid, signal.SIGKILL)


def scalar_steps(path, tag):
    """Steps of a scalar in an event file, read with the format's own framing."""
    from tensorboardX.proto import event_pb2

    steps = []
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 8], "little")
        event = event_pb2.Event.FromString(data[at + 12 : at + 12 + length])
        steps += [event.step for value in event.summary.value if value.tag == tag]
        at += 12 + length + 4
    return steps


if __name__ == "__main__":
    unittest.main()
