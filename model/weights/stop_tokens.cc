#include "model/weights/stop_tokens.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/git_lfs.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

// Appends eos_token_id of the JSON file at `path`; a missing file has none.
absl::Status AppendEndTokens(const std::string& path, std::vector<int32_t>* ids) {
  if (!FileExists(path)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  RETURN_IF_ERROR(RefuseGitLfsPointer(text, path));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a JSON object"));
  }
  const Json eos = json.value("eos_token_id", Json());
  if (eos.is_null()) return absl::OkStatus();
  for (const Json& id : eos.is_array() ? eos : Json::array({eos})) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": field eos_token_id is ", eos.dump(),
                       "; it must be the id of a token or a list of them"));
    }
    const int32_t token = id.get<int32_t>();
    if (std::find(ids->begin(), ids->end(), token) == ids->end()) ids->push_back(token);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> StopTokens(const std::string& model_dir) {
  std::vector<int32_t> ids;
  for (const char* name : {"generation_config.json", "config.json"}) {
    RETURN_IF_ERROR(AppendEndTokens(JoinPath(model_dir, name), &ids));
  }
  return ids;
}

}  // namespace tritonrl
