"""Greedy answers by transformers' generate, for transformers_greedy_test.

Standard input: a list of {"model": folder, "tokens": most tokens of an answer, "runs": a list of
{"prompt": token ids, "stop_ids": token ids}}. Standard output: for each model a list with, for each
run, {"tokens": the answer with the token that ended it, "log_probs": of each of them in fp64,
"margins": by how much each one's logit exceeds the second largest}.
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM, GenerationConfig


def run_one(model, prompt, stop_ids, tokens):
    ids = torch.tensor([prompt])
    config = GenerationConfig(
        do_sample=False, max_new_tokens=tokens, eos_token_id=stop_ids or None, pad_token_id=0,
        output_logits=True, return_dict_in_generate=True)
    out = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
    answer = out.sequences[0, len(prompt):]
    logits = torch.cat(out.logits).double()  # [answer, vocabulary]
    assert logits.shape[0] == answer.shape[0]
    largest = logits.topk(2).values
    picked = logits.log_softmax(-1).gather(1, answer[:, None])[:, 0]
    return {
        "tokens": answer.tolist(),
        "log_probs": picked.tolist(),
        "margins": (largest[:, 0] - largest[:, 1]).tolist(),
    }


def main():
    torch.set_num_threads(1)
    answers = []
    for job in json.load(sys.stdin):
        model = AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32).eval()
        answers.append([
            run_one(model, run["prompt"], run["stop_ids"], job["tokens"]) for run in job["runs"]
        ])
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
