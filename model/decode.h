// One step of generation for Transformer: with hand-written kernels on the CPU, or through ATen.

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

// The parts of a Transformer that a step reads; valid while that Transformer lives.
struct DecodeModel {
  const LayerContext& context;
  const ModelConfig& config;
  const RotaryTable& rotary;
  const std::vector<DecoderLayerParameters>& layers;
  at::Tensor embedding;   // [V, C]
  at::Tensor final_norm;  // [C]
  at::Tensor head;        // [V, C]
  Collectives* ranks;     // null if the model is not sharded; only DecodeWithAten supports ranks
};

// The tokens of all slices of a step, one slice after another: T rows.
struct DecodeBatch {
  // Throws c10::Error for a slice without tokens, or with tokens, positions or pages out of range.
  DecodeBatch(absl::Span<const SequenceSlice> slices, const ModelConfig& config,
              const PagedKvCache& cache);

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }

  absl::Span<const SequenceSlice> slices;
  std::vector<int64_t> tokens;      // [T]
  std::vector<int64_t> positions;   // [T]
  std::vector<int64_t> slice;       // [T] index of the row's slice
  std::vector<int64_t> logit_rows;  // [L] rows whose logits are needed, ascending
};

// Both functions write keys and values to `cache` and return the logits [L, V] fp32 of
// rows.logit_rows.
at::Tensor DecodeWithCpuKernels(const DecodeModel& model, const DecodeBatch& rows,
                                PagedKvCache* cache);
at::Tensor DecodeWithAten(const DecodeModel& model, const DecodeBatch& rows, PagedKvCache* cache);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_DECODE_H_
