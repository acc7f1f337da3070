"""Tests of compare_models.py: the folders of make_model_folders.py, in the server and in `transformers`."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import compare_models  # noqa: E402

SERVE = os.path.abspath("rollout/serve/serve")
MAKE_FOLDERS = "model/testing/make_model_folders.py"
# Measured: 5e-6. Weights rounded to float16 change log-probabilities by 5e-3.
TOLERANCE = 2e-5


class CompareModelsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.models = os.path.join(cls.folder.name, "models")
        os.mkdir(cls.models)
        subprocess.run([sys.executable, MAKE_FOLDERS, cls.models], check=True, timeout=240)
        with open(os.path.join(cls.models, "expected.json"), encoding="utf-8") as file:
            cls.loadable = sorted(json.load(file)["folders"])
        cls.refused = sorted(set(os.listdir(cls.models)) - {"expected.json", *cls.loadable})

    def compare(self, names, *arguments):
        """The exit code and, for each folder, the word and the sentence."""
        paths = [os.path.join(self.models, name) for name in names]
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = compare_models.main([f"--serve={SERVE}", f"--tolerance={TOLERANCE}", *arguments, *paths])
        *lines, self.summary = output.getvalue().splitlines()
        found = {}
        for path, line in zip(paths, lines, strict=True):
            self.assertTrue(line.startswith(path + ": "), line)
            found[os.path.basename(path)] = line[len(path) + 2:].split(": ", 1)
        return code, found

    def server(self, *commands):
        """The flag for a server's program that consists of shell commands; $1 is its flag --model."""
        path = os.path.join(self.folder.name, "serve.sh")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(("#!/bin/bash", *commands)) + "\n")
        os.chmod(path, 0o700)
        return f"--serve={path}"

    def test_every_token_is_that_of_transformers(self):
        self.assertGreaterEqual(len(self.loadable), 16)
        code, found = self.compare(self.loadable)
        for name, (word, text) in found.items():
            self.assertEqual(word, "equal", f"{name}: {text}")
            self.assertTrue(text.startswith("32 tokens, "), text)
        self.assertEqual(code, 0)
        self.assertIn(f"{len(found)} folders: {len(found)} equal, 0 refused, 0 DIFFERENT, 0 FAILED", self.summary)

    def test_a_refusal_is_the_sentence_of_the_server(self):
        code, found = self.compare(self.refused)
        for name, (word, text) in found.items():
            self.assertEqual(word, "refused", f"{name}: {text}")
            self.assertTrue(text.startswith("serve: "), text)
        self.assertIn("lm_head.weight is missing", found["no_head"][1])
        self.assertEqual(code, 0)

    def test_a_difference_is_found(self):
        other = self.server(f'exec {SERVE} --model={self.models}/$OTHER "${{@:2}}"')
        for served, text in (("half", "prompt 0: the log-probability of token 0 differs by "),
                             ("linear_rope", "prompt 0: token 0 is "),
                             ("begin_token", "prompt 0: the prompt has ids ")):
            with self.subTest(served=served), unittest.mock.patch.dict(os.environ, OTHER=served):
                code, found = self.compare(["qwen3"], other)
                self.assertEqual((code, found["qwen3"][0]), (1, "DIFFERENT"))
                self.assertTrue(found["qwen3"][1].startswith(text), found)
                self.assertIn("1 folders: 0 equal, 0 refused, 1 DIFFERENT, 0 FAILED", self.summary)

    def test_a_folder_that_transformers_does_not_read_is_not_equal(self):
        code, found = self.compare(["fp8"], self.server(f'exec {SERVE} --model={self.models}/qwen3 "${{@:2}}"'))
        self.assertEqual((code, found["fp8"][0]), (1, "FAILED"))
        self.assertTrue(found["fp8"][1].startswith("transformers: "), found)

    def test_a_server_that_dies_or_hangs_refuses_nothing(self):
        for program in (["echo cannot listen >&2", "exit 1"], ["kill -SEGV $$"], ["exec sleep 600"]):
            with self.subTest(program=program):
                code, found = self.compare(["qwen3"], self.server(*program), "--timeout=3")
                self.assertEqual((code, found["qwen3"][0]), (1, "FAILED"), found)

    def test_what_is_no_folder_is_a_wrong_argument(self):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit) as raised:
            compare_models.main(["/nowhere"])
        self.assertEqual(raised.exception.code, 2)
        self.assertIn("/nowhere is not a folder", errors.getvalue())


if __name__ == "__main__":
    unittest.main()
