#include "exec/oracle_cache.h"

#include <utility>

#include "exec/device_backend.h"

namespace tritonrl {

std::shared_ptr<const OracleResult> OracleCache::Get(const std::string& key, absl::Time deadline,
                                                     const Make& make, bool* cached) {
  {
    absl::MutexLock lock(&mutex_);
    while (true) {
      const auto found = entries_.find(key);
      if (found == entries_.end()) break;
      if (found->second.result != nullptr) {
        recent_.splice(recent_.begin(), recent_, found->second.place);
        ++counts_.hits;
        *cached = true;
        return found->second.result;
      }
      if (changed_.WaitWithDeadline(&mutex_, deadline)) return nullptr;
    }
    entries_[key];  // says that it is being made
    ++counts_.runs;
  }
  *cached = false;
  std::shared_ptr<const OracleResult> result = make();
  absl::MutexLock lock(&mutex_);
  Store(key, result);
  changed_.SignalAll();
  return result;
}

void OracleCache::Store(const std::string& key, std::shared_ptr<const OracleResult> result) {
  if (FaultOf(result->run.outcome()) == EXEC_FAULT_OURS) {
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
    const auto oldest = entries_.find(recent_.back());
    counts_.bytes -= oldest->second.bytes;
    --counts_.entries;
    entries_.erase(oldest);
    recent_.pop_back();
  }
}

OracleCache::Counts OracleCache::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace tritonrl
