"""Distributions of transformers' logits processors, for transformers_processors_test.

Standard input: a list of {"logits": a row, "history": token ids, "repetition_penalty",
"temperature", "top_k", "top_p", "min_p"}. Standard output: for each the probabilities in fp64.
"""

import json
import sys

import torch
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)


def probabilities(job):
    ids = torch.tensor([job["history"]])
    scores = torch.tensor([job["logits"]], dtype=torch.float32)
    processors = [
        RepetitionPenaltyLogitsProcessor(job["repetition_penalty"]),
        TemperatureLogitsWarper(job["temperature"]),
        MinPLogitsWarper(job["min_p"]),
    ]
    if job["top_k"] > 0:
        processors.append(TopKLogitsWarper(job["top_k"]))
    if job["top_p"] < 1:
        processors.append(TopPLogitsWarper(job["top_p"]))
    for processor in processors:
        scores = processor(ids, scores)
    return scores[0].double().softmax(-1).tolist()


json.dump([probabilities(job) for job in json.load(sys.stdin)], sys.stdout)
