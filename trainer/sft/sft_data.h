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
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/thread_pool.h"
#include "model/layers/packed_batch.h"
#include "model/tokenizer/tokenizer.h"
#include "trainer/config/config.pb.h"
#include "trainer/objective/packing.h"
#include "trainer/sft/token_cache.h"

// The data of supervised fine-tuning: the order of the tokenised examples, and packed batches.

namespace tritonrl {

// The endless order of examples: one epoch after the other, each with its own permutation, keyed by
// (seed, epoch). A pure function of its arguments, so a resumed run needs only its step.
class SftOrder {
 public:
  SftOrder(const TokenCache* data, const SftConfig& config);

  // Indices of the config.batch_size examples of step `step`. Thread-safe.
  std::vector<int64_t> Batch(int64_t step);

 private:
  std::shared_ptr<const std::vector<int64_t>> Permutation(int64_t epoch);
  int64_t At(int64_t position);

  const TokenCache* data_;
  const int64_t batch_size_;
  const int64_t window_;  // examples in a window of LENGTH_BUCKETED, or 0
  const uint64_t seed_;
  absl::Mutex mutex_;
  std::map<int64_t, std::shared_ptr<const std::vector<int64_t>>> permutations_
      ABSL_GUARDED_BY(mutex_);
};

// The packed sequences of one forward and backward pass.
struct SftMicroBatch {
  PackedBatch batch;   // all tokens of each example, on the CPU
  at::Tensor targets;  // [T] int64, -1 except where the next token is taught
};

struct SftBatch {
  std::vector<SftMicroBatch> micro_batches;
  int64_t tokens = 0;           // all tokens
  int64_t response_tokens = 0;  // tokens that have a loss
  int64_t dropped = 0;          // examples that are left out (IsLeftOut)
};

// The rank for which a batch is made. Examples are assigned to ranks by cost (BalanceOverRanks).
struct SftShare {
  int rank = 0;
  int size = 1;
  SequenceCost cost;
};

// Whether example i is left out of training: it is longer than max_sequence_tokens, or nothing of
// it is taught.
bool IsLeftOut(const TokenCache& data, int64_t i, int64_t max_sequence_tokens);

// Whether no taught turn of example i has a text: at most an empty thought and white space before
// `end`, the text that ends a turn.
bool HasEmptyResponse(const TokenCache& data, int64_t i, const Tokenizer& tokenizer,
                      absl::string_view end);

// What a data set holds, for the start of a run.
struct ExampleCounts {
  int64_t examples = 0;
  int64_t too_long = 0;  // longer than max_sequence_tokens: left out
  int64_t empty = 0;     // of the others, those with an empty response: they teach the end alone
  int64_t max_sequence_tokens = 0;
  int64_t longest = 0, shortest = 0;  // tokens

  // "2 of 35 examples are longer than ... and are left out"; "" if none is.
  std::string TooLongSentence() const;
  // "3 examples have an empty response and teach only the end of a turn"; "" if none has.
  std::string EmptySentence() const;
  // FailedPrecondition, and why: no example teaches anything else than the end of a turn.
  absl::Status Check() const;
};
ExampleCounts CountExamples(const TokenCache& data, int64_t max_sequence_tokens,
                            const Tokenizer& tokenizer, absl::string_view end);

// Packs the examples of a batch that `share` assigns to its rank. Every rank computes the same
// assignment from the lengths, without communication. Only rank 0 counts dropped examples.
SftBatch MakeSftBatch(const TokenCache& data, const std::vector<int64_t>& indices,
                      int64_t max_sequence_tokens, int64_t micro_batch_tokens,
                      const SftShare& share = {});

struct SftLoaderOptions {
  int64_t max_sequence_tokens = 1024;
  int64_t micro_batch_tokens = 4096;
  int rank = 0;  // the loader's rank, as in SftShare
  int size = 1;
  SequenceCost cost;
  int threads = 1;  // that pack batches
  int64_t first_step = 0;
  int64_t end_step = 0;  // one past the last step
};

// Prepares batches in the background, at most `2 * threads + 1` steps ahead, and returns them in
// order.
class SftLoader {
 public:
  // The pointers must outlive the loader.
  SftLoader(SftLoaderOptions options, const TokenCache* data, SftOrder* order);

  // The next step's batch (this rank's share). Must be called at most end_step - first_step times.
  absl::StatusOr<SftBatch> Next();

 private:
  void ScheduleOne();

  SftLoaderOptions options_;
  const TokenCache* data_;
  SftOrder* order_;
  int64_t next_scheduled_;
  std::deque<std::future<absl::StatusOr<SftBatch>>> pending_;
  ThreadPool pool_;  // the last member: its threads end before other members are destroyed
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_SFT_SFT_DATA_H_
