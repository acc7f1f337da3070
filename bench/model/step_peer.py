"""What //bench/model:step_bench compares with: the same batches through Hugging Face Transformers, each decoder layer
compiled by torch.compile, attention by cuDNN, the head's loss in chunks so that logits fit. A JSON line for each
batch and share of recomputed layers, as the bench's own.

    step_peer.py --config=configs/qwen3_8b.json '--lengths=16384;8192,8192' --recompute=0,0.5
"""

import argparse
import contextlib
import json
import time

import torch
import transformers
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

HEAD_ROWS = 2048
WARM_UPS = 2


def make_model(path, device, dtype):
    with open(path) as file:
        described = json.load(file)
    config = transformers.AutoConfig.for_model(described.pop("model_type"), **described)
    torch.manual_seed(0)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=dtype)
    return model.train()


def recomputed(number, share):
    """Whether a layer is one of those that are recomputed, spread evenly."""
    return int((number + 1) * share) > int(number * share)


class SequenceLoss(torch.nn.Module):
    """The sum of -log p over a sequence's next tokens, with the head's logits in chunks."""

    def __init__(self, model):
        super().__init__()
        self.body, self.head = model.model, model.lm_head

    def _chunk(self, hidden, targets):
        return torch.nn.functional.cross_entropy(self.head(hidden).float(), targets, reduction="sum")

    def forward(self, tokens):
        hidden = self.body(input_ids=tokens[None], use_cache=False).last_hidden_state[0, :-1]
        pairs = zip(hidden.split(HEAD_ROWS), tokens[1:].split(HEAD_ROWS))
        return sum(checkpoint(self._chunk, rows, aims, use_reentrant=False) for rows, aims in pairs)


class Prepared:
    """Decoder layers compiled, and a share of them recomputed in the backward, until close()."""

    def __init__(self, layers, share, compiled):
        self._old = [(layer, layer.forward) for layer in layers]
        for number, (layer, forward) in enumerate(self._old):
            run = torch.compile(forward, dynamic=False) if compiled else forward
            layer.forward = _again(run) if recomputed(number, share) else run

    def close(self):
        for layer, forward in self._old:
            layer.forward = forward
        torch._dynamo.reset()


def _again(run):
    return lambda *arguments, **named: checkpoint(run, *arguments, use_reentrant=False, **named)


class Step:
    """Forward and backward of one batch, whose sequences come one after the other."""

    def __init__(self, model, share, compiled=True):
        self._loss = SequenceLoss(model)
        self._prepared = Prepared(model.model.layers, share, compiled)

    def close(self):
        self._prepared.close()
        self._loss.zero_grad(set_to_none=True)

    def __call__(self, sequences):
        """The mean of -log p over the batch's next tokens; gradients replace the ones before."""
        self._loss.zero_grad(set_to_none=True)
        count = sum(len(tokens) - 1 for tokens in sequences)
        total = 0.0
        for tokens in sequences:
            loss = self._loss(tokens) / count
            loss.backward()
            total += loss.detach()
        return total


def measure(model, lengths, share, steps):
    """The bench's line of one batch."""
    vocabulary = model.config.vocab_size
    sequences = [torch.randint(0, vocabulary, (length,), device="cuda") for length in lengths]
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    step = Step(model, share)
    try:
        begin = time.perf_counter()
        for _ in range(WARM_UPS):
            step(sequences)
        torch.cuda.synchronize()
        warm = time.perf_counter()
        for _ in range(steps):
            step(sequences)
        torch.cuda.synchronize()
        seconds = (time.perf_counter() - warm) / steps
        peak = torch.cuda.max_memory_allocated() / (1 << 30)
    finally:
        step.close()
    return {
        "tokens_per_s": sum(lengths) / seconds,
        "seconds": seconds,
        "peak_gib": peak,
        "warm_up_s": warm - begin,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--config", required=True, help="config.json of a model")
    parser.add_argument("--lengths", default="16384", help="of sequences, by commas; batches by semicolons")
    parser.add_argument("--recompute", default="0", help="shares of the layers, by commas")
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    model = make_model(options.config, "cuda", torch.bfloat16)
    peer = f"transformers {transformers.__version__}, torch {torch.__version__}, torch.compile"
    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):
        for batch in options.lengths.split(";"):
            lengths = [int(length) for length in batch.split(",")]
            for share in map(float, options.recompute.split(",")):
                line = {"peer": peer, "lengths": lengths, "recompute": share}
                with contextlib.suppress(torch.OutOfMemoryError):
                    line |= measure(model, lengths, share, options.steps)
                if "seconds" not in line:
                    line["out_of_memory"] = True
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
