#include "base/metrics_log.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

nlohmann::ordered_json ToJson(const MetricValue& value) {
  if (const double* d = std::get_if<double>(&value)) {
    return std::isfinite(*d) ? nlohmann::ordered_json(*d) : nlohmann::ordered_json(nullptr);
  }
  if (const int64_t* i = std::get_if<int64_t>(&value)) return *i;
  if (const std::string* s = std::get_if<std::string>(&value)) return *s;
  return std::get<bool>(value);
}

}  // namespace

std::string MetricsLine(int64_t step, const MetricFields& fields) {
  nlohmann::ordered_json object;
  object["step"] = step;
  for (const auto& [name, value] : fields) object[name] = ToJson(value);
  // Text that is no UTF-8 must not end the run.
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

absl::Status TruncateJsonLines(const std::string& path, const std::string& key, int64_t next) {
  if (!FileExists(path)) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  std::string kept;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // torn
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object() || !object.contains(key) || !object[key].is_number_integer()) continue;
    if (object[key].get<int64_t>() < next) kept += line + "\n";
  }
  if (kept == text) return absl::OkStatus();
  return WriteFileAtomic(path, kept);
}

absl::StatusOr<std::unique_ptr<MetricsLog>> MetricsLog::Open(const std::string& path,
                                                             int64_t next_step) {
  RETURN_IF_ERROR(TruncateJsonLines(path, "step", next_step));
  RETURN_IF_ERROR(AppendToFile(path, ""));  // a folder that cannot be written is found now
  return std::unique_ptr<MetricsLog>(new MetricsLog(path));
}

absl::Status MetricsLog::Append(int64_t step, const MetricFields& fields) {
  return AppendToFile(path_, MetricsLine(step, fields) + "\n");
}

}  // namespace tritonrl
