#ifndef TRITONRL_ROLLOUT_DISTRIBUTED_WEIGHT_BROADCAST_H_
#define TRITONRL_ROLLOUT_DISTRIBUTED_WEIGHT_BROADCAST_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/weights/weights.h"
#include "parallel/process_group.h"
#include "parallel/shard_plan.h"
#include "rollout/engine/engine.h"

// What an update of an engine's weights from another rank consists of, in words and numbers.
//
// Broadcasts weights from the learner to the engines of other ranks.

namespace tritonrl {

struct WeightUpdate {
  uint64_t version = 0;
  // Of the flat buffer, in rising order; each begins and ends at a multiple of 64 elements.
  std::vector<FlatRange> buckets;
  int64_t elements() const;
};

// The parts of the flat buffer that hold the parameters `changed` (null: all of it), neighbours
// joined, cut into buckets of at most `bucket_elements` (a multiple of 64). InvalidArgument names a
// parameter that does not exist.
absl::StatusOr<std::vector<FlatRange>> ChangedBuckets(const ParameterLayout& layout,
                                                      const std::vector<std::string>* changed,
                                                      int64_t bucket_elements);

// An update as text and back. DataLoss: a text that is no update of buffers of `flat_size`.
std::string EncodeUpdate(const WeightUpdate& update);
absl::StatusOr<WeightUpdate> DecodeUpdate(const std::string& text, int64_t flat_size);

// One line for each thing in which weights must agree before one buffer can be copied over the
// other: the kind of device, what attention makes of them, each parameter with type and shape.
std::string DescribeWeights(const Weights& weights);
// OK if all ranks' descriptions are the first one's, else InvalidArgument, which names the first
// rank that has another one, and the line.
absl::Status CompareDescriptions(const std::vector<std::string>& descriptions);

// Of each bucket of `flat` the sum of its 64-bit words, modulo 2^64: another value in any one word
// changes it. One pass over the memory.
std::vector<uint64_t> BucketChecksums(const at::Tensor& flat,
                                      const std::vector<FlatRange>& buckets);

// What a rank has after an update, as text for the others.
std::string EncodeArrival(uint64_t version, const std::vector<uint64_t>& sums);
// OK if all ranks have what the first has; DataLoss names the first rank that has another version
// or another sum, and the bucket.
absl::Status CompareArrivals(const std::vector<std::string>& arrivals,
                             const std::vector<FlatRange>& buckets);

// Where the time of an update went.
struct WeightUpdateTimes {
  int64_t bytes = 0;         // that each receiver got
  absl::Duration agreement;  // until all ranks were ready, whatever kept them
  absl::Duration transfer;   // from then until everything had arrived
  absl::Duration comparison;
};

struct ReceiveOptions {
  // The version that must come; none: any.
  std::optional<uint64_t> expected;
  // Samples that are being generated pause, and what they have computed is treated so
  // (Engine::PauseForWeightUpdate); none: there must be no such samples.
  std::optional<Engine::KvPolicy> pause;
};

// Rank 0 of a group of ranks sends, the others receive. Bytes go straight from one flat buffer into
// the others, from GPU to GPU (NCCL, on a stream of its own) where the group has joined its GPUs
// (ProcessGroup::InitNcclCollectives), else through host memory (MPI). All waiting has the group's
// deadline. Used by the thread that joined the job. After an error of the group no later update can
// succeed.
class WeightBroadcast {
 public:
  // Called by all ranks of `group` (which must outlive this object) together, each with the weights
  // that are sent or overwritten. Pieces that travel have at most `bucket_elements` (a multiple of
  // 64, at most 2 GiB; rank 0's counts). Engines are at version 0 then. InvalidArgument on every
  // rank if shapes, types or kinds of device differ.
  static absl::StatusOr<std::unique_ptr<WeightBroadcast>> Join(
      std::shared_ptr<Weights> weights, ProcessGroup* group,
      int64_t bucket_elements = ShardPlan::kBucketElements);
  WeightBroadcast(const WeightBroadcast&) = delete;
  WeightBroadcast& operator=(const WeightBroadcast&) = delete;

  // On rank 0: waits until all engines are ready, sends what the current stream has made of the
  // weights, and waits until all ranks have it and have compared it; the weights must stay as they
  // are meanwhile. `changed`: names of the parameters that travel; none: all; an empty list: only
  // the version. Errors before anything was sent: InvalidArgument, an unknown name; that of a rank
  // whose engine was not ready, with its number. Later: DataLoss on every rank if one has other
  // weights than rank 0.
  absl::Status Send(uint64_t version,
                    const std::optional<std::vector<std::string>>& changed = std::nullopt);

  // On the other ranks: waits for an update, writes it into the weights, which `engine` shares,
  // between its BeginWeightUpdate (or PauseForWeightUpdate) and EndWeightUpdate(version), and gives
  // the version. Errors before anything was written, on every rank and with the number of the rank
  // that has them, leave the engine as it was: FailedPrecondition for samples that are being
  // generated, or another version than `expected`. After any later one the engine stays in its
  // update, for its weights are of no version then.
  absl::StatusOr<uint64_t> Receive(Engine* engine, const ReceiveOptions& options = {});

  // Of the last update that ended well.
  const WeightUpdateTimes& times() const { return times_; }

 private:
  WeightBroadcast(std::shared_ptr<Weights> weights, ProcessGroup* group, int64_t bucket_elements)
      : weights_(std::move(weights)), group_(group), bucket_elements_(bucket_elements) {}

  // What rank 0 announces, once `engine` and all others are ready for it.
  absl::StatusOr<WeightUpdate> Await(Engine* engine, const ReceiveOptions& options);
  // Sends or receives an update for which all ranks are ready, and compares what they have then.
  absl::Status Exchange(const WeightUpdate& update, absl::Time began);

  const std::shared_ptr<Weights> weights_;
  ProcessGroup* const group_;
  const int64_t bucket_elements_;
  uint64_t version_ = 0;    // of these weights; 0 before the first update
  bool in_update_ = false;  // a receiver's engine has begun one that has not ended
  WeightUpdateTimes times_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_DISTRIBUTED_WEIGHT_BROADCAST_H_
