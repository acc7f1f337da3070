// Keys and values of running sequences, one slot a sequence.

#ifndef TRITONRL_MODEL_DECODE_CACHE_H_
#define TRITONRL_MODEL_DECODE_CACHE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/config.h"

namespace tritonrl {

// Which slots are in use is the caller's bookkeeping: a slot is plain memory, overwritten by the
// next Prefill into it.
class DecodeCache {
 public:
  // See Bytes for the memory it takes.
  DecodeCache(const ModelConfig& config, int64_t num_slots, int64_t max_length, at::Device device,
              at::ScalarType dtype);

  int64_t num_slots() const { return num_slots_; }
  int64_t max_length() const { return max_length_; }
  // Bytes that a cache of this size takes.
  static int64_t Bytes(const ModelConfig& config, int64_t num_slots, int64_t max_length,
                       at::ScalarType dtype);

  // Keys stand in blocks of this many positions, which are innermost: scores of a block are
  // computed side by side, and the blocks of a sequence are one stream of memory.
  static constexpr int64_t kBlock = 16;

  // [slots, kv_heads, ceil(max_length / kBlock), head_dim, kBlock]
  const at::Tensor& keys(int64_t layer) const { return keys_[layer]; }
  // [slots, kv_heads, max_length, head_dim]
  const at::Tensor& values(int64_t layer) const { return values_[layer]; }

  // Stores one sequence's keys and values, each [length, kv_heads, head_dim], at positions
  // [0, length) of every slot in `slots`.
  void Store(int64_t layer, const at::Tensor& keys, const at::Tensor& values,
             const std::vector<int64_t>& slots);
  // Copies positions [0, length) of all layers.
  void CopySlot(int64_t from, int64_t to, int64_t length);

 private:
  int64_t num_slots_;
  int64_t max_length_;
  std::vector<at::Tensor> keys_;
  std::vector<at::Tensor> values_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_DECODE_CACHE_H_
