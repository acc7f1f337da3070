#include "model/testing/test_util.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/random.h"

namespace tritonrl {

at::Tensor RandomTensor(at::IntArrayRef shape, uint64_t seed, double scale) {
  // ATen's threads spin at barriers, which is slow when tests run in parallel.
  if (at::get_num_threads() > 1) at::set_num_threads(1);
  at::Tensor tensor = at::empty(shape, at::kDouble);
  Philox random(seed);
  double* data = tensor.data_ptr<double>();
  for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = random.Normal() * scale;
  return tensor;
}

ModelConfig SmallConfig(ModelFamily family, bool tied) {
  ModelConfig config;
  config.family = family;
  config.hidden_size = 40;
  config.num_layers = 3;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 24;
  config.intermediate_size = 72;
  config.vocab_size = 101;
  config.max_positions = 256;
  config.tie_word_embeddings = tied;
  return config;
}

std::shared_ptr<Weights> SmallWeights(const ModelConfig& config, uint64_t seed,
                                      at::ScalarType dtype) {
  auto weights = std::make_shared<Weights>(config, at::kCPU, dtype);
  for (const ParameterInfo& info : weights->layout().parameters) {
    const bool norm = info.shape.size() == 1;
    weights->Get(info.name).copy_(RandomTensor(info.shape, seed++, 0.2).add_(norm ? 1.0 : 0.0));
  }
  return weights;
}

std::shared_ptr<Weights> RandomWeights(const ModelConfig& config, at::Device device,
                                       at::ScalarType dtype) {
  auto weights = std::make_shared<Weights>(config, device, dtype);
  for (const ParameterInfo& info : weights->layout().parameters) {
    const at::Tensor parameter = weights->flat().narrow(0, info.offset, info.size);
    if (info.decay()) {
      parameter.normal_(0, 0.02);
    } else {
      parameter.fill_(1.0);
    }
  }
  return weights;
}

std::vector<std::vector<int32_t>> RandomTokens(const ModelConfig& config,
                                               const std::vector<int64_t>& lengths, uint64_t seed) {
  Philox random(seed);
  std::vector<std::vector<int32_t>> sequences;
  for (int64_t length : lengths) {
    sequences.emplace_back();
    for (int64_t t = 0; t < length; ++t) {
      sequences.back().push_back(static_cast<int32_t>(random.Below(config.vocab_size)));
    }
  }
  return sequences;
}

PackedBatch RandomBatch(const ModelConfig& config, const std::vector<int64_t>& lengths,
                        uint64_t seed, at::Device device) {
  return PackSequences(RandomTokens(config, lengths, seed), device);
}

double MaxDifference(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0 && b.numel() == 0) return 0;
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

double RelativeDifference(const at::Tensor& actual, const at::Tensor& expected) {
  return MaxDifference(actual, expected) /
         (expected.to(at::kDouble).abs().max().item<double>() + 1e-30);
}

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  return x.scalar_type() == y.scalar_type() && x.sizes() == y.sizes() &&
         std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

std::string MissingDevice(at::Device device) {
  if (device.is_cpu()) return "";
  const int64_t found = at::getNumGPUs();
  if (found > std::max<int64_t>(device.index(), 0)) return "";
  return absl::StrCat(device.index() > 0 ? "needs two GPUs: " : "needs a GPU: ", "torch finds ",
                      found == 0 ? "none" : "only one", " on this machine");
}

}  // namespace tritonrl
