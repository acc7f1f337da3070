"""The greedy answer of a model folder in transformers, for sft_chat_test.

Standard input: {"model": folder, "question": text of the user, "tokens": most tokens of the answer}. Standard output:
{"prompt": token ids of the question in the folder's chat template, "answer": token ids up to the one that ended it,
"stop_ids": the ids at which the folder says to stop}. Nothing but the folder's files decides where the answer ends.
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig


def main():
    torch.set_num_threads(1)
    job = json.load(sys.stdin)
    tokenizer = AutoTokenizer.from_pretrained(job["model"])
    model = AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32).eval()
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": job["question"]}], add_generation_prompt=True, tokenize=True)
    ids = torch.tensor([prompt])
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=job["tokens"], pad_token_id=0)
    # Servers such as vLLM take the ids from this file too.
    stop_ids = GenerationConfig.from_pretrained(job["model"]).eos_token_id
    json.dump({"prompt": prompt, "answer": out[0, len(prompt):].tolist(), "stop_ids": stop_ids}, sys.stdout)


if __name__ == "__main__":
    main()
