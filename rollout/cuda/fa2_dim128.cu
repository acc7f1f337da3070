#include "rollout/cuda/fa2.cuh"

namespace tritonrl {

void LaunchFa2Dim128(Fa2Tile tile, const Fa2Call& call) {
  fa2::Launch<nv_bfloat16, 128>(tile, call);
}

}  // namespace tritonrl
