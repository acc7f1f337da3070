"""Compares our tokenizer with the `tokenizers` library: same ids, same text, for every file kind."""

import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

TOKENIZE = os.path.abspath("model/tokenizer/tokenize")
TRAIN = os.path.abspath("model/tokenizer/train_tokenizer")

QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3 = QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
# Every property that published patterns use (of the DeepSeek, GPT-OSS and Llama 4 kind).
PROPERTIES = (
    r"[!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{M}]+"
    r"|[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+$|\s+(?!\S)|\s+"
)
BEHAVIORS = ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]

PROSE = [
    "The quick brown fox doesn't jump; it'LL  wait.\n\n\tWe'd say 1234567 times 3.14e-5!?",
    "Große Straße, façade, naïve, cafe\u0301, Å and A\u030a; ﬁ ligature, ½ and ²³, Ⅷ.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Їжак.",
    "日本語のテキスト、漢字かな交じり文。中文测试，全角　空格。한국어 문장입니다.",
    "हिन्दी में एक वाक्य। العَرَبِيَّة نصّ. עברית. ไทยไม่มีช่องว่าง",
    "Zalgo: Z\u0351\u0316\u0301a\u0308\u0323l\u0327g\u0302o; Hangul jamo \u1112\u1161\u11ab.",
    "Emoji 👩‍👩‍👧‍👦 🇩🇪 👍🏽 ❤️; math 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ∑∫√; spaces:\u00a0\u2003\u200b\u180e\u0085\u2028end",
    "'s 'S 'ſ 't 'RE 've'm 'LL'd x'sy \r\n\r\n  \r \n\t \v\f  ...!!!\r\n--- \n\n\n   tail   ",
    "",
    " ",
    "\n",
    "a" * 300 + " " * 300 + "\n" * 50 + "1" * 50,
]


def code_texts():
    """Source files of the Python that runs this test: code, comments, odd strings."""
    folder = os.path.dirname(os.__file__)
    names = ["argparse.py", "textwrap.py", "unicodedata.py", "tokenize.py", "enum.py", "this.py"]
    texts = []
    for name in names:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                texts.append(f.read()[:30000])
    assert len(texts) >= 3
    return texts


def all_characters():
    """Every code point up to U+32400, assigned or not, beside letters, digits, spaces and marks."""
    for base in [*range(0, 0x32400, 128), 0xE0000, 0xE0080, 0xF0000, 0x10FF80]:
        chars = [chr(c) for c in range(base, base + 128) if not 0xD800 <= c < 0xE000]
        yield "".join(f"a{c}1 {c}\u0327\u0301" for c in chars)


def mixed_characters():
    """Random mixtures of characters."""
    texts = []
    rng = random.Random(1)
    for _ in range(300):
        chars = []
        for _ in range(60):
            c = rng.choice([rng.randrange(0x20, 0x3000), rng.randrange(0xD800),
                            rng.randrange(0x10000, 0x20000)])
            chars.append(chr(c))
            chars.append(rng.choice(["", "", " ", "a", "\u0301", "\n", "7"]))
        texts.append("".join(chars))
    return texts


def garbage_texts():
    """Random bytes, and text with damaged characters."""
    rng = random.Random(2)
    texts = [bytes(rng.randrange(256) for _ in range(200)) for _ in range(50)]
    for text in PROSE:
        damaged = bytearray(text.encode())
        for _ in range(len(damaged) // 10):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        texts.append(bytes(damaged))
        texts.append(text.encode()[: len(text.encode()) // 2 + 1])
    return texts


def added_token_texts():
    return [
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nx",
        "<think><think></think> </think>a<think>b",
        "<|endoftext|><|endoftext|> <|endof text|> <|im_end|",
        "left <left> <left>right <right>  \n x word wordy sword word. (word) norme\u0301 normé",
        "<|im|><|im_start|><|im_start|>extra",
    ]


def run_tool(path, texts, *flags):
    payload = b"".join(b"%d\n%s" % (len(t), t) for t in texts)
    done = subprocess.run([TOKENIZE, "--tokenizer=" + path, *flags], input=payload,
                          capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(texts)
    return answers


class OracleTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.texts = [t.encode() for t in PROSE + code_texts() + mixed_characters()]
        self.texts += [t.encode() for t in added_token_texts()] + garbage_texts()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def build(self, pattern, use_regex=False, prefix=False, ignore_merges=False, normalizer=None):
        """A tokenizer of the library, trained on part of the texts."""
        tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
        if normalizer:
            tokenizer.normalizer = normalizer
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=use_regex)
        parts = [pre_tokenizers.Split(Regex(pattern), "isolated")] if pattern else []
        tokenizer.pre_tokenizer = (
            pre_tokenizers.Sequence(parts + [byte_level]) if parts else byte_level
        )
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=1500, show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
        tokenizer.train_from_iterator(PROSE + code_texts(), trainer)
        tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im|>"])
        tokenizer.add_tokens([
            AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False),
            AddedToken("<left>", lstrip=True), AddedToken("<right>", rstrip=True),
            AddedToken("word", single_word=True), AddedToken("norme\u0301", normalized=True),
        ])
        return tokenizer

    def compare(self, tokenizer, path, least=30000):
        texts = [t.decode(errors="replace") for t in self.texts]
        for special in (True, False):
            tokenizer.encode_special_tokens = not special
            answers = run_tool(path, self.texts, f"--parse_special={str(special).lower()}")
            tokens = 0
            for text, answer in zip(texts, answers):
                expected = tokenizer.encode(text, add_special_tokens=False).ids
                tokens += len(expected)
                self.assertEqual(answer["ids"], expected, repr(text[:200]))
            self.assertGreater(tokens, least)
        rng = random.Random(3)
        size = tokenizer.get_vocab_size()
        lists = [[rng.randrange(size + 3) for _ in range(40)] for _ in range(200)]
        lists += [tokenizer.encode(text).ids for text in texts]
        answers = run_tool(path, [json.dumps(ids).encode() for ids in lists], "--decode")
        for ids, answer in zip(lists, answers):
            self.assertEqual(answer["text"], tokenizer.decode(ids, skip_special_tokens=False))
            self.assertEqual(answer["plain"], tokenizer.decode(ids, skip_special_tokens=True))

    def compare_all_characters(self, tokenizer, path):
        texts = list(all_characters())
        answers = run_tool(path, [t.encode() for t in texts])
        for text, encoding, answer in zip(
            texts, tokenizer.encode_batch(texts, add_special_tokens=False), answers
        ):
            self.assertEqual(answer["ids"], encoding.ids, repr(text))

    def check(self, **kwargs):
        tokenizer = self.build(**kwargs)
        path = self.path("tokenizer.json")
        tokenizer.save(path)
        self.compare(tokenizer, path)
        return path

    def test_qwen(self):
        path = self.check(pattern=QWEN, normalizer=normalizers.NFC())
        tokenizer = Tokenizer.from_file(path)
        self.compare_all_characters(tokenizer, path)
        before = run_tool(path, [t.encode() for t in PROSE + code_texts()])
        # The older way to write merges gives the same tokenizer.
        with open(path, encoding="utf-8") as f:
            data = json.load(f)
        merges = data["model"]["merges"]
        self.assertIsInstance(merges[0], list)
        data["model"]["merges"] = [" ".join(pair) for pair in merges]
        with open(path, "w", encoding="utf-8") as f:
            json.dump(data, f)
        self.assertEqual(Tokenizer.from_file(path).to_str(), tokenizer.to_str())
        texts = [t.encode() for t in PROSE + code_texts()]
        self.assertEqual(run_tool(path, texts), before)

    def test_llama3(self):
        self.check(pattern=LLAMA3, ignore_merges=True)

    def test_gpt2_with_prefix_space(self):
        self.check(pattern=None, use_regex=True, prefix=True, normalizer=normalizers.NFKC())

    def save_and_compare(self, tokenizer, least=30000):
        path = self.path("tokenizer.json")
        tokenizer.save(path)
        # The library fits its added tokens to the normalizer when it reads them.
        self.compare(Tokenizer.from_file(path), path, least)
        return path

    def test_properties_and_chinese(self):
        tokenizer = self.build(pattern=PROPERTIES)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
            pre_tokenizers.Split(Regex("[一-龥぀-ゟ゠-ヿ]+"), "isolated"),
            pre_tokenizers.Split(Regex(PROPERTIES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ])
        self.compare_all_characters(tokenizer, self.save_and_compare(tokenizer))

    def test_every_split_behavior(self):
        tokenizer = self.build(pattern=QWEN)
        for behavior in BEHAVIORS:
            for invert in (False, True):
                tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
                    pre_tokenizers.Split(Regex(r"[\s.,]"), behavior, invert=invert),
                    pre_tokenizers.Digits(individual_digits=invert),
                    pre_tokenizers.ByteLevel(add_prefix_space=invert, use_regex=False),
                ])
                with self.subTest(behavior=behavior, invert=invert):
                    self.save_and_compare(tokenizer, least=1000)

    def test_normalizers(self):
        tokenizer = self.build(pattern=QWEN, normalizer=normalizers.Sequence([
            normalizers.NFC(), normalizers.Lowercase(), normalizers.Strip(left=True, right=False),
            normalizers.Replace("the", "THE"), normalizers.Replace(Regex(r"[aeiou]{2}"), "é"),
        ]))
        self.compare_all_characters(tokenizer, self.save_and_compare(tokenizer))

    def over_characters(self, **options):
        """A tokenizer over characters, with a token for each byte and an unknown token."""
        tokenizer = Tokenizer(models.BPE())
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        trainer = trainers.BpeTrainer(vocab_size=1500, show_progress=False, limit_alphabet=120)
        tokenizer.train_from_iterator([" ".join(t.split()) for t in PROSE + code_texts()], trainer)
        model = json.loads(tokenizer.to_str())["model"]
        names = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
        vocab = {name: i for i, name in enumerate(names + list(model["vocab"]))}
        merges = [tuple(pair) for pair in model["merges"]]
        tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", **options))
        tokenizer.add_special_tokens(["<unk>", "<s>", "</s>", "<|im_end|>"])
        tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("word")])
        return tokenizer

    def test_llama2(self):
        tokenizer = self.over_characters(byte_fallback=True, fuse_unk=True)
        tokenizer.normalizer = normalizers.Sequence([
            normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence([
            decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
            decoders.Strip(" ", 1, 0)])
        self.save_and_compare(tokenizer)

    def test_metaspace(self):
        for scheme in ("always", "first", "never"):
            for split in (True, False):
                tokenizer = self.over_characters(fuse_unk=split, ignore_merges=not split)
                tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(
                    prepend_scheme=scheme, split=split)
                tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme, split=split)
                with self.subTest(scheme=scheme, split=split):
                    self.save_and_compare(tokenizer)

    def test_decoder_sequence(self):
        tokenizer = self.build(pattern=QWEN)
        tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Fuse()])
        self.save_and_compare(tokenizer)

    def test_begin_and_end_tokens(self):
        tokenizer = self.build(pattern=LLAMA3)
        begin, end = [(t, tokenizer.token_to_id(t)) for t in ("<|im_start|>", "<|im_end|>")]
        template = processors.TemplateProcessing(
            single=f"{begin[0]} $A {end[0]}:0 {end[0]}", pair="$A $B", special_tokens=[begin, end])
        for processor in (
            template, processors.ByteLevel(), processors.RobertaProcessing(sep=end, cls=begin),
            processors.Sequence([processors.ByteLevel(), template]),
        ):
            tokenizer.post_processor = processor
            path = self.path("tokenizer.json")
            tokenizer.save(path)
            answers = run_tool(path, [t.encode() for t in PROSE], "--add_special")
            for text, answer in zip(PROSE, answers):
                self.assertEqual(answer["ids"], tokenizer.encode(text).ids, repr(text))

    def test_trainer(self):
        """Our trainer learns the merges that the library's learns, and its files load there."""
        corpus = self.path("corpus.jsonl")
        texts = PROSE + code_texts()
        with open(corpus, "w", encoding="utf-8") as f:
            for text in texts:
                f.write(json.dumps({"prompt": text[:100], "response": text[100:]}) + "\n")
        done = subprocess.run(
            [TRAIN, "--corpus=" + corpus, "--out=" + self.path("out"), "--vocab_size=2000"],
            capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        path = self.path("out/tokenizer.json")
        ours = Tokenizer.from_file(path)
        self.assertEqual(ours.get_vocab_size(), 2000)
        self.assertEqual(ours.token_to_id("</think>"), 1999)
        self.compare(ours, path)

        library = Tokenizer(models.BPE())
        library.normalizer = normalizers.NFC()
        library.pre_tokenizer = ours.pre_tokenizer
        trainer = trainers.BpeTrainer(
            vocab_size=1995, min_frequency=2, show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        library.train_from_iterator([p for t in texts for p in (t[:100], t[100:])], trainer)
        theirs = json.loads(library.to_str())["model"]
        with open(path, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["model"]["merges"], theirs["merges"])

    def test_transformers_loads_the_folder(self):
        corpus = self.path("corpus.txt")
        with open(corpus, "w", encoding="utf-8") as f:
            f.write("\n".join(PROSE))
        subprocess.run([TRAIN, "--corpus=" + corpus, "--out=" + self.path("out")], check=True,
                       capture_output=True, timeout=100)
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self.path("out"))
        text = "<think>plan</think>\nfaçade 12<|im_end|>"
        answer = run_tool(self.path("out/tokenizer.json"), [text.encode()])[0]
        self.assertEqual(tokenizer(text, add_special_tokens=False)["input_ids"], answer["ids"])
        self.assertEqual(tokenizer.eos_token_id, answer["ids"][-1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
