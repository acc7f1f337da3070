"""Reads the tables of the paper from its LaTeX source and prints the cells in which paper.csv differs.

check_published.py --tex=FILE [--csv=FILE]

It knows no position of a cell. Level, k and metric of a column come from the words of the header above it, and from
the caption where the header has none. Exit codes: 0 no difference, 1 differences, 2 a file cannot be read.
"""

import argparse
import csv
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import latex  # noqa: E402

NAMES = {
    "tab:kernelbench_valid_level1": "main",
    "tab:reward_shape_ablation": "reward_shape",
    "tab:data_mixture": "data_mixture",
    "tab:alpha_ablation": "alpha",
    "tab:kernelbench_passk_level1": "passk_level1",
    "tab:kernelbench_passk_level2": "passk_level2",
    "tab:kernelbench_diverseinput": "diverse_inputs",
    "tab:basemodel_comparison": "base_model",
    "tab:reward_assignment_ablation": "reward_assignment",
}
COLUMNS = ("table", "row", "level", "k", "metric", "value", "tex_line")
METRICS = ("valid", "compiled", "correct", "fast_1", "fast_2", "mean speedup")
DEFAULT_K = "10"  # the paper: "We use k = 10 as a default unless specified."
NUMBER = re.compile(r"-?\d+(\.\d+)?$")


class Difference(Exception):
    """One sentence about a table that cannot be understood."""


def parts(text):
    """ "99.0 / 23.0" -> ["99.0", "23.0"]"""
    return [part.strip() for part in text.split("/")]


def is_metrics(text):
    return all(part in METRICS for part in parts(text))


class Header:
    """The metrics of each column, and the words above them."""

    def __init__(self):
        self.rows = []
        self.metrics = {}  # column -> names

    def add(self, cells):
        self.rows.append(cells)
        self.metrics.update({c.first: parts(c.text) for c in cells if c.text and is_metrics(c.text)})

    def words(self, column):
        """Texts of all header cells over a column."""
        return " ".join(c.text for row in self.rows for c in row if c.first <= column <= c.last)

    def find(self, pattern, column, caption, default=None):
        """What the pattern's group matches above the column, else in the caption, else the default."""
        for text in (self.words(column), caption):
            found = set(re.findall(pattern, text, re.IGNORECASE))
            if len(found) > 1:
                raise Difference(f"'{text}' names several values of '{pattern}'.")
            if found:
                return found.pop()
        if default is None:
            raise Difference(f"neither the header nor the caption '{caption}' matches '{pattern}'.")
        return default


def read_row(table, name, header, cells):
    """The values of a row of figures, as {(table, row, level, k, metric): (value, line)}."""
    first = min(header.metrics)
    row = ", ".join(cell.text for cell in cells if cell.last < first)
    line = next(cell.line for cell in cells if cell.line is not None)
    values = {}
    for cell in cells:
        if cell.first < first or (not cell.text and cell.first not in header.metrics):
            continue
        metrics = header.metrics.get(cell.first)
        numbers = parts(cell.text)
        if metrics is None or len(metrics) != len(numbers) or not all(map(NUMBER.match, numbers)):
            raise Difference(f"{name}, line {line}: '{cell.text}' does not fit its column ({metrics}).")
        level = header.find(r"level ?(\d)", cell.first, table.caption)
        k = header.find(r"pass@(\d+)", cell.first, table.caption, DEFAULT_K)
        open_ = "open_" if "w/o robust verifier" in header.words(cell.first) else ""
        for metric, number in zip(metrics, numbers):
            key = (name, row, level, k, open_ + metric.replace(" ", "_"))
            if key in values:
                raise Difference(f"{name}, line {line}: two values of {key}.")
            values[key] = (number, line)
    missing = [c for c in header.metrics if c not in {cell.first for cell in cells}]
    if missing:
        raise Difference(f"{name}, line {line}: columns {missing} have no value.")
    return values


def read_table(table, name):
    values = {}
    header = Header()
    after_values = False  # the next header is another one
    for cells in table.rows:
        if not any(cell.text for cell in cells):
            continue
        if not any(c.first in header.metrics and NUMBER.match(parts(c.text)[0]) for c in cells):
            header = Header() if after_values else header
            header.add(cells)
            after_values = False
            continue
        after_values = True
        row = read_row(table, name, header, cells)
        repeated = sorted(set(row) & set(values))
        if repeated:
            raise Difference(f"{name}: two values of {repeated[0]}.")
        values.update(row)
    return values


def read_tex(source):
    """All published values of a LaTeX source, as {(table, row, level, k, metric): (value, line)}."""
    values = {}
    for table in latex.read_tables(source):
        if table.label not in NAMES:
            raise Difference(f"the table '{table.label}' is not among the known ones.")
        values.update(read_table(table, NAMES[table.label]))
    return values


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    if not lines or tuple(lines[0]) != COLUMNS:
        raise Difference(f"{path} must begin with the line {','.join(COLUMNS)}.")
    values = {}
    for number, cells in enumerate(lines[1:], 2):
        if len(cells) != len(COLUMNS):
            raise Difference(f"{path}, line {number} has {len(cells)} cells instead of {len(COLUMNS)}.")
        key = tuple(cells[:5])
        if key in values:
            raise Difference(f"{path}, line {number} repeats {', '.join(key)}.")
        values[key] = (cells[5], int(cells[6]))
    return values


def differences(tex, published):
    """Sentences about cells that are not the same in both."""
    sentences = []
    for key in sorted(set(tex) | set(published)):
        where = ", ".join(key)
        if key not in published:
            sentences.append(f"{where}: {tex[key][0]} in line {tex[key][1]} of the source is not in the CSV")
        elif key not in tex:
            sentences.append(f"{where}: {published[key][0]} in the CSV is not in the source")
        elif tex[key] != published[key]:
            sides = "{} (line {}) in the source, {} (line {}) in the CSV".format(*tex[key], *published[key])
            sentences.append(f"{where}: {sides}")
    return sentences


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tex", required=True, help="LaTeX source of the paper")
    parser.add_argument("--csv", default=os.path.join(HERE, "paper.csv"))
    options = parser.parse_args(arguments)
    try:
        with open(options.tex, encoding="utf-8") as file:
            tex = read_tex(file.read())
        published = read_csv(options.csv)
    except (OSError, UnicodeDecodeError, latex.LatexError, Difference) as error:
        print(f"check_published: {error}", file=sys.stderr)
        return 2
    found = differences(tex, published)
    for sentence in found:
        print(sentence)
    tables = len({key[0] for key in tex})
    print(f"{len(tex)} cells in {tables} tables of the source, {len(published)} in the CSV, {len(found)} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
