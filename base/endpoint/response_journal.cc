#include "base/endpoint/response_journal.h"

#include <errno.h>
#include <fcntl.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

namespace {

using Json = nlohmann::ordered_json;

std::optional<StoredResponse> FromLine(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  StoredResponse stored;
  // Parsed text may have any types; value() throws for a wrong one.
  try {
    stored.key = json.at("key").get<std::string>();
    stored.request_hash = json.at("request").get<std::string>();
    stored.refused = json.value("refused", "");
    stored.response.model = json.at("model").get<std::string>();
    for (const Json& choice : json.at("choices")) {
      stored.response.choices.push_back(
          {.text = choice.at("text").get<std::string>(),
           .reasoning = choice.value("reasoning", ""),
           .finish_reason = choice.at("finish_reason").get<std::string>()});
    }
    const Json& usage = json.at("usage");
    stored.response.usage = {.prompt_tokens = usage.at("prompt_tokens").get<int64_t>(),
                             .completion_tokens = usage.at("completion_tokens").get<int64_t>(),
                             .reported = usage.at("reported").get<bool>()};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  if (stored.response.choices.empty()) return std::nullopt;
  return stored;
}

}  // namespace

std::string ResponseLine(const StoredResponse& stored) {
  Json choices = Json::array();
  for (const EndpointChoice& choice : stored.response.choices) {
    Json json = {{"text", choice.text}};
    if (!choice.reasoning.empty()) json["reasoning"] = choice.reasoning;
    json["finish_reason"] = choice.finish_reason;
    choices.push_back(std::move(json));
  }
  const EndpointUsage& usage = stored.response.usage;
  Json line = {{"key", stored.key}, {"request", stored.request_hash}};
  if (!stored.refused.empty()) line["refused"] = stored.refused;
  line["model"] = stored.response.model;
  line["choices"] = std::move(choices);
  line["usage"] = {{"prompt_tokens", usage.prompt_tokens},
                   {"completion_tokens", usage.completion_tokens},
                   {"reported", usage.reported}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<StoredResponse> ParseResponseLine(const std::string& path, const Line& line) {
  std::optional<StoredResponse> stored = FromLine(line.text);
  if (!stored.has_value()) {
    return absl::DataLossError(absl::StrCat(path, ", line ", line.number,
                                            " is no response of an endpoint; remove the line"));
  }
  stored->offset = line.offset;
  stored->bytes = static_cast<int64_t>(line.text.size());
  return *std::move(stored);
}

absl::Status ReadResponses(const std::string& journal,
                           absl::FunctionRef<absl::Status(StoredResponse)> each,
                           bool with_refused) {
  ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> lines,
                   LineReader::Open(journal, JsonlJournal::kMaxLineBytes));
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<Line> line, lines->Next());
    if (!line.has_value() || !line->complete) return absl::OkStatus();
    ASSIGN_OR_RETURN(StoredResponse stored, ParseResponseLine(journal, *line));
    if (!stored.refused.empty() && !with_refused) continue;
    RETURN_IF_ERROR(each(std::move(stored)));
  }
}

absl::StatusOr<StoredResponse> ReadResponseAt(const std::string& journal, int64_t offset,
                                              int64_t bytes) {
  const ScopedFd fd(open(journal.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "read", journal);
  Line line = {.text = std::string(bytes, '\0'), .offset = offset};
  RETURN_IF_ERROR(ReadAt(fd.get(), offset, bytes, line.text.data(), journal));
  return ParseResponseLine(journal, line);
}

}  // namespace tritonrl
