// Values in messages to the candidate's process.
#ifndef TRITONRL_EXEC_DEVICE_VALUE_WRITER_H_
#define TRITONRL_EXEC_DEVICE_VALUE_WRITER_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "exec/device/geometry.h"
#include "exec/device/json.h"
#include "exec/device/value.h"

namespace tritonrl::device {

// Writes a value for the client; the contents of kHost are appended to `payload`. `tensor` writes
// kTensor if it is given. InvalidArgument: a tensor of a type that the protocol does not have.
using TensorWriter = std::function<Json(const TensorRef&)>;
absl::StatusOr<Json> ValueToJson(const Value& value, std::string& payload,
                                 const TensorWriter& tensor = nullptr);
Json TensorRefToJson(const TensorRef& tensor);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_VALUE_WRITER_H_
