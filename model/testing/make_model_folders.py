"""Makes small model folders as people have them, for model_folders_test: make_model_folders.py OUT.

OUT/expected.json tells, for each folder that `transformers` loads, what it makes of it: the ids of a prompt, greedy
tokens, the log-probability of each and the least distance between the two largest logits. The other folders are to be
refused.
"""

import json
import os
import shutil
import sys

import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForCausalLM, AutoTokenizer, GenerationConfig, LlamaConfig, PreTrainedTokenizerFast, Qwen2Config,
    Qwen3Config)

PROMPT = "def forward(self, x):\n    return x * 12.5  # it's\tNaïve 你好 😀"
TOKENS = 10
CORPUS = ["def forward(self, x):\n    return torch.relu(x * 2.0 + 1)\n", "import triton", "it's what it is", "12 345"] * 9
PATTERN = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LAYER = "model.layers.0.self_attn."


def make_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=300, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in ("<|begin|>", "<|end|>")])
    return tokenizer


class Maker:
    def __init__(self, out):
        self.out = out
        self.tokenizer = make_tokenizer()

    def path(self, *names):
        return os.path.join(self.out, *names)

    def model(self, name, kind, **settings):
        """A folder with a random model of the configuration class `kind`."""
        config = kind(
            vocab_size=self.tokenizer.get_vocab_size(), hidden_size=48, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, initializer_range=0.2,
            eos_token_id=self.tokenizer.token_to_id("<|end|>"), **settings)
        torch.manual_seed(1)
        model = AutoModelForCausalLM.from_config(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 1:
                    parameter.add_(torch.randn_like(parameter) * 0.2)
        model.save_pretrained(self.path(name))
        PreTrainedTokenizerFast(tokenizer_object=self.tokenizer).save_pretrained(self.path(name))

    def variant(self, name, base="qwen3", tensors=None, config=None, tokenizer=None):
        """A copy of a folder with its tensors (a function of their dictionary) or its JSON files changed."""
        shutil.copytree(self.path(base), self.path(name))
        if tensors:
            weights = self.path(name, "model.safetensors")
            save_file(tensors(load_file(weights)), weights, metadata={"format": "pt"})
        for file, change in (("config.json", config), ("tokenizer.json", tokenizer)):
            if change:
                with open(self.path(name, file), encoding="utf-8") as f:
                    data = json.load(f)
                data.update(change(data))
                with open(self.path(name, file), "w", encoding="utf-8") as f:
                    json.dump(data, f)

    def shards(self, name, drop=False, folder=""):
        self.variant(name)
        tensors = load_file(self.path(name, "model.safetensors"))
        os.remove(self.path(name, "model.safetensors"))
        index = {"metadata": {}, "weight_map": {}}
        names = sorted(tensors)
        for part in range(2):
            file = f"model-{part + 1:05d}-of-00002.safetensors"
            own = names[part::2]
            index["weight_map"].update({n: folder + file for n in own})
            if not (drop and part == 1):
                save_file({n: tensors[n] for n in own}, self.path(name, file), metadata={"format": "pt"})
        with open(self.path(name, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
            json.dump(index, f)

    def loadable(self):
        self.model("qwen3", Qwen3Config, head_dim=24, tie_word_embeddings=False)
        self.model("qwen3_tied", Qwen3Config, head_dim=24, tie_word_embeddings=True, attention_bias=True)
        self.model("qwen2", Qwen2Config, tie_word_embeddings=False)
        self.model("llama_biases", LlamaConfig, attention_bias=True, mlp_bias=True)
        self.model("llama3_rope", LlamaConfig, rope_theta=5e5, rope_scaling={
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64})
        yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
        self.variant("yarn", config=lambda c: {"rope_scaling": yarn})
        self.variant("yarn_mscale", config=lambda c: {"rope_scaling": {
            **yarn, "type": "yarn", "beta_fast": 16.0, "mscale": 0.7, "mscale_all_dim": 1.1}})
        self.variant("linear_rope", config=lambda c: {"rope_scaling": {"type": "linear", "factor": 2.0}})
        self.variant("half", tensors=lambda t: {k: v.half() for k, v in t.items()})
        self.variant("old_frequencies", tensors=lambda t: {**t, LAYER + "rotary_emb.inv_freq": torch.ones(12)})
        self.shards("sharded")
        self.variant("string_merges", tokenizer=lambda j: {
            "model": {**j["model"], "merges": [" ".join(pair) for pair in j["model"]["merges"]]}})
        self.variant("begin_token", tokenizer=lambda j: {"post_processor": json.loads(processors.TemplateProcessing(
            single="<|begin|> $A", pair="$A $B",
            special_tokens=[("<|begin|>", self.tokenizer.token_to_id("<|begin|>"))]).__getstate__())})
        metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
        self.variant("metaspace", tokenizer=lambda j: {"pre_tokenizer": metaspace, "decoder": metaspace})
        self.variant("lowercase", tokenizer=lambda j: {"normalizer": {
            "type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}})
        self.variant("decoder_sequence", tokenizer=lambda j: {
            "decoder": {"type": "Sequence", "decoders": [j["decoder"]]}})

    def refused(self):
        for name, tensor in (("surplus_bias", "q_proj.bias"), ("surplus_scale", "q_proj.weight_scale_inv")):
            self.variant(name, tensors=lambda t, tensor=tensor: {**t, LAYER + tensor: torch.ones(96)})
        self.variant("quantized", config=lambda c: {"quantization_config": {"quant_method": "fp8"}})
        self.variant("fp8", tensors=lambda t: {
            k: v.to(torch.float8_e4m3fn) if "_proj.weight" in k else v for k, v in t.items()})
        self.variant("no_head", tensors=lambda t: {k: v for k, v in t.items() if k != "lm_head.weight"})
        self.variant("no_prefix", tensors=lambda t: {k.removeprefix("model."): v for k, v in t.items()})
        self.variant("sliding", config=lambda c: {"layer_types": ["full_attention", "sliding_attention"]})
        self.shards("missing_shard", drop=True)
        self.shards("shard_outside", folder="../")
        self.variant("pickled")
        torch.save(load_file(self.path("pickled", "model.safetensors")), self.path("pickled", "pytorch_model.bin"))
        os.remove(self.path("pickled", "model.safetensors"))
        self.variant("vocab_only")
        os.remove(self.path("vocab_only", "tokenizer.json"))
        with open(self.path("vocab_only", "vocab.json"), "w", encoding="utf-8") as f:
            json.dump(self.tokenizer.get_vocab(), f)

    def expect(self, name):
        ids = AutoTokenizer.from_pretrained(self.path(name))(PROMPT)["input_ids"]
        model = AutoModelForCausalLM.from_pretrained(self.path(name), dtype=torch.float32).eval()
        # In place of the folder's own settings, whose end token would end the answer.
        model.generation_config = GenerationConfig(do_sample=False, max_new_tokens=TOKENS, pad_token_id=0,
                                                   output_logits=True, return_dict_in_generate=True)
        tokens = torch.tensor([ids])
        out = model.generate(tokens, attention_mask=torch.ones_like(tokens))
        greedy = out.sequences[0, len(ids):]
        logits = torch.cat(out.logits)  # [answer, vocabulary]
        largest = logits.topk(2).values
        log_probs = logits.log_softmax(-1).gather(1, greedy[:, None])[:, 0]
        return {"ids": ids, "greedy": greedy.tolist(), "log_probs": log_probs.tolist(),
                "margin": float((largest[:, 0] - largest[:, 1]).min())}


def main():
    torch.set_num_threads(1)
    maker = Maker(sys.argv[1])
    maker.loadable()
    names = sorted(os.listdir(sys.argv[1]))
    maker.refused()
    expected = {"prompt": PROMPT, "folders": {name: maker.expect(name) for name in names}}
    with open(maker.path("expected.json"), "w", encoding="utf-8") as f:
        json.dump(expected, f)


if __name__ == "__main__":
    main()
