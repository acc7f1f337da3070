#include "rollout/cuda/fa2.cuh"

namespace tritonrl {

void LaunchFa2Dim128(Fa2Tile tile, const Fa2Call& call) { fa2::Launch<128>(tile, call); }

}  // namespace tritonrl
