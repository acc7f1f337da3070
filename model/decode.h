// One decoding step, on the CPU by kernels or through ATen. Used by Transformer.

#ifndef TRITONRL_MODEL_DECODE_H_
#define TRITONRL_MODEL_DECODE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "model/decode_cache.h"
#include "model/decoder_layer.h"

namespace tritonrl {

struct DecodeModel {
  const LayerContext& context;
  const ModelConfig& config;
  const RotaryTable& rotary;
  const std::vector<DecoderLayerParameters>& layers;
  at::Tensor embedding;   // [V, C]
  at::Tensor final_norm;  // [C]
  at::Tensor head;        // [V, C]
};

// See Transformer::DecodeStep.
struct DecodeRows {
  absl::Span<const int64_t> tokens;
  absl::Span<const int64_t> slots;
  absl::Span<const int64_t> positions;
};

// Both return logits [B, V] fp32 and append to the cache.
at::Tensor DecodeStepKernels(const DecodeModel& model, const DecodeRows& rows, DecodeCache* cache);
at::Tensor DecodeStepAten(const DecodeModel& model, const DecodeRows& rows, DecodeCache* cache);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_DECODE_H_
