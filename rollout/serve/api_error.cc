#include "rollout/serve/api_error.h"

#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace tritonrl {
namespace {

constexpr absl::string_view kField = "tritonrl/api_field";
constexpr absl::string_view kCode = "tritonrl/api_code";

nlohmann::json PayloadOrNull(const absl::Status& status, absl::string_view key) {
  const absl::optional<absl::Cord> payload = status.GetPayload(key);
  if (!payload) return nullptr;
  return std::string(*payload);
}

const char* ErrorType(int http_status) {
  if (http_status == 429) return "rate_limit_error";
  return http_status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

absl::Status FieldError(absl::string_view field, absl::string_view problem) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, " ", problem));
  status.SetPayload(kField, absl::Cord(field));
  return status;
}

absl::Status WithErrorCode(absl::Status status, absl::string_view code) {
  status.SetPayload(kCode, absl::Cord(code));
  return status;
}

int HttpStatus(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kUnimplemented:
      return 405;
    case absl::StatusCode::kOutOfRange:
      return 413;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kFailedPrecondition:
      return 503;
    default:
      return 500;
  }
}

nlohmann::json ErrorJson(const absl::Status& status) {
  return {{"error",
           {{"message", std::string(status.message())},
            {"type", ErrorType(HttpStatus(status))},
            {"param", PayloadOrNull(status, kField)},
            {"code", PayloadOrNull(status, kCode)}}}};
}

std::string JsonText(const nlohmann::json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tritonrl
