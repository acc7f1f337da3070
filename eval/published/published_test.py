"""Rules that the published values must keep, and the exceptions that the paper itself makes."""

import collections
import csv
import os
import unittest
from decimal import Decimal

HERE = os.path.dirname(os.path.abspath(__file__))

CELLS = {
    "main": 224, "reward_shape": 35, "data_mixture": 30, "alpha": 25, "passk_level1": 210, "passk_level2": 210,
    "diverse_inputs": 120, "base_model": 50, "reward_assignment": 10,
}
NESTED = ("fast_2", "fast_1", "correct", "compiled", "valid")  # each at most the next
SHARES = NESTED + ("open_compiled", "open_correct")

PASSK = ("passk_level1", "passk_level2")


def rows(main, passk, *others):
    """(table, row) of a model in the main table, in both pass@k tables, and elsewhere."""
    return [("main", main), *((table, passk) for table in PASSK), *others]


# Rows of several tables that show the same model on the same tasks.
SAME = {
    "Qwen3-8B": rows("Qwen3 (base), 8B", "Qwen3 (8B)", ("base_model", "Qwen3-8B (base), 8B")),
    "Qwen3-14B": rows("Qwen3, 14B", "Qwen3 (14B)"),
    "Qwen3-32B": rows("Qwen3, 32B", "Qwen3 (32B)"),
    "KernelLLM": rows("KernelLLM, 8B", "KernelLLM"),
    "AutoTriton": rows("AutoTriton, 8B", "AutoTriton", ("base_model", "AutoTriton, 8B")),
    "TritonRL (D)": rows(
        "TritonRL (D), 8B", "TritonRL (D)", ("reward_shape", "Hierarchical (alpha*), -"),
        ("data_mixture", "Level 1, [1, 0]"), ("alpha", "0.1 (alpha*)"), ("reward_assignment", "speedup-correct (ours)"),
    ),
    "TritonRL (D) + IA": rows("TritonRL (D) + IA, 8B", "TritonRL (D) + IA"),
    "TritonRL (G)": rows("TritonRL (G), 8B", "TritonRL (G)"),
    "TritonRL (G) + IA": rows(
        "TritonRL (G) + IA, 8B", "TritonRL (G) + IA", ("base_model", "Qwen3-8B + TritonRL (G) + IA, 8B")
    ),
    "SFT, DeepSeek-R1": rows("SFT w. DeepSeek-R1 (w.o. RL), 8B", "SFT w. DeepSeek-R1 (w/o RL)"),
    "SFT, GPT-OSS": rows("SFT w. GPT-OSS 120B (w.o. RL), 8B", "SFT w. GPT-OSS 120B (w/o RL)"),
    "Claude-3.7": rows("Claude-3.7, -", "Claude-3.7"),
    "DeepSeek-R1": [
        ("main", "DeepSeek-R1, 685B"), ("passk_level1", "DeepSeek-R1 (685B)"), ("passk_level2", "DeepSeek-R1"),
    ],
    "GPT-OSS": rows("GPT-OSS, 120B", "GPT-oss (120B)"),
}
# (model, level, k, metric): the values that the paper prints for it.
UNEQUAL = {
    ("Qwen3-8B", 2, 10, "correct"): {"main": "0.0", "base_model": "0.0", "passk_level2": "1.0"},
}


class PublishedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.printed = {}  # (table, row, level, k, metric) -> text
        with open(os.path.join(HERE, "paper.csv"), encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                key = (line["table"], line["row"], int(line["level"]), int(line["k"]), line["metric"])
                assert key not in cls.printed, key
                cls.printed[key] = line["value"]
        cls.groups = collections.defaultdict(dict)  # (table, row, level, k) -> metric -> value
        for key, text in cls.printed.items():
            cls.groups[key[:4]][key[4]] = Decimal(text)

    def test_every_table_has_all_cells(self):
        self.assertEqual(collections.Counter(key[0] for key in self.printed), CELLS)
        for group, values in self.groups.items():
            expected = set(NESTED)
            if group[0] == "main":
                expected |= {"mean_speedup", "open_compiled", "open_correct"}
            self.assertEqual(set(values), expected, group)

    def test_shares_are_whole_percents(self):
        """The maximum over the first k samples of 100 tasks is; an unbiased estimate at k = 1 or 5 would not be."""
        for (*where, metric), text in self.printed.items():
            if metric in SHARES:
                value = Decimal(text)
                self.assertEqual(value, value.to_integral_value(), where)
                self.assertTrue(0 <= value <= 100, where)

    def test_each_metric_implies_the_one_before(self):
        for group, values in self.groups.items():
            for low, high in zip(NESTED, NESTED[1:]):
                self.assertLessEqual(values[low], values[high], (group, low, high))

    def test_fewer_checks_accept_more(self):
        for group, values in self.groups.items():
            if "open_correct" not in values:
                continue
            self.assertLessEqual(values["open_correct"], values["open_compiled"], group)
            for metric in ("compiled", "correct"):
                self.assertLessEqual(values[metric], values["open_" + metric], (group, metric))

    def test_mean_speedup_fits_the_shares(self):
        """A task counted by fast_1 adds more than 1 / N to the mean, one counted by fast_2 more than 2 / N."""
        for group, values in self.groups.items():
            if "mean_speedup" in values:
                least = (values["fast_1"] + values["fast_2"]) / 100
                self.assertGreaterEqual(values["mean_speedup"] + Decimal("0.005"), least, group)
                if values["correct"] == 0:
                    self.assertEqual(values["mean_speedup"], 0, group)

    def test_more_samples_never_lower_a_value(self):
        compared = 0
        for (table, row, level, k), values in self.groups.items():
            more = self.groups.get((table, row, level, {1: 5, 5: 10}.get(k)))
            for metric in values if more else ():
                self.assertLessEqual(values[metric], more[metric], (table, row, level, k, metric))
                compared += 1
        self.assertEqual(compared, (210 + 210 + 120) * 2 // 3)

    def test_tables_agree(self):
        unequal = {}
        repeated = 0
        for model, places in SAME.items():
            texts = collections.defaultdict(dict)  # (model, level, k, metric) -> table -> text
            for table, row in places:
                found = [key for key in self.printed if key[:2] == (table, row)]
                self.assertTrue(found, (table, row))
                for key in found:
                    texts[(model, *key[2:])][table] = self.printed[key]
            repeated += sum(len(tables) - 1 for tables in texts.values())
            unequal.update({key: tables for key, tables in texts.items() if len(set(tables.values())) > 1})
        self.assertEqual(unequal, UNEQUAL)
        self.assertEqual(repeated, 14 * 10 + 3 * 10 + 25)  # main; base_model; the other tables of (D)


if __name__ == "__main__":
    unittest.main()
