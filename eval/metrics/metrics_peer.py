"""A second implementation of PerTask (scores.h), from its definitions: exact fractions, and every subset enumerated.

metrics_peer.py CASES RESULTS reads a JSON list of cases, each {"samples": [...], "queries": [...]}, and writes for
each case the list of its results: {"tasks": {name: value}, "lost": n, "short_tasks": n, "left_out": [names]}, or
null where the query is an error.
"""

import itertools
import json
import re
import sys
from collections import Counter, defaultdict
from fractions import Fraction

_METRICS = {
    "valid": lambda s: s["valid"],
    "compiled": lambda s: s["compiled"],
    "correct": lambda s: s["correct"],
    "fast_1": lambda s: s["correct"] and s["speedup_low"] > 1,
    "fast_2": lambda s: s["correct"] and s["speedup_low"] > 2,
    "mean_speedup": lambda s: s["speedup"],
}


def value_of(sample, metric):
    """The exact value of a sample, or None without a verdict."""
    block = "score"
    if metric.startswith("open_"):
        block, metric = "open", metric.removeprefix("open_")
    return None if sample[block] is None else Fraction(_METRICS[metric](sample[block]))


def maxima(values, estimator, k):
    """How often each maximum occurs among the choices of k samples that the estimator averages over."""
    if estimator == "max_over_first":
        return Counter([max(values[:k])])
    return Counter(max(chosen) for chosen in itertools.combinations(values, min(k, len(values))))


def expected_minimum(variants, estimator, k):
    """The mean of the minimum over variants, with a choice of samples for each variant."""
    total, choices = Fraction(0), 0
    for combination in itertools.product(*(maxima(values, estimator, k).items() for values in variants)):
        times = 1
        for _, count in combination:
            times *= count
        total += times * min(maximum for maximum, _ in combination)
        choices += times
    return total / choices


def answer(samples, query):
    k = query["k"]
    variants = defaultdict(list)  # task id -> values in the order of sample numbers
    for sample in sorted(samples, key=lambda s: s["sample"]):
        variants[sample["task"]].append(value_of(sample, query["metric"]))
    if any(len(values) < k for values in variants.values()):
        return None
    if query["metric"].startswith("open_") and all(sample["open"] is None for sample in samples):
        return None
    tasks = defaultdict(list)
    for task, values in variants.items():
        name = re.sub(r"_v\d+$", "", task) if query["shapes"] == "all_must_pass" else task
        tasks[name].append([value for value in values if value is not None])
    result = {"tasks": {}, "short_tasks": 0, "left_out": []}
    result["lost"] = sum(value is None for values in variants.values() for value in values)
    for name, of_task in sorted(tasks.items()):
        if any(not values for values in of_task):
            result["left_out"].append(name)
            continue
        result["short_tasks"] += any(len(values) < k for values in of_task)
        result["tasks"][name] = float(expected_minimum(of_task, query["estimator"], k))
    return result


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cases = json.load(file)
    results = [[answer(case["samples"], query) for query in case["queries"]] for case in cases]
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main()
