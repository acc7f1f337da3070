// Broadcasts weight updates from the learner to the engines of other ranks.

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
#include "parallel/zero_shard_plan.h"
#include "rollout/engine/engine.h"

namespace tritonrl {

struct WeightUpdate {
  uint64_t version = 0;
  // Ranges of the flat buffer in ascending order; each begins and ends at a multiple of 64
  // elements.
  std::vector<FlatRange> buckets;
  int64_t elements() const;
};

// The ranges of the flat buffer that hold the parameters `changed` (null: all of it). Adjacent
// ranges are joined, then cut into buckets of at most `bucket_elements` (a multiple of 64).
// InvalidArgument names a parameter that does not exist.
absl::StatusOr<std::vector<FlatRange>> ChangedBuckets(const ParameterLayout& layout,
                                                      const std::vector<std::string>* changed,
                                                      int64_t bucket_elements);

// Convert an update to text and back. DataLoss: `text` is no update of a flat buffer of
// `flat_size`.
std::string EncodeUpdate(const WeightUpdate& update);
absl::StatusOr<WeightUpdate> DecodeUpdate(const std::string& text, int64_t flat_size);

// One line for each property that must be equal before one flat buffer can be copied over another:
// the kind of device, the parameters of attention, each parameter's type and shape.
std::string DescribeWeights(const Weights& weights);
// OK if all ranks' descriptions equal rank 0's; else InvalidArgument, which names the first rank
// with another description, and the first line that differs.
absl::Status CompareDescriptions(const std::vector<std::string>& descriptions);

// For each bucket of `flat` the sum of its 64-bit words modulo 2^64: a change of any one word
// changes the sum. Reads the memory once.
std::vector<uint64_t> BucketChecksums(const at::Tensor& flat,
                                      const std::vector<FlatRange>& buckets);

// The version and checksums of a rank's weights after an update, as text for the other ranks.
std::string EncodeArrival(uint64_t version, const std::vector<uint64_t>& sums);
// OK if all ranks have rank 0's version and checksums; else DataLoss, which names the first rank
// with another version or checksum, and the bucket.
absl::Status CompareArrivals(const std::vector<std::string>& arrivals,
                             const std::vector<FlatRange>& buckets);

// Size of an update, and the time of its phases.
struct WeightUpdateTimes {
  int64_t bytes = 0;         // received by each rank
  absl::Duration agreement;  // until all ranks were ready
  absl::Duration transfer;   // from then until all buckets had arrived
  absl::Duration comparison;
};

struct ReceiveOptions {
  // The required version; none: any version.
  std::optional<uint64_t> expected;
  // Unfinished samples pause, and this policy applies to their KV cache
  // (Engine::PauseForWeightUpdate); none: no sample may be unfinished.
  std::optional<Engine::KvPolicy> pause;
};

// Copies rank 0's flat buffer directly into those of the other ranks: from GPU to GPU (NCCL, on a
// stream of its own) if the group uses NCCL (ProcessGroup::InitNcclCollectives), else through host
// memory (MPI). All waits have the group's deadline. Only the thread that joined the job may use
// it. After an error of the group no later update can succeed.
class WeightBroadcast {
 public:
  // All ranks of `group` call it together, each with the weights that are sent or overwritten.
  // `group` must outlive this object. Buckets have at most `bucket_elements` (a multiple of 64, at
  // most 2 GiB; rank 0's value counts). All engines must be at version 0. InvalidArgument on every
  // rank if shapes, types or kinds of device differ.
  static absl::StatusOr<std::unique_ptr<WeightBroadcast>> Join(
      std::shared_ptr<Weights> weights, ProcessGroup* group,
      int64_t bucket_elements = ZeroShardPlan::kBucketElements);
  WeightBroadcast(const WeightBroadcast&) = delete;
  WeightBroadcast& operator=(const WeightBroadcast&) = delete;

  // On rank 0: waits until all engines are ready, sends the weights after the current stream's
  // earlier work on them, and waits until all ranks have received and compared them; the weights
  // must not change meanwhile. `changed`: names of the parameters to send; none: all; an empty
  // list: only the version. Errors before anything is sent: InvalidArgument for an unknown name;
  // the error of a rank whose engine is not ready, with its number. Later: DataLoss on every rank
  // if a rank's weights differ from rank 0's.
  absl::Status Send(uint64_t version,
                    const std::optional<std::vector<std::string>>& changed = std::nullopt);

  // On the other ranks: waits for an update, writes it into the weights that `engine` shares,
  // between the engine's BeginWeightUpdate (or PauseForWeightUpdate) and EndWeightUpdate(version),
  // and returns the version. Errors before anything is written reach every rank with the number of
  // the failing rank, and leave the engine as it was: FailedPrecondition for unfinished samples, or
  // for another version than `expected`. After a later error the engine stays in its update,
  // because its weights then belong to no version.
  absl::StatusOr<uint64_t> Receive(Engine* engine, const ReceiveOptions& options = {});

  // Of the last successful update.
  const WeightUpdateTimes& times() const { return times_; }

 private:
  WeightBroadcast(std::shared_ptr<Weights> weights, ProcessGroup* group, int64_t bucket_elements)
      : weights_(std::move(weights)), group_(group), bucket_elements_(bucket_elements) {}

  // Returns the update that rank 0 announces, once the engines of all ranks are ready for it.
  absl::StatusOr<WeightUpdate> Await(Engine* engine, const ReceiveOptions& options);
  // Sends or receives an update for which all ranks are ready, then compares the ranks' checksums.
  absl::Status Exchange(const WeightUpdate& update, absl::Time began);

  const std::shared_ptr<Weights> weights_;
  ProcessGroup* const group_;
  const int64_t bucket_elements_;
  uint64_t version_ = 0;    // of these weights; 0 before the first update
  bool in_update_ = false;  // a receiver's engine has begun an update that has not ended
  WeightUpdateTimes times_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_DISTRIBUTED_WEIGHT_BROADCAST_H_
