"""How much shared memory a block of a kernel needs: a bound from the text of its Triton IR, and what Triton says."""

import math
import re

from triton._C.libtriton import ir, nvidia, passes

_TENSOR = re.compile(r"tensor<((?:\d+x)+)(!tt\.ptr|[a-z]+(\d+))")
_DOT = re.compile(r"tt\.dot(?:_scaled)? .*")
_LOAD = re.compile(r"tt\.load .*")
_STAGES = re.compile(r"tt\.num_stages = (\d+)")
_SCALARS = 1024  # bytes: results of atomics on one number, ends of reductions
_PTX_VERSION = 87  # any that Triton supports: it decides on instructions, not on memory


def bound(text, num_stages):
    """Bytes that are surely enough. Operands of a dot are kept for all stages of a loop; in a loop that says its stages,
    so is all that it loads. Beside them lies what changes its layout, one tensor at a time."""
    stages = max(1, num_stages, *map(int, _STAGES.findall(text)))
    kept = _DOT.findall(text) + (_LOAD.findall(text) if _STAGES.search(text) else [])
    operands = [match for line in kept for match in _TENSOR.findall(line.partition("->")[0])]
    largest = max(map(_bytes, set(_TENSOR.findall(text))), default=0)
    return stages * sum(map(_bytes, operands)) + largest + _SCALARS


def _bytes(match):
    shape, _, bits = match
    return math.prod(map(int, shape[:-1].split("x"))) * max(8, int(bits or 64)) // 8


def needed(module, options, arch, backend):
    """Bytes, by Triton's own passes up to the one that allocates them. Changes the module."""
    metadata = {}
    module = backend.make_ttgir(module, metadata, options, arch)
    manager = ir.pass_manager(module.context)
    passes.ttgpuir.add_combine_tensor_select_and_if(manager)
    passes.ttgpuir.add_allocate_warp_groups(manager)
    passes.convert.add_scf_to_cf(manager)
    passes.gluon.add_inliner(manager)
    nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(manager, arch, _PTX_VERSION)
    manager.run(module, "shared_memory")
    return module.get_int_attr("ttg.shared") or 0
