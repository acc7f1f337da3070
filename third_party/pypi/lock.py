"""Writes requirements-cp3XX.txt: every wheel of requirements.in and its needs, by version and hash.

Run it after a change of requirements.in:  python3 third_party/pypi/lock.py
It asks pip to resolve (nothing is installed), once for each supported CPython.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PYTHONS = ("3.11", "3.12")
# Debian 12 has glibc 2.36: every manylinux tag up to it is allowed.
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in range(36, 4, -1)]
PLATFORMS += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]


def resolve(version: str) -> list[tuple[str, str, str]]:
    """Returns (name, version, sha256) for each wheel that `version` of CPython needs."""
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--only-binary=:all:", "--implementation=cp"]
        command += ["--target", scratch, "--python-version", version]
        command += [f"--platform={platform}" for platform in PLATFORMS]
        command += ["--report", str(report), "-r", str(HERE / "requirements.in")]
        subprocess.run(command, check=True)
        wheels = json.loads(report.read_text())["install"]
    rows = []
    for wheel in wheels:
        name = wheel["metadata"]["name"].lower().replace("_", "-")
        digest = wheel["download_info"]["archive_info"]["hashes"]["sha256"]
        rows.append((name, wheel["metadata"]["version"], digest))
    return sorted(rows)


def main() -> None:
    for version in PYTHONS:
        lines = ["# Written by lock.py from requirements.in; do not edit."]
        for name, release, digest in resolve(version):
            lines.append(f"{name}=={release} --hash=sha256:{digest}")
        tag = version.replace(".", "")
        (HERE / f"requirements-cp{tag}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
