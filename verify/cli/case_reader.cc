#include "verify/cli/case_reader.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/python_syntax.h"
#include "base/status.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "tasks/loader.h"
#include "tasks/response_style.h"

namespace tritonrl {

namespace {

using Json = nlohmann::json;

constexpr double kMaxExactDouble = 9007199254740992.0;  // 2^53

// Sets id and id_json; returns false and sets `error` if there is no usable id.
bool TakeId(const Json& json, Case* c) {
  const auto id = json.find("id");
  if (id == json.end()) {
    // A sample of a run has an id by its place.
    const auto slot = json.find("slot"), sample = json.find("sample"), task = json.find("task");
    if (slot != json.end() && sample != json.end() && task != json.end() &&
        slot->is_number_integer() && sample->is_number_integer() && task->is_string()) {
      c->id = absl::StrCat(task->get<std::string>(), "/", slot->get<int64_t>(), "/",
                           sample->get<int64_t>());
      c->id_json = Json(c->id).dump();
      return true;
    }
    c->error = "'id' is missing";
    return false;
  }
  const bool text = id->is_string() && !id->get_ref<const std::string&>().empty();
  // A floating-point number from 2^53 on could not be written back unchanged.
  const bool number =
      id->is_number() && (!id->is_number_float() || std::abs(id->get<double>()) < kMaxExactDouble);
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

// Sets the reference: `reference_source`, or the task of that name.
bool TakeReference(const Json& json, const CaseOptions& options, Case* c) {
  const auto task = json.find("task");
  const bool named = task != json.end() && task->is_string();
  c->task = named ? task->get<std::string>() : c->id;
  const bool has_source = json.contains("reference_source");
  if (!has_source && options.references == nullptr && json.contains("response")) {
    c->error = "'reference_source' is missing; for samples of a run, give their folder to --tasks";
    return false;
  }
  if (has_source || options.references == nullptr || !named) {
    return TakeSource(json, "reference_source", &c->reference_source, &c->error);
  }
  const auto found = options.references->find(c->task);
  if (found == options.references->end()) {
    c->error = absl::StrCat("'task' is ", task->dump(), ", which is not among the tasks given");
    return false;
  }
  c->reference_source = found->second;
  return true;
}

// The style in which the line's response is read.
absl::StatusOr<ResponseStyle> StyleOf(const Json& json, const CaseOptions& options) {
  ResponseStyle style;
  if (json.contains("response_style") || json.contains("code_block")) {
    const auto name = [&json](const char* member, absl::string_view missing) {
      const auto found = json.find(member);
      if (found == json.end()) return std::string(missing);
      return found->is_string() ? found->get<std::string>() : found->dump();
    };
    ASSIGN_OR_RETURN(style,
                     ResponseStyleFromNames(name("response_style", PlanStyleName(style.plan)),
                                            name("code_block", CodeBlockName(style.code_block))));
  }
  return OverrideResponseStyle(options.response_style, options.code_block, style);
}

bool IsTruncated(const Json& json) {
  const auto truncated = json.find("truncated"), reason = json.find("finish_reason");
  if (truncated != json.end()) return truncated->is_boolean() && truncated->get<bool>();
  return reason != json.end() && *reason == "length";
}

// Sets the candidate: `candidate_source`, or the program in `response`.
bool TakeCandidate(const Json& json, const CaseOptions& options, Case* c) {
  const auto response = json.find("response");
  if (json.contains("candidate_source") || response == json.end()) {
    return TakeSource(json, "candidate_source", &c->candidate_source, &c->error);
  }
  if (!response->is_string()) {
    c->error = "'response' is not a string";
    return false;
  }
  const absl::StatusOr<ResponseStyle> style = StyleOf(json, options);
  if (!style.ok()) {
    c->error = Message(style.status());
    return false;
  }
  c->style = *style;
  c->truncated = IsTruncated(json);
  c->response = response->get<std::string>();
  const SplitResponse split = ReadResponse(*c->response, c->style, c->truncated);
  if (split.valid()) c->candidate_source = split.code;
  return true;
}

class JsonlReader : public CaseReader {
 public:
  JsonlReader(std::string path, CaseOptions options, std::unique_ptr<LineReader> lines,
              int64_t total)
      : path_(std::move(path)),
        options_(std::move(options)),
        lines_(std::move(lines)),
        total_(total) {}

  absl::StatusOr<std::optional<Case>> Next() override {
    while (true) {
      ASSIGN_OR_RETURN(std::optional<Line> line, lines_->Next());
      if (!line.has_value()) return std::optional<Case>();
      if (!line->too_long && absl::StripAsciiWhitespace(line->text).empty()) continue;
      Case c;
      if (line->too_long) {
        c.error = absl::StrCat("the line is longer than ", kMaxCaseBytes, " bytes");
      } else {
        c = ParseCase(line->text, options_);
      }
      c.line = line->number;
      c.where = absl::StrCat(path_, ", line ", c.line);
      NoteId(&c);
      return std::optional<Case>(std::move(c));
    }
  }

  int64_t total() const override { return total_; }

 private:
  // Keeps only a hash of each id, so that memory suffices for millions of cases.
  void NoteId(Case* c) {
    if (c->id.empty() || !c->error.empty()) return;
    const auto [seen, fresh] = lines_of_ids_.emplace(Hash64(c->id_json), c->line);
    if (fresh) return;
    c->error = absl::StrCat("id ", c->id_json, " was already given in line ", seen->second);
    c->reference_source.clear();
    c->candidate_source.clear();
    c->response.reset();
  }

  const std::string path_;
  const CaseOptions options_;
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

absl::StatusOr<CaseOptions> MakeCaseOptions(const std::string& response_style,
                                            const std::string& code_block, const std::string& tasks,
                                            std::vector<std::string>* problems) {
  CaseOptions options{.response_style = response_style, .code_block = code_block};
  RETURN_IF_ERROR(CheckResponseStyleNames(response_style, code_block));
  if (tasks.empty()) return options;
  ASSIGN_OR_RETURN(TaskSet set, LoadTasks(tasks));
  std::map<std::string, std::string> references;
  for (Task& task : set.tasks) references[task.id] = std::move(task.source);
  options.references =
      std::make_shared<const std::map<std::string, std::string>>(std::move(references));
  *problems = std::move(set.problems);
  return options;
}

Case ParseCase(const std::string& line, const CaseOptions& options) {
  Case c;
  const Json json = Json::parse(line, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    c.error = "not a JSON object (or not UTF-8)";
  } else if (!json.is_object()) {
    c.error = "not a JSON object";
  } else if (TakeId(json, &c) && TakeReference(json, options, &c)) {
    TakeCandidate(json, options, &c);
  }
  return c;
}

absl::Status CheckNoFence(const std::string& path, const std::string& source) {
  if (source.size() > kMaxCaseBytes) return absl::OkStatus();  // too large to parse; refused later
  const auto fence = PythonTree(source).FenceError();
  if (!fence.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ":", fence->line, ": ", fence->message));
}

absl::StatusOr<std::unique_ptr<CaseReader>> CaseReader::Open(const std::string& path,
                                                             const CaseOptions& options) {
  if (DirectoryExists(path)) return OpenCaseFolder(path);
  ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path, kMaxCaseBytes));
  ASSIGN_OR_RETURN(const int64_t total, CountCases(path));
  return std::unique_ptr<CaseReader>(
      std::make_unique<JsonlReader>(path, options, std::move(lines), total));
}

namespace {

constexpr char kReferenceEnd[] = "_reference";

struct Pair {
  std::string id;
  std::string reference;  // path; empty: the candidate has no reference
  std::string candidate;  // path; empty: the reference has no candidate
};

// Returns the names of the *.py files in a folder, without ".py".
absl::StatusOr<std::vector<std::string>> ProgramsIn(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  std::vector<std::string> programs;
  for (const std::string& name : names) {
    absl::string_view stem = name;
    if (absl::ConsumeSuffix(&stem, ".py") && !stem.empty()) programs.emplace_back(stem);
  }
  return programs;
}

std::string FileOf(const std::string& folder, const std::string& program) {
  return JoinPath(folder, program + ".py");
}

// Adds the pairs of NAME_reference.py and NAME_*.py in a folder.
absl::Status AddBeside(const std::string& folder, std::vector<Pair>* pairs) {
  ASSIGN_OR_RETURN(const std::vector<std::string> programs, ProgramsIn(folder));
  std::vector<std::string> names;  // "softmax_" for softmax_reference.py
  for (const std::string& program : programs) {
    absl::string_view name = program;
    if (absl::ConsumeSuffix(&name, kReferenceEnd)) names.push_back(absl::StrCat(name, "_"));
  }
  std::vector<bool> used(names.size(), false);
  for (const std::string& program : programs) {
    if (absl::EndsWith(program, kReferenceEnd)) continue;
    int best = -1;
    for (size_t i = 0; i < names.size(); ++i) {
      if (!absl::StartsWith(program, names[i])) continue;
      if (best < 0 || names[i].size() > names[best].size()) best = static_cast<int>(i);
    }
    Pair pair{.id = program, .candidate = FileOf(folder, program)};
    if (best >= 0) {
      used[best] = true;
      pair.reference = FileOf(folder, names[best] + "reference");
    }
    pairs->push_back(std::move(pair));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (used[i]) continue;
    const std::string reference = names[i] + "reference";
    pairs->push_back({.id = reference, .reference = FileOf(folder, reference)});
  }
  return absl::OkStatus();
}

// Adds the pairs of reference.py and the other *.py files in a sub-folder; none for a sub-folder
// without Python files.
absl::Status AddInside(const std::string& folder, const std::string& name,
                       std::vector<Pair>* pairs) {
  ASSIGN_OR_RETURN(const std::vector<std::string> programs, ProgramsIn(folder));
  const bool has_reference =
      std::find(programs.begin(), programs.end(), "reference") != programs.end();
  const std::string reference = has_reference ? FileOf(folder, "reference") : "";
  for (const std::string& program : programs) {
    if (program == "reference") continue;
    pairs->push_back({.id = absl::StrCat(name, "/", program),
                      .reference = reference,
                      .candidate = FileOf(folder, program)});
  }
  if (has_reference && programs.size() == 1) {
    pairs->push_back({.id = absl::StrCat(name, "/reference"), .reference = reference});
  }
  return absl::OkStatus();
}

absl::Status ReadProgram(const std::string& path, std::string* source) {
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  if (size > kMaxCaseBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is larger than ", kMaxCaseBytes, " bytes"));
  }
  ASSIGN_OR_RETURN(*source, ReadFile(path));
  if (source->empty()) return absl::InvalidArgumentError(absl::StrCat(path, " is empty"));
  if (!IsValidUtf8(*source)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not UTF-8 text"));
  }
  return CheckNoFence(path, *source);
}

class FolderReader : public CaseReader {
 public:
  explicit FolderReader(std::vector<Pair> pairs) : pairs_(std::move(pairs)) {}

  absl::StatusOr<std::optional<Case>> Next() override {
    if (next_ == pairs_.size()) return std::optional<Case>();
    const Pair& pair = pairs_[next_++];
    Case c;
    c.id = RepairUtf8(pair.id);
    c.id_json = nlohmann::json(c.id).dump();
    c.where = pair.candidate.empty() ? pair.reference : pair.candidate;
    c.task = RepairUtf8(pair.reference);
    if (pair.reference.empty()) {
      c.error =
          "no reference belongs to it: NAME_reference.py beside it, or reference.py in its "
          "folder";
    } else if (pair.candidate.empty()) {
      c.error = "no candidate belongs to this reference";
    } else {
      absl::Status status = ReadProgram(pair.reference, &c.reference_source);
      if (status.ok()) status = ReadProgram(pair.candidate, &c.candidate_source);
      if (!status.ok()) c.error = Message(status);
    }
    return std::optional<Case>(std::move(c));
  }

  int64_t total() const override { return static_cast<int64_t>(pairs_.size()); }

 private:
  const std::vector<Pair> pairs_;
  size_t next_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CaseReader>> OpenCaseFolder(const std::string& path) {
  std::vector<Pair> pairs;
  RETURN_IF_ERROR(AddBeside(path, &pairs));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names) {
    const std::string folder = JoinPath(path, name);
    if (DirectoryExists(folder)) RETURN_IF_ERROR(AddInside(folder, name, &pairs));
  }
  if (pairs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("folder ", path,
                     " holds no case: NAME_reference.py beside NAME_*.py, or "
                     "NAME/reference.py beside NAME/*.py"));
  }
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.id < b.id; });
  return std::unique_ptr<CaseReader>(std::make_unique<FolderReader>(std::move(pairs)));
}

}  // namespace tritonrl
