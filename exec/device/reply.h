// What goes back to the candidate's process.
#ifndef TRITONRL_EXEC_DEVICE_REPLY_H_
#define TRITONRL_EXEC_DEVICE_REPLY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exec/device/call_inputs.h"
#include "exec/device/device.h"
#include "exec/device/json.h"
#include "exec/device/storage_table.h"
#include "exec/device/value.h"

namespace tritonrl::device {

struct Reply {
  Json header = Json::object();
  std::string payload;
};

// The object N of a tensor: geometry, number, address and size of its storage.
Json DescribeTensor(const TensorRef& tensor, StorageTable& memory);

// The field "out" of an operator's reply.
absl::StatusOr<Json> DescribeResults(const std::vector<PlacedList>& results, StorageTable& memory,
                                     std::string& payload);

// {"refused": ...} for PermissionDenied, else {"error": ...}.
Reply ErrorReply(const absl::Status& status);

// Gives each host tensor of the value a storage with its contents, and notes them in `placed`.
absl::StatusOr<Value> PlaceInputs(const Value& value, Device& device,
                                  std::vector<WrittenInput>& placed);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_REPLY_H_
