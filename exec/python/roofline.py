"""Modelled times: a roofline of one GPU fed with counted bytes and operations.

A kernel takes `launch + max(DRAM, L2, fp32, tensor) / fill + programs * per_program`, where DRAM counts each touched
32-byte sector once, L2 counts the sectors of every access, and fill = min(1, programs * warps / full_warps) is the share
of the GPU that the launch occupies. Spills, latency and bank conflicts are not in it: good for gross ratios, not for
ranking tuned kernels. Every figure made here is to be shown as "modelled".
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceModel:
    """Rates of one GPU in units per second."""

    name: str
    launch_seconds: float
    dram_bytes: float
    l2_bytes: float
    fp32_flops: float
    tensor_flops: float
    full_warps: int  # warps in flight that saturate the memory system
    program_seconds: float  # scheduling cost of one program


MODELS = {
    # NVIDIA L40S data sheet: 864 GB/s, 91.6 TFLOP/s fp32, 183 TFLOP/s tf32 dense. L2: 4 TB/s is an assumption.
    "l40s": DeviceModel("NVIDIA L40S (modelled)", 2.5e-6, 864e9, 4e12, 91.6e12, 183e12, 142 * 8, 0.0),
    # The same ratios scaled down about 200 times, so that tasks of a few thousand elements are not all launch overhead.
    "l40s_mini": DeviceModel(
        "NVIDIA L40S scaled for mini tasks (modelled)", 2.5e-6, 4.3e9, 20e9, 0.46e12, 0.46e12, 16, 20e-9
    ),
}


def device_model(name):
    """The model of that name; ValueError names the known ones."""
    if name not in MODELS:
        raise ValueError(f"unknown device_model {name!r}; known are {', '.join(sorted(MODELS))}")
    return MODELS[name]


def launch_seconds(model, record):
    """Time of one Triton launch from its LaunchRecord."""
    c = record.counters
    dram = c.unique_bytes / model.dram_bytes
    l2 = (c.sector_bytes + c.atomic_bytes) / model.l2_bytes
    fp32 = (c.flops + c.dot_flops) / model.fp32_flops
    tensor = c.tensor_flops / model.tensor_flops
    fill = min(1.0, record.programs * record.num_warps / model.full_warps)
    return model.launch_seconds + max(dram, l2, fp32, tensor) / fill + record.programs * model.program_seconds


def aten_seconds(model, count):
    """Time of all calls of one ATen operator from its OpCount; full occupancy is assumed."""
    if count.free:
        return 0.0
    work = max(count.bytes / model.dram_bytes, count.flops / model.fp32_flops)
    return count.calls * model.launch_seconds + work


def total_seconds(model, records, ops):
    """Time of one forward: its launches and its ATen operators, one after the other."""
    return sum(launch_seconds(model, r) for r in records) + sum(aten_seconds(model, c) for c in ops.values())
