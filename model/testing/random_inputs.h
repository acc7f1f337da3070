// Weights and tokens for benches at the shapes of real models.

#ifndef TRITONRL_MODEL_TESTING_RANDOM_INPUTS_H_
#define TRITONRL_MODEL_TESTING_RANDOM_INPUTS_H_

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/layers/packed_batch.h"
#include "model/weights/model_config.h"
#include "model/weights/weights.h"

namespace tritonrl {

// Matrices normal(0, 0.02), norms one, drawn on the device.
std::shared_ptr<Weights> RandomWeights(const ModelConfig& config, at::Device device,
                                       at::ScalarType dtype);

// Packed sequences of these lengths, of tokens drawn with `seed`.
PackedBatch RandomBatch(const ModelConfig& config, const std::vector<int64_t>& lengths,
                        uint64_t seed, at::Device device);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TESTING_RANDOM_INPUTS_H_
