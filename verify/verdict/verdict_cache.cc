#include "verify/verdict/verdict_cache.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {

absl::StatusOr<int64_t> VerdictCache::Open() {
  if (path_.empty()) return 0;
  absl::MutexLock lock(&mutex_);
  int64_t read = 0;
  const auto keep = [&](const Line& line) -> absl::StatusOr<bool> {
    mutex_.AssertHeld();
    absl::StatusOr<Verdict> verdict = VerdictFromJson(line.text);
    if (!verdict.ok() || verdict->content_hash().empty()) {
      return absl::DataLossError(absl::StrCat("verdict journal ", path_, ", line ", line.number,
                                              " is not a verdict of this version; remove the line "
                                              "or the file"));
    }
    const std::string hash = verdict->content_hash();
    verdicts_[hash] = std::make_shared<const Verdict>(*std::move(verdict));
    ++read;
    return true;
  };
  ASSIGN_OR_RETURN(journal_, JsonlJournal::Open(path_, JsonlJournal::kMaxLineBytes, keep,
                                                JsonlJournal::Lock::kNone));
  return read;
}

std::optional<Verdict> VerdictCache::Find(const std::string& content_hash) const {
  std::shared_ptr<const Verdict> found;
  {
    absl::MutexLock lock(&mutex_);
    auto it = verdicts_.find(content_hash);
    if (it == verdicts_.end()) return std::nullopt;
    found = it->second;
  }
  Verdict verdict = *found;
  verdict.set_from_cache(true);
  return verdict;
}

absl::Status VerdictCache::Add(const Verdict& verdict) {
  auto stored = std::make_shared<Verdict>(verdict);
  stored->clear_key();
  stored->clear_from_cache();
  absl::MutexLock lock(&mutex_);
  if (!verdicts_.emplace(stored->content_hash(), stored).second || journal_ == nullptr)
    return absl::OkStatus();
  return journal_->Append(VerdictToJson(*stored));
}

}  // namespace tritonrl
