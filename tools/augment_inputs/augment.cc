#include "tools/augment_inputs/augment.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "base/endpoint/ask_all.h"
#include "base/endpoint/response_journal.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "nlohmann/json.hpp"
#include "tools/augment_inputs/input_functions.h"
#include "tools/endpoint/data_tool.h"

namespace tritonrl {

namespace {

using Json = nlohmann::ordered_json;

// Variants of one task that an earlier run may have written.
constexpr int kMostVariants = 10;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// One version of a task: the original, or a variant.
struct Version {
  std::string source;
  InputCheck check;
};

// A task with its versions.
struct Family {
  const Task* task = nullptr;
  Version original;
  std::vector<Version> variants;
};

// The runs of references that are done, kept in a file, so that a killed run repeats none.
class CheckJournal {
 public:
  absl::Status Open(const std::string& path) {
    absl::MutexLock lock(&mutex_);
    const auto each = [this](const Line& line) -> absl::StatusOr<bool> {
      mutex_.AssertHeld();
      const Json json = Json::parse(line.text, nullptr, /*allow_exceptions=*/false);
      if (!json.is_object() || !json.contains("source") || !json["source"].is_string())
        return false;
      try {
        known_[json["source"].get<std::string>()] = {
            .problem = json.at("problem").get<std::string>(),
            .inputs = json.at("inputs").get<std::vector<std::string>>()};
      } catch (const Json::exception&) {
        return false;  // it is run again
      }
      return true;
    };
    ASSIGN_OR_RETURN(journal_, JsonlJournal::Open(path, JsonlJournal::kMaxLineBytes, each));
    return journal_->AppendLines({});
  }

  std::optional<InputCheck> Find(const std::string& hash) const {
    absl::MutexLock lock(&mutex_);
    const auto known = known_.find(hash);
    return known == known_.end() ? std::nullopt : std::optional<InputCheck>(known->second);
  }

  absl::Status Add(const std::string& hash, const std::string& name, const InputCheck& check) {
    absl::MutexLock lock(&mutex_);
    return journal_->Append(Dump(Json{
        {"source", hash}, {"name", name}, {"problem", check.problem}, {"inputs", check.inputs}}));
  }

 private:
  mutable absl::Mutex mutex_;
  std::unique_ptr<JsonlJournal> journal_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, InputCheck> known_ ABSL_GUARDED_BY(mutex_);
};

class Augmenter {
 public:
  Augmenter(const AugmentOptions& options, EndpointClient* client)
      : options_(options), client_(client), journal_(options.out + "/responses.jsonl") {}

  absl::StatusOr<AugmentSummary> Run() {
    summary_.tasks = static_cast<int64_t>(options_.tasks.size());
    RETURN_IF_ERROR(CheckNames());
    RETURN_IF_ERROR(Ask());
    summary_.counts = client_->counts();
    if (summary_.interrupted) return summary_;
    RETURN_IF_ERROR(ReadAnswers());
    if (families_.empty()) RETURN_IF_ERROR(summary_.ended);
    RETURN_IF_ERROR(CheckAll());
    if (summary_.interrupted) return summary_;
    RETURN_IF_ERROR(Write());
    return summary_;
  }

 private:
  static std::string VariantName(const std::string& task, size_t number) {
    return absl::StrCat(task, "_v", number);
  }

  // Refuses a task whose own file would be a variant of another task.
  absl::Status CheckNames() const {
    if (!options_.with_originals) return absl::OkStatus();
    absl::flat_hash_set<std::string> ids;
    for (const Task& task : options_.tasks) ids.insert(task.id);
    for (const Task& task : options_.tasks) {
      for (int v = 1; v <= kMostVariants; ++v) {
        const std::string name = VariantName(task.id, v);
        if (!ids.contains(name)) continue;
        return absl::InvalidArgumentError(
            absl::StrCat("with --with_originals the task ", name,
                         " would have the name of a variant of the task ", task.id,
                         "; rename one, or leave out --with_originals"));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<AskItem> ItemOf(int64_t index) const {
    const Task& task = options_.tasks[index];
    AskItem item = {.key = task.id, .request = RequestFor(options_.ask, task.id, 0)};
    // One pass, so that a brace in the program is not replaced.
    item.request.messages = {
        {.role = "user",
         .content = absl::StrReplaceAll(
             options_.prompt,
             {{"{task}", task.source}, {"{variants}", absl::StrCat(options_.variants)}})}};
    return item;
  }

  absl::Status Ask() {
    AskAllOptions ask;
    ask.journal = journal_;
    ask.label = "answers";
    ask.stop = options_.stop;
    ask.messages = options_.messages;
    ask.check = [](const EndpointResponse& response) {
      return ReadInputFunctions(response.text()).status();
    };
    ASSIGN_OR_RETURN(const AskAllSummary asked,
                     AskAll(
                         summary_.tasks, [this](int64_t i) { return ItemOf(i); }, ask, client_));
    summary_.interrupted = asked.interrupted;
    summary_.ended = asked.ended;
    summary_.failed = asked.failed;
    return absl::OkStatus();
  }

  // Makes the family of each task that has an answer, in the order of the tasks.
  absl::Status ReadAnswers() {
    absl::flat_hash_map<std::string, std::vector<std::string>> answers;
    RETURN_IF_ERROR(ReadResponses(journal_, [&](const StoredResponse& stored) {
      auto functions = ReadInputFunctions(stored.response.text());
      if (!functions.ok()) return AddContext(functions.status(), stored.key);
      answers[stored.key] = *std::move(functions);
      return absl::OkStatus();
    }));
    for (const Task& task : options_.tasks) {
      const auto answer = answers.find(task.id);
      if (answer == answers.end()) continue;
      Family family;
      family.task = &task;
      family.original.source = task.source;
      for (const std::string& function : answer->second) {
        if (static_cast<int>(family.variants.size()) == options_.variants) break;
        absl::StatusOr<std::string> source = ReplaceInputs(task.source, function);
        if (!source.ok()) return AddContext(source.status(), task.path);
        family.variants.push_back({.source = *std::move(source)});
      }
      summary_.proposed += static_cast<int64_t>(family.variants.size());
      families_.push_back(std::move(family));
    }
    return absl::OkStatus();
  }

  absl::Status CheckAll() {
    if (families_.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(checks_.Open(options_.out + "/checks.jsonl"));
    ASSIGN_OR_RETURN(const auto checker, InputChecker::Start(options_.check));
    Progress bar({.label = "checks",
                  .total = static_cast<int64_t>(families_.size()),
                  .out = options_.messages});
    absl::Mutex mutex;
    int64_t done = 0;
    const auto check = [&](int, int64_t i) -> absl::Status {
      if (options_.stop()) return absl::CancelledError("stopped");
      RETURN_IF_ERROR(CheckFamily(checker.get(), &families_[i]));
      absl::MutexLock lock(&mutex);
      bar.Tick(++done, "");
      return absl::OkStatus();
    };
    const absl::Status checked =
        ParallelFor(checker->workers(), static_cast<int64_t>(families_.size()), check);
    summary_.interrupted = absl::IsCancelled(checked);
    return summary_.interrupted ? absl::OkStatus() : checked;
  }

  absl::Status CheckFamily(InputChecker* checker, Family* family) {
    const std::string& id = family->task->id;
    RETURN_IF_ERROR(CheckVersion(checker, id, &family->original));
    if (!family->original.check.problem.empty()) return absl::OkStatus();
    for (size_t v = 0; v < family->variants.size(); ++v) {
      RETURN_IF_ERROR(
          CheckVersion(checker, absl::StrCat(id, " variant ", v + 1), &family->variants[v]));
    }
    return absl::OkStatus();
  }

  absl::Status CheckVersion(InputChecker* checker, const std::string& name, Version* version) {
    // With other limits the same program may end differently.
    const std::string hash =
        Sha256Hex(absl::StrCat(options_.check.wall_seconds, " ", options_.check.memory_bytes, "\n",
                               version->source))
            .substr(0, 32);
    if (std::optional<InputCheck> known = checks_.Find(hash); known.has_value()) {
      version->check = *std::move(known);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(version->check, checker->Run(name, version->source));
    return checks_.Add(hash, name, version->check);
  }

  absl::Status Write() {
    for (const Family& family : families_) RETURN_IF_ERROR(WriteFamily(family));
    RETURN_IF_ERROR(WriteFileAtomic(options_.out + "/variants.jsonl", variants_));
    RETURN_IF_ERROR(WriteFileAtomic(options_.out + "/left_out.jsonl", left_out_));
    return WriteFileAtomic(options_.out + "/summary.json", SummaryJson());
  }

  absl::Status WriteFamily(const Family& family) {
    const std::string& id = family.task->id;
    const std::vector<std::string>& original = family.original.check.inputs;
    if (!family.original.check.problem.empty()) {
      ++summary_.broken;
      left_out_ += Dump(Json{{"task", id}, {"reason", family.original.check.problem}}) + "\n";
      return RemoveOldVariants(id, 0);
    }
    if (options_.with_originals) RETURN_IF_ERROR(WriteTask(id, family.original, id));
    std::vector<std::vector<std::string>> kept = {original};
    for (size_t v = 0; v < family.variants.size(); ++v) {
      const InputCheck& check = family.variants[v].check;
      std::string reason = check.problem;
      if (reason.empty()) reason = CompareInputs(original, check.inputs);
      if (reason.empty() && std::find(kept.begin(), kept.end(), check.inputs) != kept.end()) {
        reason = "same shapes";
      }
      if (!reason.empty()) {
        ++summary_.left_out[reason.substr(0, reason.find(": "))];
        left_out_ += Dump(Json{{"task", id}, {"variant", v + 1}, {"reason", reason}}) + "\n";
        continue;
      }
      RETURN_IF_ERROR(WriteTask(VariantName(id, kept.size()), family.variants[v], id));
      kept.push_back(check.inputs);
    }
    const int count = static_cast<int>(kept.size()) - 1;
    summary_.kept += count;
    ++summary_.tasks_by_kept[count];
    return RemoveOldVariants(id, count);
  }

  absl::Status WriteTask(const std::string& name, const Version& version, const std::string& task) {
    const std::string path = absl::StrCat(options_.out, "/", name, ".py");
    RETURN_IF_ERROR(CreateDirectories(DirName(path)));
    RETURN_IF_ERROR(WriteFileAtomic(path, version.source));
    variants_ +=
        Dump(Json{{"variant", name}, {"task", task}, {"inputs", version.check.inputs}}) + "\n";
    return absl::OkStatus();
  }

  // Removes the files of variants that an earlier run with more variants wrote.
  absl::Status RemoveOldVariants(const std::string& id, int kept) const {
    for (int v = kept + 1; v <= kMostVariants; ++v) {
      RETURN_IF_ERROR(RemoveTree(absl::StrCat(options_.out, "/", VariantName(id, v), ".py")));
    }
    return absl::OkStatus();
  }

  std::string SummaryJson() const {
    Json json = {{"model", options_.ask.model},
                 {"temperature", options_.ask.temperature},
                 {"top_p", options_.ask.top_p},
                 {"variants", options_.variants},
                 {"tasks", summary_.tasks},
                 {"broken", summary_.broken},
                 {"proposed", summary_.proposed},
                 {"kept", summary_.kept},
                 {"prompt_tokens", summary_.counts.prompt_tokens},
                 {"completion_tokens", summary_.counts.completion_tokens},
                 {"cost", summary_.counts.cost}};
    json["left_out"] = Json::object();
    for (const auto& [reason, count] : summary_.left_out) json["left_out"][reason] = count;
    json["tasks_by_kept"] = Json::object();
    for (const auto& [kept, count] : summary_.tasks_by_kept) {
      json["tasks_by_kept"][absl::StrCat(kept)] = count;
    }
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  const AugmentOptions& options_;
  EndpointClient* const client_;
  const std::string journal_;
  CheckJournal checks_;
  AugmentSummary summary_;
  std::vector<Family> families_;
  std::string variants_, left_out_;  // contents of the files
};

}  // namespace

absl::StatusOr<AugmentSummary> AugmentInputs(const AugmentOptions& options,
                                             EndpointClient* client) {
  Augmenter augmenter(options, client);
  return augmenter.Run();
}

std::string AugmentTable(const AugmentSummary& summary) {
  std::vector<std::pair<std::string, std::string>> rows = {
      {"tasks", absl::StrCat(summary.tasks)},
      {"tasks that do not run", absl::StrCat(summary.broken)},
      {"variants proposed", absl::StrCat(summary.proposed)},
      {"variants kept", absl::StrCat(summary.kept)}};
  for (const auto& [kept, count] : summary.tasks_by_kept) {
    rows.emplace_back(absl::StrCat("tasks with ", kept), absl::StrCat(count));
  }
  rows.emplace_back("prompt tokens", absl::StrCat(summary.counts.prompt_tokens));
  rows.emplace_back("answer tokens", absl::StrCat(summary.counts.completion_tokens));
  if (summary.counts.cost > 0) {
    rows.emplace_back("cost", absl::StrFormat("$%.2f", summary.counts.cost));
  }
  std::string text = TwoColumns(rows);
  for (const auto& [reason, count] : summary.left_out) {
    absl::StrAppend(&text, "left out, ", reason, ": ", count, "\n");
  }
  return text;
}

}  // namespace tritonrl
