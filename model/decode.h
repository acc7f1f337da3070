// One step of generation, on the CPU by kernels or through ATen. Used by Transformer.

#ifndef TRITONRL_MODEL_DECODE_H_
#define TRITONRL_MODEL_DECODE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "model/layers/decoder_layer.h"
#include "model/paged_cache.h"
#include "model/sequence_slice.h"
#include "model/transformer.h"

namespace tritonrl {

struct DecodeModel {
  const LayerContext& context;
  const ModelConfig& config;
  const RotaryTable& rotary;
  const std::vector<DecoderLayerParameters>& layers;
  at::Tensor embedding;      // [V, C]
  at::Tensor final_norm;     // [C]
  at::Tensor head;           // [V, C]
  StreamCollectives* ranks;  // null: the model is whole; DecodeWithAten alone takes another
};

// The tokens of all slices, one behind the other: T rows.
struct DecodeBatch {
  // Throws c10::Error for a slice without tokens, or whose tokens, positions or pages do not exist.
  DecodeBatch(absl::Span<const SequenceSlice> slices, const ModelConfig& config,
              const PagedKvCache& cache);

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }

  absl::Span<const SequenceSlice> slices;
  std::vector<int64_t> tokens;      // [T]
  std::vector<int64_t> positions;   // [T]
  std::vector<int64_t> slice;       // [T] the slice that a row belongs to
  std::vector<int64_t> logit_rows;  // [L] rows whose logits are wanted, rising
};

// Both return the logits [L, V] fp32 of the rows asked for, and write to the cache.
at::Tensor DecodeWithCpuKernels(const DecodeModel& model, const DecodeBatch& rows,
                                PagedKvCache* cache);
at::Tensor DecodeWithAten(const DecodeModel& model, const DecodeBatch& rows, PagedKvCache* cache);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_DECODE_H_
