"""Reads the tables of a LaTeX source as grids of cells: a tokenizer and the few commands that tables use."""

import re

TOKEN = re.compile(r"%.*|\\\\|\\[A-Za-z]+\*?|\\[^A-Za-z]|[{}&$~^]|[^\\{}&$~^%]+", re.MULTILINE)

# Commands whose argument is their text, and commands that are a text themselves.
WRAPPERS = {"\\textbf", "\\mathbf", "\\textsc", "\\texttt", "\\text", "\\emph", "\\bm", "\\mathrm"}
WORDS = {"\\ours": "TritonRL ", "\\alpha": "alpha", "\\beta": "beta", "\\ ": " "}
WORDS.update({"\\" + sign: sign for sign in "#%_&$"})
RULES = {"\\toprule", "\\midrule", "\\bottomrule", "\\hline"}


class LatexError(Exception):
    """One sentence about a source that cannot be read."""


class Token:
    """A piece of the source and the number of its line."""

    def __init__(self, text, line):
        self.text = text
        self.line = line


class Cell:
    """Plain text, the columns that it covers (first, last), and the line of its first visible character."""

    def __init__(self, text, first, last, line):
        self.text = text
        self.first = first
        self.last = last
        self.line = line


class Table:
    """A table environment: its label, its caption as plain text, and its rows of cells."""

    def __init__(self, label, caption, rows):
        self.label = label
        self.caption = caption
        self.rows = rows


def tokenize(source):
    """Tokens of the source without comments."""
    tokens = []
    line = 1
    for match in TOKEN.finditer(source):
        text = match.group()
        if not text.startswith("%"):
            tokens.append(Token(text, line))
        line += text.count("\n")
    return tokens


def argument(tokens, at):
    """The tokens of the group in braces that begins at or after `at`, and the place behind it."""
    while at < len(tokens) and tokens[at].text.isspace():
        at += 1
    if at >= len(tokens) or tokens[at].text != "{":
        line = tokens[min(at, len(tokens) - 1)].line
        raise LatexError(f"line {line}: a command has no argument in braces.")
    depth = 0
    for end in range(at, len(tokens)):
        depth += {"{": 1, "}": -1}.get(tokens[end].text, 0)
        if depth == 0:
            return tokens[at + 1 : end], end + 1
    raise LatexError(f"line {tokens[at].line}: a brace is not closed.")


def plain(tokens):
    """(text, line of its first visible character or None) of tokens, with markup removed."""
    text = ""
    line = None
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        piece = ""
        blank = len(token.text) - len(token.text.lstrip())
        place = token.line + token.text.count("\n", 0, blank)
        if token.text in WRAPPERS:
            inner, at = argument(tokens, at)
            piece, place = plain(inner)
        elif token.text in ("\\multirow", "\\multicolumn"):
            _, at = argument(tokens, at)
            _, at = argument(tokens, at)
            inner, at = argument(tokens, at)
            piece, place = plain(inner)
        elif token.text in WORDS:
            piece = WORDS[token.text]
        elif token.text == "~":
            piece = " "
        elif token.text.startswith("\\") or token.text in ("{", "}", "$", "^"):
            continue
        else:
            piece = token.text
        if piece.strip() and line is None:
            line = place
        text += piece
    return text, line


def tidy(text):
    """One space between words and none at the ends."""
    return re.sub(r"\s+", " ", text).strip()


def without_rules(tokens):
    """The tokens of a row without the horizontal lines before it."""
    kept = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.text in RULES:
            continue
        if token.text == "\\cmidrule":
            _, at = argument(tokens, at + 1 if tokens[at].text.startswith("(") else at)
            continue
        kept.append(token)
    return kept


def split(tokens, separator):
    """Parts of the tokens between separators that are in no group."""
    parts = [[]]
    depth = 0
    for token in tokens:
        depth += {"{": 1, "}": -1}.get(token.text, 0)
        if token.text == separator and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def cells_of(row):
    """The cells of a row; \\multicolumn covers several columns."""
    cells = []
    column = 0
    for part in split(without_rules(row), "&"):
        width = 1
        for at, token in enumerate(part):
            if token.text == "\\multicolumn":
                width = int(plain(argument(part, at + 1)[0])[0])
        text, line = plain(part)
        cells.append(Cell(tidy(text), column, column + width - 1, line))
        column += width
    return cells


def environments(tokens, names):
    """The tokens inside each environment that has one of the names; these do not contain each other."""
    found = []
    start = None
    for at, token in enumerate(tokens):
        if token.text in ("\\begin", "\\end"):
            name = plain(argument(tokens, at + 1)[0])[0]
            if name in names:
                if token.text == "\\begin":
                    start = argument(tokens, at + 1)[1]
                else:
                    found.append(tokens[start:at])
    return found


def read_tables(source):
    """The labelled tables of a LaTeX source in their order."""
    tables = []
    for body in environments(tokenize(source), ("table", "table*")):
        texts = {"\\label": "", "\\caption": ""}
        for at, token in enumerate(body):
            if token.text in texts:
                texts[token.text] = tidy(plain(argument(body, at + 1)[0])[0])
        for grid in environments(body, ("tabular",)):
            _, begin = argument(grid, 0)  # the columns' alignment
            rows = [cells_of(row) for row in split(grid[begin:], "\\\\")]
            tables.append(Table(texts["\\label"], texts["\\caption"], rows))
    return tables
