// Errors that say what a folder that cannot be loaded holds instead of a model.

#ifndef TRITONRL_MODEL_WEIGHTS_MODEL_FOLDER_H_
#define TRITONRL_MODEL_WEIGHTS_MODEL_FOLDER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace tritonrl {

// FailedPrecondition: `dir` holds a LoRA adapter (adapter_config.json) without the model; names the
// base model, if the file does.
absl::Status AdapterError(const std::string& dir);

// Why `dir`, which has neither model.safetensors nor its index, has no weights that can be read:
// FailedPrecondition for an adapter or weights in another format, else NotFound.
absl::Status NoWeightsError(const std::string& dir);

// A sentence for tensor `name`, which the model of `num_layers` layers does not have: what it tells
// about the folder, and what to do.
std::string UnexpectedTensorHint(const std::string& name, int64_t num_layers);

// Why tensor `name` may be missing, for the end of a message; empty if nothing is known.
// `without_prefix`: the folder has the tensor without "model." before its name.
std::string MissingTensorHint(const std::string& name, bool without_prefix);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHTS_MODEL_FOLDER_H_
