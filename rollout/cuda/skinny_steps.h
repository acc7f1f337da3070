// How the products of steps with few rows are made.
#ifndef TRITONRL_ROLLOUT_CUDA_SKINNY_STEPS_H_
#define TRITONRL_ROLLOUT_CUDA_SKINNY_STEPS_H_

namespace tritonrl {

// Of products with at most kMostSkinnyRows rows (model/cuda/skinny_product.h); all others are
// cuBLASLt's. Each does what those before it do. Not yet run on a GPU.
enum class SkinnySteps {
  kOff,         // cuBLASLt makes these too
  kProducts,    // our kernel makes them
  kFused,       // with the norm before them and SwiGLU behind, which are no launches any more
  kOverlapped,  // and begins to read its weights while the kernel before it still runs
  kChained,     // one launch for a layer's products (model/cuda/product_chain.h)
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_SKINNY_STEPS_H_
