// Prints the memory plan for training a model of model/configs on GPUs of a given size. Needs no
// GPU.
//
//   bazel run //model/memory:plan_memory -- --tokens=18432 --budget_gib=79.1 --ranks=8
//   --zero_stage=1

#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "base/program.h"
#include "base/status.h"
#include "model/memory/memory_plan.h"
#include "model/weights/gradient_ring_buffer.h"
#include "model/weights/model_config.h"
#include "model/weights/weights.h"
#include "parallel/zero_shard_plan.h"

ABSL_FLAG(std::string, shape, "qwen3_8b", "One of model/configs.");
ABSL_FLAG(int64_t, tokens, 18432, "Tokens of the largest micro-batch.");
ABSL_FLAG(int64_t, target_rows, 0, "Tokens of it that have a target; 0: all.");
ABSL_FLAG(int64_t, max_length, 0, "Length of its longest sequence; 0: the batch is one sequence.");
ABSL_FLAG(double, budget_gib, 79.1, "Memory of a GPU; 0: no limit.");
ABSL_FLAG(double, reserve_gib, 2.0,
          "Part of that memory that stays free (allocator fragmentation, CUDA context).");
ABSL_FLAG(double, other_gib, 0.0,
          "Part of that memory that the generation engine and communication buckets take.");
ABSL_FLAG(int64_t, ranks, 1, "GPUs that share the state of training.");
ABSL_FLAG(int, zero_stage, 0, "0, 1 (optimizer sharded) or 2 (gradients as well).");
ABSL_FLAG(int64_t, bucket_elements, tritonrl::ZeroShardPlan::kBucketElements,
          "Elements of gradients that are summed over the GPUs at a time, at stage 2.");
ABSL_FLAG(int64_t, state_bytes, 12,
          "Bytes of optimizer state for a parameter; 0: forward and backward only.");
ABSL_FLAG(bool, fp8, false, "Decoder-layer projections in FP8.");
ABSL_FLAG(bool, deterministic, true, "Attention's sums in a fixed order.");
ABSL_FLAG(bool, per_sequence, false, "One attention call per sequence, as on an A100.");

namespace tritonrl {
namespace {

int64_t Bytes(double gib) { return static_cast<int64_t>(gib * (int64_t{1} << 30)); }

absl::Status Run() {
  ASSIGN_OR_RETURN(const ModelConfig config, ReadModelShape(absl::GetFlag(FLAGS_shape)));
  const StepShape step = {.tokens = absl::GetFlag(FLAGS_tokens),
                          .target_rows = absl::GetFlag(FLAGS_target_rows),
                          .max_length = absl::GetFlag(FLAGS_max_length),
                          .deterministic = absl::GetFlag(FLAGS_deterministic),
                          .per_sequence = absl::GetFlag(FLAGS_per_sequence),
                          .fp8 = absl::GetFlag(FLAGS_fp8)};
  const int64_t ranks = absl::GetFlag(FLAGS_ranks);
  if (step.tokens < 1 || step.target_rows < 0 || step.max_length < 0 || ranks < 1) {
    return absl::InvalidArgumentError(
        "--tokens and --ranks must be at least 1, --target_rows and --max_length at least 0");
  }
  StateSharding sharding = {.ranks = ranks,
                            .zero_stage = absl::GetFlag(FLAGS_zero_stage),
                            .state_bytes = absl::GetFlag(FLAGS_state_bytes)};
  if (sharding.zero_stage == 2) {
    sharding.ring_buffer_bytes =
        GradientRingBufferFor(ParameterLayout(config), config.tie_word_embeddings,
                              absl::GetFlag(FLAGS_bucket_elements), at::kCUDA)
            .bytes();
  }
  ResidentMemory held = ResidentMemoryForTraining(config, sharding);
  held.other = Bytes(absl::GetFlag(FLAGS_other_gib));
  const MemoryLimit limit = {Bytes(absl::GetFlag(FLAGS_budget_gib)),
                             Bytes(absl::GetFlag(FLAGS_reserve_gib))};
  ASSIGN_OR_RETURN(const MemoryPlan plan, PlanMemory(config, step, held, limit));
  std::fputs(DescribePlan(config, step, held, limit, plan).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("What training would recompute and hold on GPUs of some size.", argc,
                         argv);
  const absl::Status status = tritonrl::Run();
  if (!status.ok()) std::fprintf(stderr, "plan_memory: %s\n", tritonrl::Message(status).c_str());
  return status.ok() ? 0 : 1;
}
