#include "verify/verdict/verdict_json.h"

#include <google/protobuf/util/json_util.h>

#include "exec/device_backend.h"

namespace tritonrl {

std::string VerdictToJson(Verdict verdict) {
  MakeTextValid(&verdict);
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  // Fails only for text that is not UTF-8.
  (void)google::protobuf::util::MessageToJsonString(verdict, &json, options);
  return json;
}

absl::StatusOr<Verdict> VerdictFromJson(absl::string_view json) {
  Verdict verdict;
  const auto status =
      google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, &verdict);
  if (!status.ok()) return absl::InvalidArgumentError("not a verdict of this version");
  return verdict;
}

}  // namespace tritonrl
