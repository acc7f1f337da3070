"""Curves of a run as one SVG picture for an HTML page."""

import io

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.fonttype"] = "none"
matplotlib.rcParams["svg.hashsalt"] = "tritonrl"

from matplotlib import pyplot  # noqa: E402


def moving_mean(values, width=5):
    """Mean over the last `width` values, fewer at the start."""
    means = []
    for i in range(len(values)):
        window = values[max(0, i + 1 - width) : i + 1]
        means.append(sum(window) / len(window))
    return means


def _series(metrics, name):
    points = [(m["step"], m[name]) for m in metrics if isinstance(m.get(name), (int, float))]
    return [p[0] for p in points], [p[1] for p in points]


def _plot(axes, metrics, name, label):
    steps, values = _series(metrics, name)
    if not steps:
        return
    line = axes.plot(steps, moving_mean(values), label=label, linewidth=1.8)[0]
    axes.plot(steps, values, color=line.get_color(), alpha=0.25, linewidth=0.8)


def _mark(axes, evaluations, name, label):
    points = [(e["step"], e[name]) for e in evaluations if name in e]
    if points:
        axes.plot(*zip(*points), "k--o", label=label, markersize=4, linewidth=1)


def curves(metrics, evaluations, modelled):
    """Six panels: rewards, rates, plans and speedup, times, learner, agreement. SVG text."""
    note = " (modelled)" if modelled else ""
    panels = [
        ("Rewards of the samples", [("reward_plan", "plan"), ("reward_code", "code")]),
        (
            "Share of samples",
            [("valid_rate", "valid"), ("compiled_rate", "compiled"), ("correct_rate", "correct")],
        ),
        (
            "Plans and speedup" + note,
            [("fused_rate", "fused plans"), ("mean_speedup", "mean speedup" + note)],
        ),
        (
            "Seconds a step",
            [
                ("seconds_rollout", "rollout"),
                ("seconds_verify", "verify (not overlapped)"),
                ("seconds_learn", "learn"),
            ],
        ),
        ("Learner", [("entropy", "entropy, nats a token"), ("gradient_norm", "gradient norm")]),
        ("Learner vs. rollout engine", [("logprob_max_diff", "max log-probability difference")]),
    ]
    figure, grid = pyplot.subplots(2, 3, figsize=(13, 7))
    try:
        for axes, (title, series) in zip(grid.flat, panels):
            for name, label in series:
                _plot(axes, metrics, name, label)
            if title == "Share of samples":
                _mark(axes, evaluations, "correct", "correct, held out")
            axes.set_title(title, fontsize=10)
            axes.set_xlabel("step", fontsize=8)
            axes.tick_params(labelsize=8)
            axes.grid(alpha=0.2)
            if axes.lines:
                axes.legend(fontsize=7)
        figure.tight_layout()
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    finally:
        pyplot.close(figure)
    text = buffer.getvalue()
    return text[text.index("<svg") :]
