#include "trainer/grpo/fault_journal.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

absl::StatusOr<std::unique_ptr<FaultJournal>> FaultJournal::Open(const std::string& path) {
  std::unique_ptr<FaultJournal> journal(new FaultJournal(path));
  if (path.empty() || !FileExists(path)) return journal;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto line = nlohmann::json::parse(text.substr(begin, end - begin), nullptr, false);
    if (!line.is_object() || !line.contains("key")) {
      return absl::DataLossError(
          absl::StrCat(path, ": a line is damaged; remove the file to go on"));
    }
    FaultOfOurs fault;
    fault.set_kind(static_cast<FaultOfOurs::Kind>(line.value("kind", 0)));
    fault.set_text(line.value("text", ""));
    journal->faults_[line["key"].get<std::string>()] = fault;
  }
  if (begin < text.size()) RETURN_IF_ERROR(WriteFileAtomic(path, text.substr(0, begin)));
  return journal;
}

void FaultJournal::Add(const std::string& key, const FaultOfOurs& fault) {
  if (!faults_.emplace(key, fault).second) return;
  const nlohmann::json line = {
      {"key", key}, {"kind", static_cast<int>(fault.kind())}, {"text", fault.text()}};
  pending_ += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

absl::Status FaultJournal::Commit() {
  if (pending_.empty() || path_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(AppendToFile(path_, pending_));
  pending_.clear();
  return absl::OkStatus();
}

const FaultOfOurs* FaultJournal::Find(const std::string& key) const {
  auto it = faults_.find(key);
  return it == faults_.end() ? nullptr : &it->second;
}

}  // namespace tritonrl
