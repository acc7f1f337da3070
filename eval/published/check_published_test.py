"""Tests of the second reader on small sources: the forms that tables of the paper take, and differences."""

import contextlib
import io
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import check_published  # noqa: E402
import latex  # noqa: E402

# Two blocks with headers of their own, cells over several rows and columns, a comment, a stray column at the end.
BLOCKS = r"""
\begin{table*}[ht!] \small
  \caption{Results. All metrics are pass@10 (\%).}
  \label{tab:kernelbench_valid_level1}
  \resizebox{0.9\textwidth}{!}{
  \begin{tabular}{lccc}
    \toprule
    \multirow{2}{*}{\textbf{Model}} & \multirow{2}{*}{\textbf{\#Params}}
    & \multicolumn{2}{c}{\textbf{\textsc{Level1 (robust verifier)}}} & \textsc{Level1 (w/o robust verifier)} \\
    \cmidrule(lr){3-4}
    & & $\textbf{fast}_\textbf{1}$~/~$\textbf{fast}_2$ & \textbf{mean speedup} & \textbf{correct} \\
    \midrule
    \ours(D) & $8$B & $\mathbf{36.0}$~/$13.0$ & $1.10$ & $81.0$ & \\ \midrule
    % \ours(D) & $8$B & $1.0$~/$1.0$ & $1.0$ & $1.0$ \\
    \ \ \ Old  & 685B & $3.0$~/~$\textbf{1.0}$ & $0.05$ & $4.0$ \\
    \bottomrule
    & & \multicolumn{2}{c}{Level 2} & \textsc{Level2 (w/o robust verifier)} \\
    & & fast$_1$ / fast$_2$ & mean speedup & correct \\
    \ours (D) & $8$B & $12.0$~/~$3.0$ & $0.32$ & $77.0$ \\
  \end{tabular}}
\end{table*}
"""
# Level from the caption, k from the header, a label that is a number.
CAPTION = r"""
\begin{table}\caption{On Level 1 tasks.}\label{tab:alpha_ablation}\begin{tabular}{lcc}
$\alpha$ & \multicolumn{1}{c}{pass@1} & \textsc{pass@5} \\ & valid & valid \\
$0.1$ ($\alpha^{*}$) & $99.0$ & $100.0$ \\
\end{tabular}\end{table}
"""
EXPECTED = {
    ("main", "TritonRL (D), 8B", "1", "10", "fast_1"): ("36.0", 13),
    ("main", "TritonRL (D), 8B", "1", "10", "fast_2"): ("13.0", 13),
    ("main", "TritonRL (D), 8B", "1", "10", "mean_speedup"): ("1.10", 13),
    ("main", "TritonRL (D), 8B", "1", "10", "open_correct"): ("81.0", 13),
    ("main", "Old, 685B", "1", "10", "fast_1"): ("3.0", 15),
    ("main", "Old, 685B", "1", "10", "fast_2"): ("1.0", 15),
    ("main", "Old, 685B", "1", "10", "mean_speedup"): ("0.05", 15),
    ("main", "Old, 685B", "1", "10", "open_correct"): ("4.0", 15),
    ("main", "TritonRL (D), 8B", "2", "10", "fast_1"): ("12.0", 19),
    ("main", "TritonRL (D), 8B", "2", "10", "fast_2"): ("3.0", 19),
    ("main", "TritonRL (D), 8B", "2", "10", "mean_speedup"): ("0.32", 19),
    ("main", "TritonRL (D), 8B", "2", "10", "open_correct"): ("77.0", 19),
    ("alpha", "0.1 (alpha*)", "1", "1", "valid"): ("99.0", 25),
    ("alpha", "0.1 (alpha*)", "1", "5", "valid"): ("100.0", 25),
}


class CheckPublishedTest(unittest.TestCase):
    def check(self, tex, values):
        """(exit code, what it prints) for a source and a CSV of values."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "a.tex"), "w", encoding="utf-8") as file:
                file.write(tex)
            with open(os.path.join(folder, "a.csv"), "w", encoding="utf-8") as file:
                file.write("table,row,level,k,metric,value,tex_line\n")
                for (table, row, *where), (value, line) in values.items():
                    file.write(",".join([table, f'"{row}"', *where, value, str(line)]) + "\n")
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                code = check_published.main([f"--tex={folder}/a.tex", f"--csv={folder}/a.csv"])
        return code, printed.getvalue()

    def test_reads_the_forms_of_the_paper(self):
        self.assertEqual(check_published.read_tex(BLOCKS + CAPTION), EXPECTED)

    def test_equal(self):
        code, printed = self.check(BLOCKS + CAPTION, EXPECTED)
        self.assertEqual(code, 0)
        self.assertEqual(printed, "14 cells in 2 tables of the source, 14 in the CSV, 0 differ\n")

    def test_names_each_difference(self):
        values = dict(EXPECTED)
        values[("main", "Old, 685B", "1", "10", "fast_2")] = ("1.1", 15)
        values[("alpha", "0.1 (alpha*)", "1", "1", "valid")] = ("99.0", 23)
        del values[("main", "Old, 685B", "1", "10", "open_correct")]
        values[("alpha", "0.2", "1", "1", "valid")] = ("7.0", 26)
        code, printed = self.check(BLOCKS + CAPTION, values)
        self.assertEqual(code, 1)
        self.assertIn("main, Old, 685B, 1, 10, fast_2: 1.0 (line 15) in the source, 1.1 (line 15) in the CSV", printed)
        self.assertIn("(alpha*), 1, 1, valid: 99.0 (line 25) in the source, 99.0 (line 23) in the CSV", printed)
        self.assertIn("main, Old, 685B, 1, 10, open_correct: 4.0 in line 15 of the source is not in the CSV", printed)
        self.assertIn("alpha, 0.2, 1, 1, valid: 7.0 in the CSV is not in the source", printed)
        self.assertIn("4 differ", printed)

    def test_refuses_what_it_cannot_place(self):
        for change, message in [
            (("tab:alpha_ablation", "tab:new"), "'tab:new' is not among the known ones"),
            (("On Level 1 tasks", "On tasks"), "neither the header nor the caption 'On tasks.' matches"),
            (("On Level 1 tasks", "On Level 1 and Level 2 tasks"), "names several values"),
            (("$99.0$ &", "$99.0$ / $98.0$ &"), "'99.0 / 98.0' does not fit its column"),
            (("& $100.0$", ""), "have no value"),
            (("$100.0$ \\\\", "$100.0$ & $3.0$ \\\\"), "'3.0' does not fit its column (None)"),
        ]:
            self.assertIn(change[0], CAPTION)
            code, printed = self.check(CAPTION.replace(*change), EXPECTED)
            self.assertEqual(code, 2, message)
            self.assertIn(message, printed)

    def test_files_that_cannot_be_read(self):
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(check_published.main(["--tex=/nowhere.tex"]), 2)
        self.assertIn("/nowhere.tex", errors.getvalue())
        repeated = 'table,row,level,k,metric,value,tex_line\nalpha,0.1,1,1,valid,1.0,1\nalpha,0.1,1,1,valid,1.0,1\n'
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write(repeated)
            file.flush()
            with self.assertRaisesRegex(check_published.Difference, "line 3 repeats alpha, 0.1, 1, 1, valid"):
                check_published.read_csv(file.name)

    def test_braces(self):
        with self.assertRaisesRegex(latex.LatexError, "line 2: a brace is not closed"):
            latex.plain(latex.tokenize("a\n\\textbf{b"))
        with self.assertRaisesRegex(latex.LatexError, "line 1: a command has no argument"):
            latex.plain(latex.tokenize("\\textbf b"))


if __name__ == "__main__":
    unittest.main()
