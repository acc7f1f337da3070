#include "exec/service/wire.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr size_t kMaxSourceBytes = 2 << 20;
constexpr size_t kMaxNameBytes = 4096;
constexpr int kMaxTrials = 1000;

absl::Status Refuse(const std::string& field, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("request: ", field, " ", what));
}

// Checks that every number in `message` is finite and not negative. Does not descend into nested
// messages.
absl::Status CheckNumbers(const google::protobuf::Message& message, const std::string& prefix) {
  using google::protobuf::FieldDescriptor;
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated()) continue;
    double value = 0;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_DOUBLE:
        value = reflection->GetDouble(message, field);
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        value = static_cast<double>(reflection->GetInt64(message, field));
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        value = reflection->GetInt32(message, field);
        break;
      default:
        continue;
    }
    if (!std::isfinite(value) || value < 0) {
      return Refuse(absl::StrCat(prefix, field->name()), "must be a number that is not negative");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRunRequest(const RunRequest& request) {
  const ExecRequest& exec = request.request();
  if (request.memory_bytes() < 0) return Refuse("memory_bytes", "must not be negative");
  if (exec.reference_source().empty()) return Refuse("reference_source", "is empty");
  if (exec.candidate_source().empty() && !exec.reference_only()) {
    return Refuse("candidate_source", "is empty");
  }
  if (exec.reference_source().size() > kMaxSourceBytes) {
    return Refuse("reference_source", absl::StrCat("is larger than ", kMaxSourceBytes, " bytes"));
  }
  if (exec.candidate_source().size() > kMaxSourceBytes) {
    return Refuse("candidate_source", absl::StrCat("is larger than ", kMaxSourceBytes, " bytes"));
  }
  if (exec.task_id().size() > kMaxNameBytes) return Refuse("task_id", "is too long");
  if (exec.device_model().size() > kMaxNameBytes) return Refuse("device_model", "is too long");
  if (!Rules_IsValid(exec.rules())) return Refuse("rules", "is unknown");
  if (exec.probe_task() && !exec.reference_only()) {
    return Refuse("probe_task", "is for requests with reference_only");
  }
  if (exec.trials() > kMaxTrials) return Refuse("trials", "must be 0 to 1000");
  RETURN_IF_ERROR(CheckNumbers(exec, ""));
  return CheckNumbers(exec.limits(), "limits.");
}

absl::StatusOr<RunRequest> DecodeRunRequest(absl::string_view bytes) {
  RunRequest request;
  if (static_cast<int64_t>(bytes.size()) > kMaxRequestBytes) {
    return absl::InvalidArgumentError("request: too large");
  }
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("request: not a RunRequest");
  }
  RETURN_IF_ERROR(CheckRunRequest(request));
  return request;
}

}  // namespace tritonrl
