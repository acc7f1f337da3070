"""Draws a figure of eval/tables as SVG and PNG from a JSON object on stdin: figures.py --svg=FILE --png=FILE.

The object is what figures.cc writes: {"form": "bars", "title", "kinds", "bars": [{"label", "shares"}]}, or
{"form": "curves", "title", "panels": [{"title", "curves": [{"label", "points": [[k, value, low, high]],
"published_label", "published": [[k, value]]}]}]}. Shares of bars are in [0, 1], values of curves as
drawn; low and high are null if there is no interval.
"""

import argparse
import json
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.fonttype"] = "none"
matplotlib.rcParams["svg.hashsalt"] = "tritonrl"  # else the SVG's ids are random
matplotlib.rcParams["text.parse_math"] = False  # labels are plain text, "$" and "_" too

from matplotlib import pyplot  # noqa: E402

# Red is functionality, as in the figure of the paper; what passes is green.
KIND_COLORS = {
    "syntax": "#a78bfa",
    "functionality": "#dc2626",
    "compile": "#f97316",
    "incorrect": "#facc15",
    "correct": "#16a34a",
    "no verdict": "#9ca3af",
}


def bars(data):
    """One stacked bar for each model."""
    figure, axes = pyplot.subplots(figsize=(2 + 1.1 * len(data["bars"]), 4.5))
    labels = [bar["label"] for bar in data["bars"]]
    places = range(len(labels))
    bottoms = [0.0] * len(labels)
    for i, kind in enumerate(data["kinds"]):
        heights = [100 * bar["shares"][i] for bar in data["bars"]]
        drawn = axes.bar(places, heights, 0.7, bottom=bottoms, label=kind, color=KIND_COLORS.get(kind))
        texts = [f"{height:.1f}" if height >= 3 else "" for height in heights]
        axes.bar_label(drawn, texts, label_type="center", fontsize=7)
        bottoms = [bottom + height for bottom, height in zip(bottoms, heights)]
    axes.set_xticks(places, labels, rotation=30, ha="right", fontsize=8)
    axes.set_ylabel("share of the samples (%)", fontsize=8)
    axes.set_ylim(0, 100)
    axes.legend(reverse=True, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.set_title(data["title"], fontsize=10)
    return figure


def curve(axes, data, color):
    """A line with intervals as error bars, and the published values dashed with hollow marks."""
    if data["points"]:
        k, value, _, _ = zip(*data["points"])
        axes.plot(k, value, "o-", color=color, label=data["label"], markersize=4, linewidth=1.6)
        for k, value, low, high in data["points"]:
            if low is not None:
                axes.errorbar(k, value, [[value - low], [high - value]], color=color, capsize=2, linewidth=0.8)
    if data["published"]:
        k, value = zip(*data["published"])
        label = data["published_label"]
        axes.plot(k, value, "s--", color=color, label=label, markersize=4, linewidth=1, markerfacecolor="none")


def curves(data):
    """The panels beside each other; a curve's colour is that of its place in its panel."""
    panels = data["panels"]
    figure, grid = pyplot.subplots(1, len(panels), figsize=(5.5 * len(panels), 4.5), squeeze=False)
    for axes, panel in zip(grid.flat, panels):
        ks = {point[0] for c in panel["curves"] for point in c["points"] + c["published"]}
        for i, one in enumerate(panel["curves"]):
            curve(axes, one, f"C{i % 10}")
        axes.set_title(panel["title"], fontsize=10)
        axes.set_xlabel("k", fontsize=8)
        axes.set_xticks(sorted(ks))
        axes.set_ylim(bottom=0)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.2)
        if axes.lines:
            axes.legend(fontsize=7)
    figure.suptitle(data["title"], fontsize=11)
    return figure


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--svg", required=True)
    parser.add_argument("--png", required=True)
    options = parser.parse_args(arguments)
    data = json.load(sys.stdin)
    figure = {"bars": bars, "curves": curves}[data["form"]](data)
    figure.savefig(options.svg, format="svg", metadata={"Date": None}, bbox_inches="tight")
    figure.savefig(options.png, format="png", dpi=150, bbox_inches="tight")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
