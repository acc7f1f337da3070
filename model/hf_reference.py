"""Log-probabilities, entropies and gradients of Hugging Face models by autograd, for hf_test.

Arguments: folders, each with a model written by Weights::Save and batch.safetensors (tokens,
targets, weights: [T]; offsets: [n + 1]; temperature: [1]). Into each folder goes
expected.safetensors, and `resaved/` as transformers itself writes the model.
"""

import os
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM


def run(folder):
    model, report = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        assert not report[problem], f"{folder}: {problem}: {report[problem]}"
    batch = load_file(os.path.join(folder, "batch.safetensors"))
    offsets = batch["offsets"].tolist()
    log_probs, entropies = [], []
    for begin, end in zip(offsets, offsets[1:]):
        tokens, targets = batch["tokens"][begin:end], batch["targets"][begin:end]
        logits = model(tokens[None], use_cache=False).logits[0] / batch["temperature"]
        all_log_probs = logits.log_softmax(-1)
        known = targets >= 0
        picked = all_log_probs.gather(1, targets.clamp(min=0)[:, None])[:, 0]
        log_probs.append(torch.where(known, picked, 0.0))
        entropies.append(torch.where(known, -(all_log_probs.exp() * all_log_probs).sum(-1), 0.0))
    log_probs = torch.cat(log_probs)
    (log_probs * batch["weights"]).sum().backward()
    expected = {"log_probs": log_probs.detach(), "entropy": torch.cat(entropies).detach()}
    for name, parameter in model.named_parameters():
        expected["gradient." + name] = parameter.grad
    save_file(expected, os.path.join(folder, "expected.safetensors"))
    model.save_pretrained(os.path.join(folder, "resaved"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for argument in sys.argv[1:]:
        run(argument)
