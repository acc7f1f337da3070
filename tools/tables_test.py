"""Tests of tables.py, and of the repository's pages against its results."""

import contextlib
import io
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import tables  # noqa: E402

ROOT = os.path.dirname(HERE)
ROW = "speed-001,speed,8 requests,rate,12345,tokens/s,vLLM,9876,20000 tokens/s,1x H200,abcdef0,2026-11-25,./run bench,yes"
OTHER_ROW = "speed-002,latency,1 request,time,3.5,ms,,,,2 CPU cores,abcdef0,2026-11-25,,no"


class RepositoryTest(unittest.TestCase):
    def test_pages_show_the_data(self):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            code = tables.run(ROOT, check=True)
        self.assertEqual(code, 0, errors.getvalue())

    def test_performance_pages_have_tables(self):
        pages = [page for page in tables.pages(ROOT) if os.path.basename(page).startswith("performance")]
        self.assertIn(os.path.join("docs", "performance_generation.md"), pages)
        count = 0
        for page in pages:
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                count += file.read().count("<!-- table: ")
        self.assertGreater(count, 30)


class TablesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name in ("docs", "results"):
            os.mkdir(self.path(name))
        self.write_data(ROW, OTHER_ROW)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def write_data(self, *rows):
        self.write("results/speed.csv", "\n".join((",".join(tables.CSV_COLUMNS),) + rows) + "\n")

    def write_page(self, marker, name="docs/page.md"):
        self.write(name, f"# Page\n\n<!-- table: {marker} -->\n<!-- end -->\nafter\n")

    def run_tables(self, *arguments):
        """(exit code, stderr)."""
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            code = tables.main(["--root", self.folder.name, *arguments])
        return code, errors.getvalue()

    def error_of(self, marker):
        self.write_page(marker)
        code, error = self.run_tables("--check")
        self.assertEqual(code, 1)
        self.assertEqual(error.count("\n"), 1, error)
        return error

    def test_table_is_written_and_then_accepted(self):
        self.write_page("speed")
        self.assertEqual(self.run_tables()[0], 0)
        self.assertEqual(
            self.read("docs/page.md"),
            "# Page\n\n<!-- table: speed -->\n\n"
            "| what | value | peer | bound | machine | commit |\n|---|---|---|---|---|---|\n"
            "| 8 requests: rate | 12,345 tokens/s | vLLM: 9,876 | 20,000 tokens/s | 1x H200 | `abcdef0` |\n"
            "\n<!-- end -->\nafter\n",
        )
        self.assertEqual(self.run_tables("--check"), (0, ""))

    def test_changed_cell_is_noticed(self):
        self.write_page("results/speed.csv")
        self.run_tables()
        self.write("docs/page.md", self.read("docs/page.md").replace("12,345", "12,346"))
        code, error = self.run_tables("--check")
        self.assertEqual(code, 1)
        self.assertIn("docs/page.md, table results/speed.csv: differs from the data", error)

    def test_changed_data_are_noticed_and_check_writes_nothing(self):
        self.write_page("speed")
        self.run_tables()
        before = self.read("docs/page.md")
        self.write_data(ROW.replace("12345", "54321"), OTHER_ROW)
        self.assertEqual(self.run_tables("--check")[0], 1)
        self.assertEqual(self.read("docs/page.md"), before)
        self.run_tables()
        self.assertIn("54,321", self.read("docs/page.md"))

    def test_marker_selects_columns_and_rows(self):
        self.write_page('results/speed.csv columns=setting,value,date where=page=no where="machine=2 CPU cores"')
        self.run_tables()
        self.assertIn(
            "| setting | value | date |\n|---|---|---|\n| 1 request | 3.5 ms | 2026-11-25 |\n\n<!-- end", self.read("docs/page.md")
        )

    def test_readme_is_a_page_too(self):
        self.write_page("speed", "README.md")
        self.assertEqual(self.run_tables("--check")[0], 1)

    def test_marker_in_a_code_block_is_text(self):
        self.write("docs/page.md", "```\n<!-- table: nothing -->\n```\n")
        self.assertEqual(self.run_tables("--check"), (0, ""))

    def test_unknown_column_is_one_sentence(self):
        self.assertEqual(
            self.error_of("speed columns=what,colour"),
            "tables: docs/page.md, table speed columns=what,colour: there is no column 'colour'.\n",
        )
        self.assertIn("there is no column 'colour'", self.error_of("speed where=colour=red"))

    def test_other_mistakes_of_a_marker_are_one_sentence(self):
        self.assertIn("results/slow.csv does not exist", self.error_of("slow"))
        self.assertIn("no row fulfils", self.error_of("speed where=machine=none"))
        self.assertIn("neither columns=... nor where=", self.error_of("speed sort=value"))
        self.assertIn("not closed", self.error_of('speed where="machine=2'))

    def test_missing_end_is_one_sentence(self):
        self.write("docs/page.md", "<!-- table: speed -->\n\n<!-- table: speed -->\n<!-- end -->\n")
        code, error = self.run_tables()
        self.assertEqual(code, 1)
        self.assertIn("docs/page.md, table speed: the line <!-- end --> is missing", error)
        self.assertNotIn("12,345", self.read("docs/page.md"))

    def test_broken_data_are_named_by_file_and_line(self):
        for row, sentence in (
            (ROW, "line 3 repeats the id speed-001"),
            (OTHER_ROW + ",more", "line 3 has 15 cells instead of 14"),
            (OTHER_ROW.replace(",no", ",maybe"), "line 3: page is yes or no"),
            (OTHER_ROW.replace(",3.5,", ",,"), "line 3 has no value"),
            (OTHER_ROW.replace("2026-11-25", "today"), "line 3: 'today' is no date"),
            (OTHER_ROW.replace("abcdef0", "HEAD"), "line 3: 'HEAD' is no commit"),
        ):
            self.write_data(ROW, row)
            code, error = self.run_tables("--check")
            self.assertEqual(code, 1)
            self.assertIn("results/speed.csv, " + sentence, error)


if __name__ == "__main__":
    unittest.main()
