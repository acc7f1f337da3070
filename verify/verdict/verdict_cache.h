// A cache of verdicts by content hash, in memory and in a journal that later processes replay.
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

// Thread-safe.
class VerdictCache {
 public:
  // `path` is a JSONL file with one verdict per line; "" keeps verdicts in memory only.
  explicit VerdictCache(std::string path) : path_(std::move(path)) {}

  // Reads the journal if it exists, and returns the number of verdicts read. DataLoss names the
  // file and the line that is no verdict of this version. Must be called before Add.
  absl::StatusOr<int64_t> Open();

  // Returns the verdict for a content hash, without key and with from_cache set.
  std::optional<Verdict> Find(const std::string& content_hash) const;

  // Stores a verdict under its content_hash and appends it to the journal; does nothing if the hash
  // is already stored. Verdicts with an infrastructure error must not be added. Errors are those of
  // the journal.
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
