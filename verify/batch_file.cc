#include "verify/batch_file.h"

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"
#include "verify/figures.h"
#include "verify/report.h"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxVerdictBytes = 16 << 20;
constexpr char kInputError[] = "input_error";

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Text(const Json& json, const char* name) {
  const auto member = json.find(name);
  return member != json.end() && member->is_string() ? member->get<std::string>() : "";
}

}  // namespace

std::string VerdictLine(const Case& c, const Verdict& verdict, const std::string& input_hash) {
  Json json = Json::parse(VerdictJson(verdict));
  json["id"] = Json::parse(c.id_json);
  if (c.line > 0) json["line"] = c.line;
  json["input_hash"] = input_hash;
  json["worker"] = FiguresJson(verdict);
  return Dump(json);
}

std::string InputErrorLine(const Case& c) {
  Json json;
  json["id"] = Json::parse(c.id_json);
  json["task"] = c.task;
  for (const char* name : {"valid", "compiled", "correct", "speedup"}) json[name] = nullptr;
  json["failed_layer"] = "none";
  json["outcome"] = kInputError;
  json["reason"] = absl::StrCat(c.where, ": ", c.error);
  if (c.line > 0) json["line"] = c.line;
  return Dump(json);
}

std::string InputHash(const Case& c, const std::string& settings) {
  return Sha256Hex(absl::StrCat(settings, "\n", c.reference_source.size(), "\n", c.reference_source,
                                c.candidate_source))
      .substr(0, 32);
}

std::string LineKey(const Case& c) {
  if (!c.error.empty() && c.line > 0) return absl::StrCat("line ", c.line);
  return absl::StrCat(c.error.empty() ? "id " : "error ", c.id_json);
}

std::string LineKey(const Json& line) {
  const bool error = Text(line, "outcome") == kInputError;
  const auto number = line.find("line");
  if (error && number != line.end()) return absl::StrCat("line ", Dump(*number));
  const auto id = line.find("id");
  return absl::StrCat(error ? "error " : "id ", id == line.end() ? "null" : Dump(*id));
}

void BatchTotals::Count(const Json& line) {
  const std::string outcome = Text(line, "outcome");
  std::string layer = Text(line, "failed_layer");
  if (outcome == kInputError) {
    ++input_errors;
  } else if (outcome == "correct") {
    ++correct;
  } else if (outcome == "inconclusive") {
    ++inconclusive;
  } else {
    ++failed;
  }
  if (layer == "none") layer.clear();
  ++by_layer[{layer, outcome}];
}

absl::StatusOr<std::unique_ptr<BatchFile>> BatchFile::Open(const std::string& path) {
  std::unique_ptr<BatchFile> file(new BatchFile());
  ASSIGN_OR_RETURN(file->lines_, LineFile::Open(path, kMaxVerdictBytes, [&](const Line& line) {
                     return file->Note(path, line);
                   }));
  return file;
}

absl::Status BatchFile::Note(const std::string& path, const Line& line) {
  const Json json = Json::parse(line.text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || Text(json, "outcome").empty()) {
    return absl::DataLossError(absl::StrCat(path, ", line ", line.number,
                                            " is not a verdict; remove the line, or give another "
                                            "file to --out"));
  }
  hashes_[Hash64(LineKey(json))] = Hash64(Text(json, "input_hash"));
  totals_.Count(json);
  return absl::OkStatus();
}

absl::StatusOr<bool> BatchFile::Has(const Case& c, const std::string& input_hash) const {
  const auto found = hashes_.find(Hash64(LineKey(c)));
  if (found == hashes_.end()) return false;
  if (c.error.empty() && found->second != Hash64(input_hash)) {
    return absl::FailedPreconditionError(
        absl::StrCat(c.where, ": ", lines_->path(), " holds a verdict for id ", c.id_json,
                     " with other sources or settings; give another file to --out"));
  }
  return true;
}

absl::Status BatchFile::Append(const std::string& line) {
  RETURN_IF_ERROR(lines_->Append(line));
  totals_.Count(Json::parse(line));
  return absl::OkStatus();
}

}  // namespace tritonrl
