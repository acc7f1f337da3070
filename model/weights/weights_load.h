// Reads weights from a Hugging Face folder: config.json and model.safetensors, or the files that
// model.safetensors.index.json lists.
#ifndef TRITONRL_MODEL_WEIGHTS_WEIGHTS_LOAD_H_
#define TRITONRL_MODEL_WEIGHTS_WEIGHTS_LOAD_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/weights/weights.h"

namespace tritonrl {

// Reads the weights with several threads and converts them to `dtype`. Errors name the file and the
// tensor: DataLoss for a truncated or malformed file, NotFound for a missing tensor,
// InvalidArgument for a wrong shape, elements that are not floating point, or a tensor that the
// model does not have (a tied head that is stored twice is none); ResourceExhausted if `device`
// lacks memory; Unimplemented for a model with biases on a GPU; those of ReadModelConfig. `parts`:
// reads only these ranges of flat() and leaves zeros elsewhere; if empty, reads everything.
absl::StatusOr<std::shared_ptr<Weights>> LoadWeights(const std::string& dir, at::Device device,
                                                     at::ScalarType dtype,
                                                     absl::Span<const FlatRange> parts = {});

// Reads only one rank's shard of the model; config() of the result is the shard's. Errors: also
// those of ShardConfig.
absl::StatusOr<std::shared_ptr<Weights>> LoadWeightShard(const std::string& dir, at::Device device,
                                                         at::ScalarType dtype,
                                                         const WeightShard& shard);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHTS_WEIGHTS_LOAD_H_
