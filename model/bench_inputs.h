// Weights and tokens for benches at the shapes of real models.

#ifndef TRITONRL_MODEL_BENCH_INPUTS_H_
#define TRITONRL_MODEL_BENCH_INPUTS_H_

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/config.h"
#include "model/packed_batch.h"
#include "model/weights.h"

namespace tritonrl {

// The file of one of model/configs, by its name ("qwen3_8b"); the path of a config.json as it is.
absl::StatusOr<std::string> ShapePath(absl::string_view name_or_path);
// What that file says.
absl::StatusOr<ModelConfig> ShapeOf(absl::string_view name_or_path);

// Matrices normal(0, 0.02), norms one, drawn on the device.
std::shared_ptr<Weights> RandomWeights(const ModelConfig& config, at::Device device,
                                       at::ScalarType dtype);

// Packed sequences of these lengths, of tokens drawn with `seed`.
PackedBatch RandomBatch(const ModelConfig& config, const std::vector<int64_t>& lengths,
                        uint64_t seed, at::Device device);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_BENCH_INPUTS_H_
