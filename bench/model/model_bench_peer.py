"""Forward + backward of the same small model through transformers and autograd, for //model:bench.

Arguments: folder (model, and lengths.json: token counts of a micro-batch), device, seconds.
Prints one JSON object.
"""

import json
import os
import sys
import time

import torch
from transformers import AutoModelForCausalLM


def main():
    folder, device, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).to(device)
    model.train()
    with open(os.path.join(folder, "lengths.json")) as file:
        lengths = json.load(file)
    width = max(lengths)
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(model.config.vocab_size, (len(lengths), width), generator=generator)
    mask = torch.arange(width)[None] < torch.tensor(lengths)[:, None]
    labels = tokens.masked_fill(~mask, -100).to(device)
    tokens, mask = tokens.to(device), mask.to(device)

    def step():
        model(tokens, attention_mask=mask, labels=labels, use_cache=False).loss.backward()
        model.zero_grad()
        if device != "cpu":
            torch.cuda.synchronize()

    step()
    best, steps, start, cpu = float("inf"), 0, time.perf_counter(), time.process_time()
    while steps < 2 or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - before)
        steps += 1
    total = time.perf_counter() - start
    tokens = sum(lengths) * steps
    result = {
        "tokens_per_s": tokens / total,
        "best": sum(lengths) / best,
        "per_cpu_second": tokens / (time.process_time() - cpu),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
