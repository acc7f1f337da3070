// Layers of a step of few rows, as chains of products.
#include <c10/cuda/CUDAStream.h>

#include "model/cuda/product_chain.h"
#include "rollout/cuda/step_layers.h"

namespace tritonrl {

void StepLayers::Chain(const StepOnGpu& step, int64_t layer) {
  const DecoderLayerParameters& w = layers_[layer];
  ProductChain chain = {.rows = step.rows,
                        .eps = static_cast<float>(config_.rms_norm_eps),
                        .workspace = chain_.data_ptr(),
                        .overlap = overlap_,
                        .stream = c10::cuda::getCurrentCUDAStream().stream()};
  chain.links = {{.inner = config_.query_size(),
                  .columns = config_.hidden_size,
                  .x = attention_.const_data_ptr(),
                  .weight = w.o.const_data_ptr(),
                  .add = x_.const_data_ptr(),
                  .out = middle_.data_ptr()},
                 {.inner = config_.hidden_size,
                  .columns = 2 * config_.intermediate_size,
                  .x = middle_.const_data_ptr(),
                  .weight = w.gate_up.const_data_ptr(),
                  .norm_weight = w.post_norm.const_data_ptr(),
                  .swiglu = true,
                  .out = inner_.data_ptr()},
                 {.inner = config_.intermediate_size,
                  .columns = config_.hidden_size,
                  .x = inner_.const_data_ptr(),
                  .weight = w.down.const_data_ptr(),
                  .add = middle_.const_data_ptr(),
                  .out = x_.data_ptr()}};
  if (layer + 1 < config_.num_layers) {
    const DecoderLayerParameters& next = layers_[layer + 1];
    chain.links.push_back({.inner = config_.hidden_size,
                           .columns = next.qkv.size(0),
                           .x = x_.const_data_ptr(),
                           .weight = next.qkv.const_data_ptr(),
                           .norm_weight = next.input_norm.const_data_ptr(),
                           .out = qkv_.data_ptr()});
  }
  LaunchProductChain(chain);
}

void StepLayers::ChainedLayers(const StepOnGpu& step, GpuCache* cache) {
  NormMultiply(x_.narrow(0, 0, step.rows), layers_[0].input_norm, layers_[0].qkv,
               /*swiglu=*/false, qkv_.narrow(0, 0, step.rows));
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    Attend(step, i, cache);
    Chain(step, i);
  }
}

}  // namespace tritonrl
