#include "model/decode_cache.h"

#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>

namespace tritonrl {
namespace {

int64_t Blocks(int64_t length) { return (length + DecodeCache::kBlock - 1) / DecodeCache::kBlock; }

}  // namespace

DecodeCache::DecodeCache(const ModelConfig& config, int64_t num_slots, int64_t max_length,
                         at::Device device, at::ScalarType dtype)
    : num_slots_(num_slots), max_length_(max_length) {
  const at::TensorOptions options = at::TensorOptions(dtype).device(device);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    keys_.push_back(at::zeros(
        {num_slots, config.num_kv_heads, Blocks(max_length), config.head_dim, kBlock}, options));
    values_.push_back(
        at::zeros({num_slots, config.num_kv_heads, max_length, config.head_dim}, options));
  }
}

int64_t DecodeCache::Bytes(const ModelConfig& config, int64_t num_slots, int64_t max_length,
                           at::ScalarType dtype) {
  return config.num_layers * num_slots * config.kv_size() *
         (Blocks(max_length) * kBlock + max_length) * static_cast<int64_t>(c10::elementSize(dtype));
}

void DecodeCache::Store(int64_t layer, const at::Tensor& keys, const at::Tensor& values,
                        const std::vector<int64_t>& slots) {
  const int64_t length = keys.size(0), blocks = Blocks(length);
  // [length, K, D] -> [K, blocks, D, kBlock], zeros behind the last position.
  at::Tensor k = at::zeros({blocks * kBlock, keys.size(1), keys.size(2)}, keys.options());
  k.narrow(0, 0, length).copy_(keys);
  k = k.unflatten(0, {blocks, kBlock}).permute({2, 0, 3, 1}).contiguous();
  const at::Tensor v = values.transpose(0, 1).contiguous();  // [K, length, D]
  for (int64_t slot : slots) {
    keys_[layer].select(0, slot).narrow(1, 0, blocks).copy_(k);
    values_[layer].select(0, slot).narrow(1, 0, length).copy_(v);
  }
}

void DecodeCache::CopySlot(int64_t from, int64_t to, int64_t length) {
  for (at::Tensor& keys : keys_) {
    keys.select(0, to)
        .narrow(1, 0, Blocks(length))
        .copy_(keys.select(0, from).narrow(1, 0, Blocks(length)));
  }
  for (at::Tensor& values : values_) {
    values.select(0, to).narrow(1, 0, length).copy_(values.select(0, from).narrow(1, 0, length));
  }
}

}  // namespace tritonrl
