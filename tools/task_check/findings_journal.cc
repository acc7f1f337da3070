#include "tools/task_check/findings_journal.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxLineBytes = 1 << 20;

// The line's member as a text; null if it is none.
const std::string* Member(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? nullptr : found->get_ptr<const std::string*>();
}

}  // namespace

absl::StatusOr<std::unique_ptr<FindingsJournal>> FindingsJournal::Open(const std::string& path) {
  std::unique_ptr<FindingsJournal> journal(new FindingsJournal());
  std::map<std::string, TaskFinding> findings;
  ASSIGN_OR_RETURN(
      auto file,
      JsonlJournal::Open(path, kMaxLineBytes, [&](const Line& line) -> absl::StatusOr<bool> {
        const Json json = Json::parse(line.text, nullptr, /*allow_exceptions=*/false);
        if (!json.is_object()) return false;
        const std::string *key = Member(json, "key"), *reason = Member(json, "reason"),
                          *message = Member(json, "message");
        if (key == nullptr || reason == nullptr || message == nullptr) return false;
        std::vector<std::string> inputs;
        for (const Json& input : json.value("inputs", Json::array())) {
          if (!input.is_string()) return false;
          inputs.push_back(input.get<std::string>());
        }
        findings[*key] = {*reason, *message, std::move(inputs)};
        return true;
      }));
  absl::MutexLock lock(&journal->mutex_);
  journal->findings_ = std::move(findings);
  journal->file_ = std::move(file);
  return journal;
}

const TaskFinding* FindingsJournal::Find(const std::string& key) const {
  absl::MutexLock lock(&mutex_);
  const auto found = findings_.find(key);
  return found == findings_.end() ? nullptr : &found->second;  // a map's values stay where they are
}

absl::Status FindingsJournal::Append(const std::string& key, const TaskFinding& finding) {
  const Json json = {{"key", key},
                     {"reason", finding.reason},
                     {"message", finding.message},
                     {"inputs", finding.inputs}};
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(
      file_->Append(json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace)));
  findings_[key] = finding;
  return absl::OkStatus();
}

}  // namespace tritonrl
