"""Reads the files of a GRPO-HRD run folder, also while the run writes them."""

import glob
import json
import os
import re


def read_json_lines(path):
    """Objects of a .jsonl file, without a torn last line."""
    if not os.path.exists(path):
        return []
    objects = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if not line.endswith("\n"):
                break
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                objects.append(value)
    return objects


def read_text(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class RunData:
    """The contents of a run folder at one time."""

    def __init__(self, folder):
        self.folder = folder
        self.metrics = read_json_lines(os.path.join(folder, "metrics.jsonl"))
        self.evaluations = sorted(
            read_json_lines(os.path.join(folder, "evaluations.jsonl")), key=lambda e: e["step"]
        )
        self.config = read_text(os.path.join(folder, "config.textproto"))
        try:
            self.versions = json.loads(read_text(os.path.join(folder, "versions.json")) or "[]")
        except ValueError:
            self.versions = []

    @property
    def total_steps(self):
        match = re.search(r"^steps: (\d+)$", self.config, re.MULTILINE)
        steps = int(match.group(1)) if match else 0
        # A configuration in epochs has no steps; the run computes them.
        return steps or int(self.versions[-1].get("steps", 0) if self.versions else 0)

    @property
    def modelled(self):
        """Whether speedups come from a roofline model and not from a clock."""
        return any(m.get("speedup_modelled") for m in self.metrics) or any(
            e.get("modelled") for e in self.evaluations
        )

    def before_after(self):
        """The first and the last evaluation; None where there is none, or only one."""
        first = self.evaluations[0] if self.evaluations else None
        last = self.evaluations[-1] if len(self.evaluations) > 1 else None
        return first, last

    def samples(self, step):
        """Evaluation samples by task: greedy ones if there are any, else sampled ones."""
        by_task = {}
        for kind in ("greedy", "eval"):
            path = os.path.join(self.folder, "samples", f"{kind}_{step:06d}.jsonl")
            for record in read_json_lines(path):
                by_task.setdefault(record.get("task", "?"), []).append(record)
            if by_task:
                break
        return by_task

    def sample_files(self):
        return sorted(glob.glob(os.path.join(self.folder, "samples", "*.jsonl")))


def is_correct(record):
    return record.get("verdict", {}).get("outcome", {}).get("status") == "STATUS_OK"


def speedup_of(record):
    if not is_correct(record):
        return 0.0
    return float(record["verdict"].get("speedup", {}).get("speedup", 0.0))


def choose_examples(before, after, count):
    """Pairs of samples of one task that show what was learned, the greatest gain first.

    `before` and `after` map tasks to lists of records. Returns (task, record, record) triples.
    """
    pairs = []
    for task in sorted(set(before) & set(after)):
        old, new = before[task][0], max(after[task], key=speedup_of)
        gain = (is_correct(new) - is_correct(old), speedup_of(new) - speedup_of(old))
        pairs.append((gain, task, old, new))
    pairs.sort(key=lambda pair: pair[0], reverse=True)
    return [(task, old, new) for _, task, old, new in pairs[:count]]
