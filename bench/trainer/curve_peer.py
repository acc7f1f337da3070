"""What //bench/trainer:curve_bench compares with: the same batches, from the same weights, by PyTorch: Hugging Face
Transformers with autograd, fp32 parameters (computing in bf16 by autocast, if asked for), torch.optim.AdamW. Prints a
JSON line with the loss of each step.

    curve_peer.py --folder=RUN --dtype=bf16 --device=cuda
"""

import argparse
import contextlib
import json
import time

import torch
import transformers

NO_TARGET = -100


def padded(sequences, device):
    """(tokens, targets), each [sequences, longest]; causal attention sees no padding behind a sequence."""
    longest = max(len(sequence["tokens"]) for sequence in sequences)
    tokens = torch.zeros(len(sequences), longest, dtype=torch.long)
    targets = torch.full((len(sequences), longest), NO_TARGET)
    for row, sequence in enumerate(sequences):
        ids = torch.tensor(sequence["tokens"])
        tokens[row, : len(ids)] = ids
        targets[row, sequence["first"] : len(ids) - 1] = ids[sequence["first"] + 1 :]
    return tokens.to(device), targets.to(device)


def make_optimizer(model, settings, device):
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": settings["weight_decay"]}, {"params": others, "weight_decay": 0.0}]
    betas = (settings["beta1"], settings["beta2"])
    return torch.optim.AdamW(groups, betas=betas, eps=settings["epsilon"], fused=device == "cuda")


class Trainer:
    def __init__(self, folder, dtype, device):
        with open(folder + "/optimizer.json") as file:
            self._settings = json.load(file)
        load = transformers.AutoModelForCausalLM.from_pretrained
        self._model = load(folder, dtype=torch.float32, attn_implementation="sdpa").to(device).train()
        self._optimizer = make_optimizer(self._model, self._settings, device)
        self._device = device
        self._autocast = contextlib.nullcontext
        if dtype == "bf16":
            self._autocast = lambda: torch.autocast(device, torch.bfloat16)

    def step(self, batch):
        """The mean of -log p over the responses' tokens, before the update."""
        tokens, targets = padded(batch["sequences"], self._device)
        with self._autocast():
            hidden = self._model.model(input_ids=tokens, use_cache=False).last_hidden_state
            logits = self._model.lm_head(hidden[targets != NO_TARGET])
        loss = torch.nn.functional.cross_entropy(logits.float(), targets[targets != NO_TARGET])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._settings["clip_norm"])
        for group in self._optimizer.param_groups:
            group["lr"] = batch["learning_rate"]
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return loss.detach()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", required=True, help="config.json, model.safetensors, optimizer.json, batches.jsonl")
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "fp32"])
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    trainer = Trainer(options.folder, options.dtype, options.device)
    with open(options.folder + "/batches.jsonl") as file:
        batches = [json.loads(line) for line in file]
    begin = time.perf_counter()
    losses = torch.stack([trainer.step(batch) for batch in batches]).tolist()
    name = f"torch {torch.__version__}, transformers {transformers.__version__}, {options.dtype}"
    print(json.dumps({"curve": name, "seconds": time.perf_counter() - begin, "losses": losses}), flush=True)


if __name__ == "__main__":
    main()
