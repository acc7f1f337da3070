// Verdicts by content hash, in memory and in a journal that outlives the process.
#ifndef TRITONRL_VERIFY_VERDICT_VERDICT_CACHE_H_
#define TRITONRL_VERIFY_VERDICT_VERDICT_CACHE_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/jsonl.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

class VerdictCache {
 public:
  // `path` is a JSONL file, one verdict a line; "" keeps verdicts in memory only.
  explicit VerdictCache(std::string path) : path_(std::move(path)) {}

  // Reads the journal if it exists. DataLoss names the file and the line that is not a verdict.
  // Returns the number of verdicts read. Call it before Add.
  absl::StatusOr<int64_t> Open();

  // The verdict for a content hash, without key and with from_cache set.
  std::optional<Verdict> Find(const std::string& content_hash) const;

  // Remembers a verdict under its content_hash and appends it to the journal. A verdict that is
  // already known is not written again. Verdicts with an infrastructure error must not be added.
  absl::Status Add(const Verdict& verdict);

 private:
  const std::string path_;
  mutable absl::Mutex mutex_;
  std::unique_ptr<JsonlJournal> journal_ ABSL_GUARDED_BY(mutex_);  // null: memory only
  absl::flat_hash_map<std::string, std::shared_ptr<const Verdict>> verdicts_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_VERDICT_VERDICT_CACHE_H_
