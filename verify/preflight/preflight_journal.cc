#include "verify/preflight/preflight_journal.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/hash.h"
#include "base/status.h"
#include "exec/device_backend.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

// Must be increased when the probes or the meaning of a state change.
constexpr int kJournalVersion = 1;

std::optional<TaskState> StateFromName(const std::string& name) {
  for (const TaskState state : {TaskState::kSound, TaskState::kUnsound, TaskState::kBroken}) {
    if (name == TaskStateName(state)) return state;
  }
  return std::nullopt;
}

std::string TextOf(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string PreflightRules(const PreflightOptions& options, const std::string& backend) {
  return absl::StrCat("v", kJournalVersion, " ", backend, " ", options.device_model, " rules ",
                      RulesName(options.rules), " seed ", options.seed, " trials ", options.trials,
                      " tol ", options.atol, " ", options.rtol, " limit ",
                      absl::FormatDuration(options.run_limit));
}

std::string PreflightJournal::KeyOf(const Task& task) const {
  return Sha256Hex(absl::StrCat(rules_, "\n", task.source));
}

absl::StatusOr<std::unique_ptr<PreflightJournal>> PreflightJournal::Open(const std::string& path,
                                                                         const std::string& rules) {
  std::unique_ptr<PreflightJournal> journal(new PreflightJournal(rules));
  const auto keep = [&](const Line& line) -> absl::StatusOr<bool> {
    const Json json = Json::parse(line.text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return false;
    const std::string key = TextOf(json, "key");
    const std::optional<TaskState> state = StateFromName(TextOf(json, "state"));
    if (key.empty() || !state.has_value()) return false;
    journal->checks_[key] = {
        .task = TextOf(json, "task"), .state = *state, .reason = TextOf(json, "reason")};
    return true;
  };
  ASSIGN_OR_RETURN(journal->file_, JsonlJournal::Open(path, JsonlJournal::kMaxLineBytes, keep));
  return journal;
}

std::optional<TaskCheck> PreflightJournal::Find(const Task& task) const {
  const auto found = checks_.find(KeyOf(task));
  if (found == checks_.end()) return std::nullopt;
  TaskCheck check = found->second;
  check.task = task.id;
  return check;
}

absl::Status PreflightJournal::Add(const Task& task, const TaskCheck& check) {
  if (check.state == TaskState::kNotChecked) return absl::OkStatus();
  const std::string key = KeyOf(task);
  if (!checks_.emplace(key, check).second) return absl::OkStatus();
  const Json json = {{"key", key},
                     {"task", check.task},
                     {"state", TaskStateName(check.state)},
                     {"reason", check.reason},
                     {"rules", rules_}};
  return file_->Append(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

absl::StatusOr<std::vector<TaskCheck>> RunPreflightWithJournal(const std::vector<Task>& tasks,
                                                               DeviceBackend* backend,
                                                               const PreflightOptions& options,
                                                               const std::string& journal,
                                                               std::FILE* messages) {
  if (journal.empty()) return RunPreflight(tasks, backend, options, /*out=*/"", messages);
  ASSIGN_OR_RETURN(const std::unique_ptr<PreflightJournal> known,
                   PreflightJournal::Open(journal, PreflightRules(options, backend->name())));
  std::vector<TaskCheck> checks(tasks.size());
  std::vector<Task> open;
  std::vector<size_t> places;                  // of the open tasks in `tasks`
  std::map<std::string, const Task*> by_name;  // open tasks
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (std::optional<TaskCheck> check = known->Find(tasks[i]); check.has_value()) {
      checks[i] = *std::move(check);
      continue;
    }
    open.push_back(tasks[i]);
    places.push_back(i);
    by_name[tasks[i].id] = &tasks[i];
  }
  if (open.empty()) return checks;
  absl::Status kept;
  PreflightOptions watched = options;
  watched.done = [&](const TaskCheck& check) {
    if (kept.ok()) kept = known->Add(*by_name.at(check.task), check);
    options.done(check);
  };
  absl::StatusOr<std::vector<TaskCheck>> ended =
      RunPreflight(open, backend, watched, /*out=*/"", messages);
  RETURN_IF_ERROR(kept);
  RETURN_IF_ERROR(ended.status());
  for (size_t i = 0; i < places.size(); ++i) checks[places[i]] = std::move((*ended)[i]);
  return checks;
}

}  // namespace tritonrl
