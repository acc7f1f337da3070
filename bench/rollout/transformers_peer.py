"""Times transformers' generate for the job in standard input; prints the seconds of the fastest as JSON."""

import json
import sys
import time

import torch
from transformers import AutoModelForCausalLM


def main():
    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])
    device = job["device"]
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    model = AutoModelForCausalLM.from_pretrained(job["model"], dtype=dtype).to(device).eval()
    # The whole batch at once; all prompts have one length, so nothing is padded.
    prompts = torch.tensor(job["prompts"], device=device).repeat_interleave(job["samples"], 0)

    def generate(tokens):
        if device != "cpu":
            torch.cuda.synchronize()
        start = time.perf_counter()
        out = model.generate(
            prompts, attention_mask=torch.ones_like(prompts), do_sample=True, temperature=1.0,
            top_k=0, top_p=1.0, min_new_tokens=tokens, max_new_tokens=tokens, pad_token_id=0)
        if device != "cpu":
            torch.cuda.synchronize()
        assert out.shape[1] == prompts.shape[1] + tokens
        return time.perf_counter() - start

    generate(8)
    print(json.dumps({"seconds": min(generate(job["tokens"]) for _ in range(job["repeats"]))}))


if __name__ == "__main__":
    main()
