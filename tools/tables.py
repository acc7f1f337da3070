"""Writes the tables of docs/*.md and README.md from results/*.csv; with --check only compares them.

A page has each table between two lines:

    <!-- table: results/generation.csv columns=what,value,peer where=page=yes -->
    <!-- end -->

`columns` and `where` are optional. `where=column=value` selects rows and may occur several times; a value
with spaces needs quotes: where="subject=decode attention". results/README.md describes the columns.
"""

import argparse
import csv
import glob
import os
import re
import shlex
import sys

CSV_COLUMNS = (
    "id", "subject", "setting", "metric", "value", "unit", "peer", "peer_value", "bound", "machine",
    "commit", "date", "command", "page",
)
OTHER_FILES = ("gpu_tests",)  # has other columns: tools/gpu_tests.sh
DEFAULT_COLUMNS = ("what", "value", "peer", "bound", "machine", "commit")
DEFAULT_CONDITIONS = (("page", "yes"),)
BEGIN = re.compile(r"<!-- table: (.+?) -->\s*$")
END = "<!-- end -->"
FENCES = ("```", "~~~")


class TableError(Exception):
    """One sentence about a page or a file of results that cannot be used."""


def read_rows(root, name):
    """The rows of results/NAME.csv as dictionaries."""
    path = os.path.join(root, "results", name + ".csv")
    if not os.path.exists(path):
        raise TableError(f"results/{name}.csv does not exist.")
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    if not lines or tuple(lines[0]) != CSV_COLUMNS:
        raise TableError(f"results/{name}.csv must begin with the line {','.join(CSV_COLUMNS)}.")
    rows = []
    ids = set()
    for number, cells in enumerate(lines[1:], 2):
        if len(cells) != len(CSV_COLUMNS):
            raise TableError(f"results/{name}.csv, line {number} has {len(cells)} cells instead of {len(CSV_COLUMNS)}.")
        row = dict(zip(CSV_COLUMNS, cells))
        check_row(name, number, row, ids)
        ids.add(row["id"])
        rows.append(row)
    return rows


def check_row(name, number, row, ids):
    where = f"results/{name}.csv, line {number}"
    for column in ("id", "subject", "metric", "value"):
        if not row[column]:
            raise TableError(f"{where} has no {column}.")
    if row["id"] in ids:
        raise TableError(f"{where} repeats the id {row['id']}.")
    if row["page"] not in ("yes", "no"):
        raise TableError(f"{where}: page is yes or no, not '{row['page']}'.")
    if row["commit"] and not re.fullmatch(r"[0-9a-f]{7,40}", row["commit"]):
        raise TableError(f"{where}: '{row['commit']}' is no commit.")
    if row["date"] and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", row["date"]):
        raise TableError(f"{where}: '{row['date']}' is no date of the form 2026-11-25.")


def with_commas(text):
    """1234567 as 1,234,567; words, versions and decimals stay as they are."""
    return re.sub(r"(?<![\w.,])\d{4,}(?!\w|\.\d)", lambda match: f"{int(match.group()):,}", text)


def cell_text(row, column):
    if column == "what":
        text = ": ".join(part for part in (row["setting"], row["metric"]) if part)
    elif column == "value":
        text = " ".join(part for part in (with_commas(row["value"]), row["unit"]) if part)
    elif column == "peer":
        text = ": ".join(part for part in (row["peer"], with_commas(row["peer_value"])) if part)
    elif column == "bound":
        text = with_commas(row["bound"])
    elif column in ("commit", "command") and row[column]:
        text = f"`{row[column]}`"
    else:
        text = row[column]
    return text.replace("|", "\\|")


def parse_marker(text):
    """(table's name, columns, conditions) of a marker's text after 'table:'; columns is None for the default ones."""
    try:
        words = shlex.split(text)
    except ValueError:
        raise TableError("a quotation mark is not closed.")
    name = re.sub(r"^results/|\.csv$", "", words[0])
    columns = None
    conditions = []
    for word in words[1:]:
        key, _, value = word.partition("=")
        if key == "columns":
            columns = tuple(value.split(","))
            for column in columns:
                if column not in CSV_COLUMNS + ("what",):
                    raise TableError(f"there is no column '{column}'.")
        elif key == "where":
            column, equals, wanted = value.partition("=")
            if column not in CSV_COLUMNS:
                raise TableError(f"there is no column '{column}'.")
            if not equals:
                raise TableError(f"'{word}' must have the form where=column=value.")
            conditions.append((column, wanted))
        else:
            raise TableError(f"'{word}' is neither columns=... nor where=....")
    return name, columns, tuple(conditions) or DEFAULT_CONDITIONS


def table_lines(root, marker):
    """The Markdown lines of a marker's table."""
    name, columns, conditions = parse_marker(marker)
    rows = [row for row in read_rows(root, name) if all(row[column] == wanted for column, wanted in conditions)]
    if not rows:
        raise TableError("no row fulfils the conditions.")
    if columns is None:
        columns = [column for column in DEFAULT_COLUMNS if any(cell_text(row, column) for row in rows)]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        lines.append("| " + " | ".join(cell_text(row, column) for column in columns) + " |")
    return lines


def rewrite(root, page, text):
    """(the page with new tables, the markers of the tables that differed)."""
    result = []
    different = []
    lines = text.split("\n")
    fence = ""
    i = 0
    while i < len(lines):
        line = lines[i]
        result.append(line)
        i += 1
        opening = line.lstrip()[:3]
        if opening in FENCES and fence in ("", opening):
            fence = "" if fence else opening
        begin = None if fence else BEGIN.fullmatch(line)
        if begin is None:
            continue
        marker = begin.group(1)
        end = i
        while end < len(lines) and lines[end].strip() != END and not BEGIN.fullmatch(lines[end]):
            end += 1
        try:
            if end == len(lines) or lines[end].strip() != END:
                raise TableError(f"the line {END} is missing.")
            made = [""] + table_lines(root, marker) + [""]
        except TableError as error:
            raise TableError(f"{page}, table {marker}: {error}")
        if lines[i:end] != made:
            different.append(marker)
        result += made + [lines[end]]
        i = end + 1
    return "\n".join(result), different


def pages(root):
    """Paths of the pages below root that may hold tables."""
    found = sorted(glob.glob(os.path.join(root, "docs", "*.md"))) + [os.path.join(root, "README.md")]
    return [os.path.relpath(path, root) for path in found if os.path.exists(path)]


def check_all_data(root):
    """Checks every file of results, including those that no page shows."""
    for path in sorted(glob.glob(os.path.join(root, "results", "*.csv"))):
        name = os.path.basename(path)[: -len(".csv")]
        if name not in OTHER_FILES:
            read_rows(root, name)


def run(root, check):
    """The program's exit code; prints differences and errors on stderr."""
    code = 0
    try:
        check_all_data(root)
    except TableError as error:
        print(f"tables: {error}", file=sys.stderr)
        code = 1
    for page in pages(root):
        path = os.path.join(root, page)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            new_text, different = rewrite(root, page, text)
        except TableError as error:
            print(f"tables: {error}", file=sys.stderr)
            code = 1
            continue
        if check:
            for marker in different:
                print(f"tables: {page}, table {marker}: differs from the data. Run tools/tables.py.", file=sys.stderr)
                code = 1
        elif new_text != text:
            with open(path, "w", encoding="utf-8") as file:
                file.write(new_text)
            print(f"{page}: {len(different)} tables written")
    return code


def main(arguments):
    parser = argparse.ArgumentParser(description="Writes the tables of docs/*.md and README.md from results/*.csv.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page differs from the data")
    parser.add_argument(
        "--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))), help="the repository's root"
    )
    options = parser.parse_args(arguments)
    return run(options.root, options.check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
