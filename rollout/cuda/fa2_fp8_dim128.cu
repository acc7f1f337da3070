#include "rollout/cuda/fa2.cuh"

namespace tritonrl {

void LaunchFa2Fp8Dim128(Fa2Tile tile, const Fa2Call& call) {
  fa2::Launch<__nv_fp8_e4m3, 128>(tile, call);
}

}  // namespace tritonrl
