// Values and tensors in messages of the candidate's process, which may hold anything.
#ifndef TRITONRL_EXEC_DEVICE_VALUE_PARSER_H_
#define TRITONRL_EXEC_DEVICE_VALUE_PARSER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/device/geometry.h"
#include "exec/device/json.h"
#include "exec/device/value.h"

namespace tritonrl::device {

// Checks a value of a message. Its storages may not exist: only numbers are checked here.
absl::StatusOr<Value> ParseValue(const Json& json, absl::string_view payload);
absl::StatusOr<TensorRef> ParseTensorRef(const Json& json);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_VALUE_PARSER_H_
