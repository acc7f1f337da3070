"""What //bench/trainer:update_bench compares with: whole optimizer steps by PyTorch's FSDP2 of the same model in Hugging Face
Transformers (../model/step_peer.py): fp32 weights and AdamW's state in shards, bf16 for computing and for gradients'
sums, layers compiled, the gradient's norm clipped. Started by torchrun, a process for each GPU.

    torchrun --nproc-per-node=4 update_peer.py --config=configs/qwen3_8b.json --lengths=16384 --recompute=0,0.5
"""

import argparse
import contextlib
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import transformers
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "model"))
import step_peer

WARM_UPS = 2
CLIP = 1.0


def sharded_loss(path, device, share, compiled):
    """(SequenceLoss of the model in shards, what to close)."""
    model = step_peer.make_model(path, "meta", torch.float32)
    prepared = step_peer.Prepared(model.model.layers, share, compiled)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
    for layer in model.model.layers:
        fully_shard(layer, mp_policy=policy, reshard_after_forward=False)
    loss = step_peer.SequenceLoss(model)
    fully_shard(loss, mp_policy=policy, reshard_after_forward=False)
    loss.to_empty(device=device)
    with torch.no_grad():
        for parameter in loss.parameters():
            parameter.normal_(0, 0.02) if parameter.dim() > 1 else parameter.fill_(1.0)
    model.model.rotary_emb = type(model.model.rotary_emb)(model.config, device=device)
    return loss, prepared


class Update:
    """One optimizer step; each rank has its own micro-batches, lists of sequences."""

    def __init__(self, loss, device):
        self._loss = loss
        self._optimizer = torch.optim.AdamW(loss.parameters(), lr=1e-6, fused=device == "cuda")
        self._device = device

    def __call__(self, micro_batches):
        """The mean of -log p over all next tokens of all ranks."""
        sequences = [tokens for micro in micro_batches for tokens in micro]
        count = torch.tensor(float(sum(len(tokens) - 1 for tokens in sequences)), device=self._device)
        dist.all_reduce(count)
        total = torch.zeros((), device=self._device)
        for number, tokens in enumerate(sequences):
            self._loss.set_requires_gradient_sync(number + 1 == len(sequences))
            # FSDP gives the mean of the ranks' gradients.
            loss = self._loss(tokens) / count
            (loss * dist.get_world_size()).backward()
            total += loss.detach()
        torch.nn.utils.clip_grad_norm_(self._loss.parameters(), CLIP)
        self._optimizer.step()
        self._optimizer.zero_grad()
        dist.all_reduce(total)
        return total.item()


def measure(options, lengths, share, device):
    loss, prepared = sharded_loss(options.config, device, share, compiled=device == "cuda")
    try:
        update = Update(loss, device)
        generator = torch.Generator(device).manual_seed(dist.get_rank())
        vocabulary = loss.head.out_features
        micro_batches = [
            [torch.randint(0, vocabulary, (n,), device=device, generator=generator) for n in batch] for batch in lengths
        ]
        for _ in range(WARM_UPS):
            value = update(micro_batches)
        dist.barrier()
        start = time.perf_counter()
        for _ in range(options.steps):
            value = update(micro_batches)
        dist.barrier()
        seconds = (time.perf_counter() - start) / options.steps
    finally:
        prepared.close()
    return {"tokens_per_s_and_rank": sum(map(sum, lengths)) / seconds, "seconds": seconds, "loss": value}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--config", required=True, help="config.json of a model")
    parser.add_argument("--lengths", default="16384", help="of sequences, by commas; micro-batches by semicolons")
    parser.add_argument("--recompute", default="0", help="shares of the layers, by commas")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--device", default="cuda", help="cpu: to try it out")
    options = parser.parse_args()
    if options.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if options.device == "cuda" else "gloo")
    peer = f"FSDP2 of torch {torch.__version__}, transformers {transformers.__version__}, torch.compile"
    lengths = [[int(length) for length in batch.split(",")] for batch in options.lengths.split(";")]
    backend = sdpa_kernel([SDPBackend.CUDNN_ATTENTION]) if options.device == "cuda" else contextlib.nullcontext()
    with backend:
        for share in map(float, options.recompute.split(",")):
            line = {"peer": peer, "ranks": dist.get_world_size(), "lengths": options.lengths, "recompute": share}
            line |= measure(options, lengths, share, options.device)
            if options.device == "cuda":
                line["peak_gib"] = torch.cuda.max_memory_allocated() / (1 << 30)
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
            if dist.get_rank() == 0:
                print(json.dumps(line), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
