#include "exec/reference/reference_cache.h"

#include <utility>

#include "exec/device_backend.h"

namespace tritonrl {

std::shared_ptr<const ReferenceResult> ReferenceCache::Get(const std::string& key,
                                                           absl::Time deadline, const Make& make,
                                                           bool* cached) {
  Dropped dropped;  // destroyed without the lock, as the end of a session can take seconds
  {
    absl::MutexLock lock(&mutex_);
    while (true) {
      const auto found = entries_.find(key);
      if (found == entries_.end()) break;
      const std::shared_ptr<const ReferenceResult>& kept = found->second.result;
      if (kept != nullptr && kept->session != nullptr && !kept->session->alive()) {
        Erase(key, &dropped);
        break;
      }
      if (kept != nullptr) {
        recent_.splice(recent_.begin(), recent_, found->second.place);
        ++counts_.hits;
        *cached = true;
        return kept;
      }
      if (changed_.WaitWithDeadline(&mutex_, deadline)) return nullptr;
    }
    entries_[key];  // an entry without a result: being made
    ++counts_.runs;
    if (max_sessions_ > 0) DropSessions(max_sessions_, &dropped);
  }
  *cached = false;
  dropped.clear();
  std::shared_ptr<const ReferenceResult> result = make();
  absl::MutexLock lock(&mutex_);
  Store(key, result, &dropped);
  changed_.SignalAll();
  return result;
}

void ReferenceCache::Store(const std::string& key, std::shared_ptr<const ReferenceResult> result,
                           Dropped* dropped) {
  if (StatusOf(result->run.outcome().reason()) == Outcome::STATUS_INFRA_ERROR) {
    entries_.erase(key);
    return;
  }
  Entry& entry = entries_[key];
  entry.bytes = result->bytes();
  entry.result = std::move(result);
  recent_.push_front(key);
  entry.place = recent_.begin();
  counts_.bytes += entry.bytes;
  ++counts_.entries;
  while (counts_.bytes > max_bytes_ && !recent_.empty()) {
    Erase(std::string(recent_.back()), dropped);
  }
}

void ReferenceCache::Erase(const std::string& key, Dropped* dropped) {
  const auto found = entries_.find(key);
  counts_.bytes -= found->second.bytes;
  --counts_.entries;
  dropped->push_back(std::move(found->second.result));
  recent_.erase(found->second.place);
  entries_.erase(found);
}

void ReferenceCache::DropSessions(int most, Dropped* dropped) {
  int reference_processes = 0;
  for (const auto& [key, entry] : entries_) {
    reference_processes += entry.result == nullptr || entry.result->session != nullptr;
  }
  std::vector<std::string> idle;  // most recently used first
  for (const std::string& key : recent_) {
    const std::shared_ptr<const ReferenceResult>& result = entries_[key].result;
    // The cache holds the only reference, and without the lock no caller can get another.
    if (result->session != nullptr && result.use_count() == 1) idle.push_back(key);
  }
  for (; reference_processes > most && !idle.empty(); --reference_processes) {
    Erase(idle.back(), dropped);
    idle.pop_back();
  }
}

void ReferenceCache::DropIdleSessions() {
  Dropped dropped;
  absl::MutexLock lock(&mutex_);
  DropSessions(0, &dropped);
}

void ReferenceCache::Forget(const std::string& key,
                            const std::shared_ptr<const ReferenceResult>& result) {
  Dropped dropped;
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(key);
  if (found != entries_.end() && found->second.result == result) Erase(key, &dropped);
}

ReferenceCache::Counts ReferenceCache::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace tritonrl
