#include "model/testing/random_inputs.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/random.h"
#include "base/runfiles.h"
#include "base/status.h"

namespace tritonrl {

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

PackedBatch RandomBatch(const ModelConfig& config, const std::vector<int64_t>& lengths,
                        uint64_t seed, at::Device device) {
  Philox random(seed);
  std::vector<std::vector<int32_t>> sequences;
  for (const int64_t length : lengths) {
    std::vector<int32_t>& sequence = sequences.emplace_back(length);
    for (int32_t& token : sequence) token = static_cast<int32_t>(random.Below(config.vocab_size));
  }
  return PackSequences(sequences, device);
}

}  // namespace tritonrl
