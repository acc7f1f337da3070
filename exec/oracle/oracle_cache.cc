#include "exec/oracle/oracle_cache.h"

#include <utility>

#include "exec/device_backend.h"

namespace tritonrl {

std::shared_ptr<const OracleResult> OracleCache::Get(const std::string& key, absl::Time deadline,
                                                     const Make& make, bool* cached) {
  Dropped dropped;  // what is in it ends without the lock, which can take a while
  {
    absl::MutexLock lock(&mutex_);
    while (true) {
      const auto found = entries_.find(key);
      if (found == entries_.end()) break;
      const std::shared_ptr<const OracleResult>& kept = found->second.result;
      if (kept != nullptr && kept->host != nullptr && !kept->host->alive()) {
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
    entries_[key];  // says that it is being made
    ++counts_.runs;
    if (max_hosts_ > 0) DropHosts(max_hosts_, &dropped);
  }
  *cached = false;
  dropped.clear();
  std::shared_ptr<const OracleResult> result = make();
  absl::MutexLock lock(&mutex_);
  Store(key, result, &dropped);
  changed_.SignalAll();
  return result;
}

void OracleCache::Store(const std::string& key, std::shared_ptr<const OracleResult> result,
                        Dropped* dropped) {
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
    Erase(std::string(recent_.back()), dropped);
  }
}

void OracleCache::Erase(const std::string& key, Dropped* dropped) {
  const auto found = entries_.find(key);
  counts_.bytes -= found->second.bytes;
  --counts_.entries;
  dropped->push_back(std::move(found->second.result));
  recent_.erase(found->second.place);
  entries_.erase(found);
}

void OracleCache::DropHosts(int most, Dropped* dropped) {
  int hosts = 0;
  for (const auto& [key, entry] : entries_) {
    hosts += entry.result == nullptr || entry.result->host != nullptr;
  }
  std::vector<std::string> idle;  // the last used first
  for (const std::string& key : recent_) {
    const std::shared_ptr<const OracleResult>& result = entries_[key].result;
    // Nobody else can get hold of it without the lock.
    if (result->host != nullptr && result.use_count() == 1) idle.push_back(key);
  }
  for (; hosts > most && !idle.empty(); --hosts) {
    Erase(idle.back(), dropped);
    idle.pop_back();
  }
}

void OracleCache::DropIdleHosts() {
  Dropped dropped;
  absl::MutexLock lock(&mutex_);
  DropHosts(0, &dropped);
}

void OracleCache::Forget(const std::string& key,
                         const std::shared_ptr<const OracleResult>& result) {
  Dropped dropped;
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(key);
  if (found != entries_.end() && found->second.result == result) Erase(key, &dropped);
}

OracleCache::Counts OracleCache::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace tritonrl
