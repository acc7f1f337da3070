#ifndef TRITONRL_TRAINER_SFT_SFT_DATA_H_
#define TRITONRL_TRAINER_SFT_SFT_DATA_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/thread_pool.h"
#include "model/layers/packed_batch.h"
#include "model/tokenizer/tokenizer.h"
#include "trainer/config/config.pb.h"
#include "trainer/objective/packing.h"

// The data of supervised fine-tuning: examples in files, their order, and packed batches.

namespace tritonrl {

struct SftExample {
  std::string prompt;
  std::string response;
};

// Random access to (prompt, response) pairs in JSON Lines files of any size. Only the offsets of
// the lines are in memory.
class JsonlData {
 public:
  // Scans the files once for line ends and skips blank lines. Errors name the file; InvalidArgument
  // if no line is left.
  static absl::StatusOr<std::unique_ptr<JsonlData>> Open(const std::vector<std::string>& paths);
  ~JsonlData();
  JsonlData(const JsonlData&) = delete;
  JsonlData& operator=(const JsonlData&) = delete;

  int64_t size() const { return static_cast<int64_t>(lines_.size()); }
  // Bytes of line i, as an approximation of its length in tokens.
  int64_t bytes(int64_t i) const { return lines_[i].bytes; }
  // Reads and parses line i. Thread-safe. InvalidArgument: "file:line: message".
  absl::StatusOr<SftExample> Read(int64_t i) const;

 private:
  struct Line {
    int64_t offset;
    int32_t bytes;
    int32_t file;
    int64_t number;  // line number from 1, for messages
  };
  JsonlData() = default;
  absl::Status Scan(int file);

  std::vector<std::string> paths_;
  std::vector<int> descriptors_;
  std::vector<Line> lines_;
};

// The endless order of examples: one epoch after the other, each with its own permutation, keyed by
// (seed, epoch). A pure function of its arguments, so a resumed run needs only its step.
class SftOrder {
 public:
  SftOrder(const JsonlData* data, const SftConfig& config);

  // Indices of the config.batch_size examples of step `step`. Thread-safe.
  std::vector<int64_t> Batch(int64_t step);

 private:
  std::shared_ptr<const std::vector<int64_t>> Permutation(int64_t epoch);
  int64_t At(int64_t position);

  const JsonlData* data_;
  const int64_t batch_size_;
  const int64_t window_;  // examples in a window of LENGTH_BUCKETED, or 0
  const uint64_t seed_;
  absl::Mutex mutex_;
  std::map<int64_t, std::shared_ptr<const std::vector<int64_t>>> permutations_
      ABSL_GUARDED_BY(mutex_);
};

// The packed sequences of one forward and backward pass.
struct SftMicroBatch {
  PackedBatch batch;   // prompt + response + end token of each example, on the CPU
  at::Tensor targets;  // [T] int64, -1 except where the next token is part of a response
};

struct SftBatch {
  std::vector<SftMicroBatch> micro_batches;
  int64_t tokens = 0;           // all tokens
  int64_t response_tokens = 0;  // tokens that have a loss
  int64_t dropped = 0;          // examples longer than max_sequence_tokens
};

// The rank for which a batch is made. Examples are assigned to ranks by cost (BalanceOverRanks).
struct SftShare {
  int rank = 0;
  int size = 1;
  SequenceCost cost;
};

// Tokenizes the examples of a whole batch and packs those of `share`. Every rank tokenizes all
// examples, so that it knows their lengths and computes the same assignment without communication.
// The end token is appended to a response that does not end in it. Only rank 0 counts dropped
// examples.
absl::StatusOr<SftBatch> MakeSftBatch(const JsonlData& data, const std::vector<int64_t>& indices,
                                      const Tokenizer& tokenizer, int32_t end_token,
                                      int64_t max_sequence_tokens, int64_t micro_batch_tokens,
                                      const SftShare& share = {});

struct SftLoaderOptions {
  int32_t end_token = 0;
  int64_t max_sequence_tokens = 1024;
  int64_t micro_batch_tokens = 4096;
  int rank = 0;  // the loader's rank, as in SftShare
  int size = 1;
  SequenceCost cost;
  int threads = 1;  // tokenizer threads
  int64_t first_step = 0;
  int64_t end_step = 0;  // one past the last step
};

// Prepares batches in the background, at most `2 * threads + 1` steps ahead, and returns them in
// order.
class SftLoader {
 public:
  // The pointers must outlive the loader.
  SftLoader(SftLoaderOptions options, const JsonlData* data, SftOrder* order,
            const Tokenizer* tokenizer);

  // The next step's batch (this rank's share). Must be called at most end_step - first_step times.
  absl::StatusOr<SftBatch> Next();

 private:
  void ScheduleOne();

  SftLoaderOptions options_;
  const JsonlData* data_;
  SftOrder* order_;
  const Tokenizer* tokenizer_;
  int64_t next_scheduled_;
  std::deque<std::future<absl::StatusOr<SftBatch>>> pending_;
  ThreadPool pool_;  // the last member: its threads end before other members are destroyed
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_SFT_SFT_DATA_H_
