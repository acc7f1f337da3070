"""Compares NOTICE with the lists of pinned components in third_party, and tests that comparison.

python3 tools/notice_test.py    needs only the standard library
"""

import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEBIAN_LIST = "third_party/debian_packages.txt"
# The list for CPython 3.11 also represents the one for CPython 3.12; a test compares the two.
WHEEL_LISTS = (
    "third_party/pypi/requirements-cp311.txt",
    "third_party/pypi/headers.txt",
    "third_party/pypi/flashinfer.txt",
    "third_party/pypi/sources.txt",
)
OTHER_PYTHON_LIST = "third_party/pypi/requirements-cp312.txt"


def read_lines(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read().splitlines()


def read_list(root, path):
    """{name: version} of a list: lines `name version` (Debian) or `name==version --hash=...` (PyPI)."""
    pinned = {}
    for number, line in enumerate(read_lines(root, path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, separator, version = line.split(" --hash")[0].partition(" " if path == DEBIAN_LIST else "==")
        if not separator or not name or not version.strip():
            raise ValueError(f"{path}, line {number} is no line of a name and a version: {line}")
        pinned[name.strip()] = version.strip()
    return pinned


def read_notice(root):
    """[(name, version, licence, list, line number)] of the lines of NOTICE with four parts."""
    rows = []
    for number, line in enumerate(read_lines(root, "NOTICE"), 1):
        parts = [part.strip() for part in line.split(" | ")]
        if len(parts) == 4 and parts[0] != "name" and not line.startswith(" ") and "reads:" not in line:
            rows.append((*parts, number))
    return rows


def find_problem(root):
    """One sentence about the first difference between NOTICE and the lists, or None."""
    pinned = {path: read_list(root, path) for path in (DEBIAN_LIST, *WHEEL_LISTS)}
    seen = set()
    for name, version, licence, path, number in read_notice(root):
        where = f"NOTICE, line {number}"
        if path not in pinned:
            return f"{where} says that {name} is pinned in {path}, which is no list of third_party."
        if name not in pinned[path]:
            return f"{where} names {name}, which {path} does not pin; remove the line."
        if version != pinned[path][name]:
            return f"{where} gives {name} the version {version}, but {path} pins {pinned[path][name]}."
        if not licence:
            return f"{where} names no licence for {name}."
        if (path, name) in seen:
            return f"{where} repeats {name} of {path}."
        seen.add((path, name))
    for path, names in pinned.items():
        for name in names:
            if (path, name) not in seen:
                return f"{path} pins {name} {names[name]}, which NOTICE lacks; add a line with its licence."
    return None


class RepositoryTest(unittest.TestCase):
    def test_notice_names_what_is_pinned(self):
        self.assertIsNone(find_problem(ROOT))

    def test_both_pythons_have_the_same_versions(self):
        self.assertEqual(read_list(ROOT, WHEEL_LISTS[0]), read_list(ROOT, OTHER_PYTHON_LIST))


class FindProblemTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.makedirs(os.path.join(self.folder.name, "third_party", "pypi"))
        self.write(DEBIAN_LIST, "# comment", "libexample-dev 1.2")
        for path in WHEEL_LISTS:
            self.write(path, "# comment")
        self.write(WHEEL_LISTS[0], "example==3.4 --hash=sha256:00", "other==5 --hash=sha256:11 --hash=sha256:22")
        self.lines = [
            "Each line reads: name | version | licence | where pinned.",
            f"libexample-dev | 1.2 | MIT | {DEBIAN_LIST}",
            f"example | 3.4 | MIT OR Apache-2.0 | {WHEEL_LISTS[0]}",
            f"other | 5 | BSD-3-Clause | {WHEEL_LISTS[0]}",
        ]

    def write(self, path, *lines):
        with open(os.path.join(self.folder.name, path), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def problem(self):
        self.write("NOTICE", *self.lines)
        return find_problem(self.folder.name)

    def test_equal_lists_pass(self):
        self.assertIsNone(self.problem())

    def test_missing_component_is_named(self):
        del self.lines[3]
        self.assertEqual(
            self.problem(), f"{WHEEL_LISTS[0]} pins other 5, which NOTICE lacks; add a line with its licence."
        )

    def test_missing_debian_package_is_named(self):
        del self.lines[1]
        self.assertIn("libexample-dev 1.2, which NOTICE lacks", self.problem())

    def test_component_that_is_not_pinned_is_named(self):
        self.lines.append(f"gone | 1 | MIT | {WHEEL_LISTS[0]}")
        self.assertEqual(
            self.problem(), f"NOTICE, line 5 names gone, which {WHEEL_LISTS[0]} does not pin; remove the line."
        )

    def test_other_version_is_named(self):
        self.lines[2] = self.lines[2].replace("3.4", "3.5")
        self.assertEqual(
            self.problem(), f"NOTICE, line 3 gives example the version 3.5, but {WHEEL_LISTS[0]} pins 3.4."
        )

    def test_unknown_list_is_named(self):
        self.lines[1] = "libexample-dev | 1.2 | MIT | third_party/other.txt"
        self.assertIn("third_party/other.txt, which is no list", self.problem())

    def test_missing_licence_is_named(self):
        self.lines[1] = f"libexample-dev | 1.2 |  | {DEBIAN_LIST}"
        self.assertEqual(self.problem(), "NOTICE, line 2 names no licence for libexample-dev.")

    def test_repeated_line_is_named(self):
        self.lines.append(self.lines[1])
        self.assertIn("line 5 repeats libexample-dev", self.problem())

    def test_damaged_list_is_named(self):
        self.write(DEBIAN_LIST, "libexample-dev")
        self.write("NOTICE", *self.lines)
        with self.assertRaisesRegex(ValueError, "line 1 is no line of a name and a version"):
            find_problem(self.folder.name)


if __name__ == "__main__":
    sys.exit(unittest.main())
