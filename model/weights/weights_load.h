// Reads weights from a Hugging Face folder: config.json and model.safetensors, or the shards of
// model.safetensors.index.json.
#ifndef TRITONRL_MODEL_WEIGHTS_WEIGHTS_LOAD_H_
#define TRITONRL_MODEL_WEIGHTS_WEIGHTS_LOAD_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/weights/weights.h"

namespace tritonrl {

// Reads with several threads and converts to `dtype`. Errors name the file and the tensor:
// truncated file, missing tensor, wrong shape, unsupported element type. Ignores tensors that the
// model does not have, as `transformers` does (a tied head is often stored twice). `parts`: reads
// only what is in these ranges of flat(), zeros elsewhere; none: reads everything.
absl::StatusOr<std::shared_ptr<Weights>> LoadWeights(const std::string& dir, at::Device device,
                                                     at::ScalarType dtype,
                                                     absl::Span<const FlatRange> parts = {});

// Reads only one rank's part of the model; config() is that of the part. Errors: also those of
// ShardConfig.
absl::StatusOr<std::shared_ptr<Weights>> LoadWeightShard(const std::string& dir, at::Device device,
                                                         at::ScalarType dtype,
                                                         const WeightShard& shard);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHTS_WEIGHTS_LOAD_H_
