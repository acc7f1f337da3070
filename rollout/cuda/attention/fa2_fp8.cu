#include "rollout/cuda/attention/fa2.cuh"

namespace tritonrl {

void LaunchFa2Fp8Dim64(Fa2Tile tile, const Fa2Call& call) {
  fa2::Launch<__nv_fp8_e4m3, 64>(tile, call);
}

void LaunchFa2Fp8Dim128(Fa2Tile tile, const Fa2Call& call) {
  fa2::Launch<__nv_fp8_e4m3, 128>(tile, call);
}

}  // namespace tritonrl
