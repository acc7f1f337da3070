"""TensorBoard events of a run."""

import glob
import os
import sys

# tensorboardX would import torch, which takes two seconds and half a gigabyte; scalars do not need it.
sys.modules.setdefault("torch", None)

from tensorboardX import SummaryWriter  # noqa: E402

# Fields of metrics.jsonl by the group they are shown in; all others go under "other".
_GROUPS = {
    "reward_plan": "reward",
    "reward_code": "reward",
    "valid_rate": "share",
    "compiled_rate": "share",
    "correct_rate": "share",
    "fused_rate": "share",
    "truncated_rate": "share",
    "mean_speedup": "speedup",
    "loss": "learner",
    "entropy": "learner",
    "gradient_norm": "learner",
    "learning_rate": "learner",
    "clip_fraction": "learner",
    "logprob_max_diff": "learner",
    "importance": "learner",
    "truncated_fraction": "learner",
    "stale_token_rate": "share",
}


def tag_of(name):
    if name in _GROUPS:
        return f"{_GROUPS[name]}/{name}"
    return f"time/{name}" if name.startswith(("seconds_", "tokens_per_s")) else f"other/{name}"


class EventWriter:
    """Writes each step and each evaluation once. Starts again at the run's first step in each process,
    so that steps that a resumed run repeats do not appear twice."""

    def __init__(self, folder):
        self._folder = os.path.join(folder, "tensorboard")
        os.makedirs(self._folder, exist_ok=True)
        for old in glob.glob(os.path.join(self._folder, "events.out.tfevents.*")):
            os.remove(old)
        self._writer = SummaryWriter(self._folder)
        self._last_step = 0
        self._last_evaluation = -1

    def update(self, run):
        for metrics in run.metrics:
            if metrics["step"] <= self._last_step:
                continue
            self._last_step = metrics["step"]
            self._add("", metrics)
        for evaluation in run.evaluations:
            if evaluation["step"] <= self._last_evaluation:
                continue
            self._last_evaluation = evaluation["step"]
            self._add("held_out", evaluation)
        self._writer.flush()

    def _add(self, prefix, fields):
        for name, value in fields.items():
            if name == "step" or isinstance(value, bool) or not isinstance(value, (int, float)):
                continue
            tag = f"{prefix}/{name}" if prefix else tag_of(name)
            self._writer.add_scalar(tag, value, fields["step"])

    def close(self):
        self._writer.close()
