#include "verify/cases.h"

#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/line_reader.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "verify/case_folder.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

constexpr double kLargestExactDouble = 9007199254740992.0;  // 2^53

// Sets id and id_json; false, with the error, when the member is no usable id.
bool TakeId(const Json& json, Case* c) {
  const auto id = json.find("id");
  if (id == json.end()) {
    c->error = "'id' is missing";
    return false;
  }
  const bool text = id->is_string() && !id->get_ref<const std::string&>().empty();
  // A larger one, or one with a huge exponent, could not be given back as it came.
  const bool number = id->is_number() &&
                      (!id->is_number_float() || std::abs(id->get<double>()) < kLargestExactDouble);
  if (!text && !number) {
    c->error = "'id' must be a string that is not empty, or a number of at most 64 bits";
    return false;
  }
  c->id_json = id->dump();
  c->id = text ? id->get<std::string>() : c->id_json;
  return true;
}

bool TakeSource(const Json& json, const char* name, std::string* source, std::string* error) {
  const auto member = json.find(name);
  if (member == json.end()) {
    *error = absl::StrCat("'", name, "' is missing");
  } else if (!member->is_string()) {
    *error = absl::StrCat("'", name, "' is not a string");
  } else if (member->get_ref<const std::string&>().empty()) {
    *error = absl::StrCat("'", name, "' is empty");
  } else {
    *source = member->get<std::string>();
    return true;
  }
  return false;
}

class JsonlReader : public CaseReader {
 public:
  JsonlReader(std::string path, std::unique_ptr<LineReader> lines, int64_t total)
      : path_(std::move(path)), lines_(std::move(lines)), total_(total) {}

  absl::StatusOr<std::optional<Case>> Next() override {
    while (true) {
      ASSIGN_OR_RETURN(std::optional<Line> line, lines_->Next());
      if (!line.has_value()) return std::optional<Case>();
      if (!line->too_long && absl::StripAsciiWhitespace(line->text).empty()) continue;
      Case c;
      if (line->too_long) {
        c.error = absl::StrCat("the line is longer than ", kMaxCaseBytes, " bytes");
      } else {
        c = ParseCase(line->text);
      }
      c.line = line->number;
      c.where = absl::StrCat(path_, ", line ", c.line);
      NoteId(&c);
      return std::optional<Case>(std::move(c));
    }
  }

  int64_t total() const override { return total_; }

 private:
  // Of each id only a hash is kept, so that millions fit.
  void NoteId(Case* c) {
    if (c->id.empty() || !c->error.empty()) return;
    const auto [seen, fresh] = lines_of_ids_.emplace(Hash64(c->id_json), c->line);
    if (fresh) return;
    c->error = absl::StrCat("id ", c->id_json, " was already given in line ", seen->second);
    c->reference_source.clear();
    c->candidate_source.clear();
  }

  const std::string path_;
  const std::unique_ptr<LineReader> lines_;
  const int64_t total_;
  absl::flat_hash_map<uint64_t, int64_t> lines_of_ids_;
};

absl::StatusOr<int64_t> CountCases(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path, kMaxCaseBytes));
  int64_t count = 0;
  while (true) {
    ASSIGN_OR_RETURN(std::optional<Line> line, lines->Next());
    if (!line.has_value()) return count;
    if (line->too_long || !absl::StripAsciiWhitespace(line->text).empty()) ++count;
  }
}

}  // namespace

Case ParseCase(const std::string& line) {
  Case c;
  const Json json = Json::parse(line, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    c.error = "not a JSON object (or not UTF-8)";
  } else if (!json.is_object()) {
    c.error = "not a JSON object";
  } else if (TakeId(json, &c) &&
             TakeSource(json, "reference_source", &c.reference_source, &c.error) &&
             TakeSource(json, "candidate_source", &c.candidate_source, &c.error)) {
    const auto task = json.find("task");
    c.task = task != json.end() && task->is_string() ? task->get<std::string>() : c.id;
  }
  return c;
}

absl::StatusOr<std::unique_ptr<CaseReader>> CaseReader::Open(const std::string& path) {
  if (DirectoryExists(path)) return OpenCaseFolder(path);
  ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path, kMaxCaseBytes));
  ASSIGN_OR_RETURN(const int64_t total, CountCases(path));
  return std::unique_ptr<CaseReader>(std::make_unique<JsonlReader>(path, std::move(lines), total));
}

}  // namespace tritonrl
