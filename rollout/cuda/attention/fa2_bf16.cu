#include "rollout/cuda/attention/fa2.cuh"

namespace tritonrl {

void LaunchFa2Dim64(Fa2Tile tile, const Fa2Call& call) { fa2::Launch<nv_bfloat16, 64>(tile, call); }

void LaunchFa2Dim128(Fa2Tile tile, const Fa2Call& call) {
  fa2::Launch<nv_bfloat16, 128>(tile, call);
}

}  // namespace tritonrl
