// Measures tokens per second of forward and backward at the shapes of real models on one GPU, with
// random weights, and splits the time by kind of kernel.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "bench/harness/harness.h"
#include "bench/model/step_measures.h"
#include "model/layers/fp8.h"
#include "model/memory/memory_plan.h"
#include "model/testing/test_util.h"
#include "model/torch_runtime.h"
#include "model/transformer.h"
#include "model/weights/gradient_ring_buffer.h"
#include "parallel/zero_shard_plan.h"

ABSL_FLAG(std::string, shape, "qwen3_8b", "One of model/configs.");
ABSL_FLAG(std::string, lengths, "16384",
          "Lengths of the packed sequences, divided by commas; several batches by semicolons.");
ABSL_FLAG(int, steps, 4, "Steps of a measured round.");
ABSL_FLAG(bool, autotune, true, "Autotune GEMMs: time cuBLASLt's heuristics and keep the fastest.");
ABSL_FLAG(bool, deterministic, false, "The same bits in every run.");
ABSL_FLAG(bool, fp8, false, "Decoder-layer projections in FP8.");
ABSL_FLAG(
    bool, fp8_fast_gradients, false,
    "With --fp8: accumulate the gradient GEMMs in the tensor cores, like those of the forward.");
ABSL_FLAG(int64_t, dense_min_length, 4096,
          "Tokens from which a sequence alone in its bucket gets a plan of its own.");
ABSL_FLAG(double, budget_gib, 0,
          "Memory for weights, gradients and the step; activations beyond it are recomputed. 0: no "
          "limit.");
ABSL_FLAG(int, share_of, 1,
          "Measure one of N ranks with ZeRO-2, without communication: gradients go through a ring "
          "buffer, and a rank's share of them, 1/N, is added up. 1: all gradients are kept.");
ABSL_FLAG(int, kernels, 12, "Number of kernels to list, by time.");
ABSL_FLAG(bool, profile, true, "Three more steps with the time of each kernel.");

namespace tritonrl {
namespace {

std::string Name(const std::vector<int64_t>& lengths) { return absl::StrJoin(lengths, ","); }

// Measures the attention of one layer alone: forward, backward, and the making of its plans.
void MeasureAttention(Bench* bench, const ModelConfig& config,
                      const CudnnAttention::Options& options, const std::vector<int64_t>& lengths,
                      at::Device device) {
  if (config.head_dim != 64 && config.head_dim != 128) return;
  std::vector<int64_t> offsets = {0};
  for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
  const PackedLengths packed = PackLengths(offsets, device);
  const auto rows = [&](int64_t heads) {
    return at::empty({offsets.back(), heads, config.head_dim},
                     at::TensorOptions(device).dtype(at::kBFloat16))
        .normal_();
  };
  const auto inputs = [&] {
    return AttentionHeads{rows(config.num_heads), rows(config.num_kv_heads),
                          rows(config.num_kv_heads)};
  };
  const AttentionHeads in = inputs(), d_in = inputs();
  const at::Tensor out = rows(config.num_heads), d_out = rows(config.num_heads);
  CudnnAttention attention(device, options);
  const auto step = [&] {
    const at::Tensor lse = attention.Forward(packed, in, out);
    attention.Backward(packed, in, out, lse, d_out, d_in);
  };
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) step();
    c10::cuda::device_synchronize();
  };
  steps(2);
  constexpr int kSteps = 5;
  const double seconds = SecondsOf([&] { steps(kSteps); }) / kSteps;
  double flops = 0;  // 2 GEMMs forward, 5 backward, half of the square
  for (const int64_t length : lengths) {
    flops += 7.0 * static_cast<double>(config.query_size() * length) * static_cast<double>(length);
  }
  bench->Add("attention of a layer, " + Name(lengths),
             {{"time", 1e3 * seconds, "ms"},
              {"arithmetic", flops / seconds / 1e12, "TFLOP/s"},
              Count("plans", attention.plans_made()),
              {"time to make the plans", attention.plan_seconds(), "s"}});
}

constexpr int64_t kBucket = ZeroShardPlan::kBucketElements;

// The destination of the gradients, see --share_of.
class GradientsOfRank {
 public:
  GradientsOfRank(const Weights& weights, int ranks)
      : ranks_(ranks),
        gradients_(weights, ranks == 1 ? GradientRingBuffer{.own = weights.layout().flat_size}
                                       : GradientRingBufferFor(weights.layout(),
                                                               weights.config().tie_word_embeddings,
                                                               kBucket, weights.device())) {
    buckets_ = (gradients_.flat().numel() + kBucket - 1) / kBucket;
    unsummed_ = buckets_;
    if (ranks > 1) share_ = at::zeros({buckets_ * Piece(kBucket)}, gradients_.flat().options());
  }

  Gradients* gradients() { return &gradients_; }
  // Bytes of the ring buffer, which torch's allocator does not count.
  int64_t mapped_bytes() const {
    return gradients_.ring_buffer().is_ring() ? gradients_.ring_buffer().bytes() : 0;
  }

  void ReadyHook(int64_t offset) {
    if (ranks_ == 1) return;
    for (; unsummed_ > 0 && (unsummed_ - 1) * kBucket >= offset; --unsummed_) Add(unsummed_ - 1);
    if (offset == 0) unsummed_ = buckets_;
  }

 private:
  int64_t Piece(int64_t size) const { return (size + ranks_ - 1) / ranks_; }
  void Add(int64_t bucket) {
    const int64_t begin = bucket * kBucket;
    const int64_t size = Piece(std::min(kBucket, gradients_.flat().numel() - begin));
    share_.narrow(0, bucket * Piece(kBucket), size).add_(gradients_.flat().narrow(0, begin, size));
  }

  const int ranks_;
  Gradients gradients_;
  at::Tensor share_;
  int64_t buckets_ = 0, unsummed_ = 0;
};

// Chooses and prints the activations that a batch recomputes to stay within --budget_gib.
absl::StatusOr<MemoryPlan> PlanBatch(const ModelConfig& config, const Transformer::Options& options,
                                     const std::vector<int64_t>& lengths, at::Device device) {
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  StepShape step = {.max_length = lengths.size() == 1 ? 0 : longest,
                    .deterministic = options.gpu.attention.deterministic,
                    .per_sequence = AttentionPerSequence(device, options.gpu),
                    .fp8 = options.gpu.fp8_projections};
  for (const int64_t length : lengths) {
    step.tokens += length;
    step.target_rows += length - 1;
  }
  StateSharding sharding = {.state_bytes = 0};
  if (const int ranks = absl::GetFlag(FLAGS_share_of); ranks > 1) {
    sharding.ranks = ranks;
    sharding.zero_stage = 2;
    sharding.ring_buffer_bytes =
        GradientRingBufferFor(ParameterLayout(config), config.tie_word_embeddings, kBucket,
                              at::Device(at::kCUDA, 0))
            .bytes();
  }
  const ResidentMemory held = ResidentMemoryForTraining(config, sharding);
  const MemoryLimit limit = {
      static_cast<int64_t>(absl::GetFlag(FLAGS_budget_gib) * (int64_t{1} << 30)), /*reserve=*/0};
  ASSIGN_OR_RETURN(MemoryPlan plan, PlanMemory(config, step, held, limit));
  std::fputs(DescribePlan(config, step, held, limit, plan).c_str(), stderr);
  return plan;
}

absl::Status MeasureBatch(Bench* bench, const Transformer& model,
                          const std::vector<int64_t>& lengths, const MemoryPlan& plan,
                          const nlohmann::json& peer, GradientsOfRank* rank) {
  const at::Device device = model.weights()->device();
  const PackedBatch batch = RandomBatch(model.config(), lengths, 1, device);
  const at::Tensor targets = NextTokenTargets(batch);
  const auto step = [&] {
    model.ForwardBackward(
        batch, targets, 1.0,
        [](const at::Tensor&, const at::Tensor& log_probs, const at::Tensor&) {
          return at::full_like(log_probs, -1.0 / 1024);
        },
        Transformer::GradientWrite::kOverwrite, rank->gradients(),
        [&](int64_t offset) { rank->ReadyHook(offset); });
  };
  double first = 0;  // seconds of the first step, which loads kernels
  const auto steps = [&](bool measured) -> absl::StatusOr<double> {
    const int count = measured ? absl::GetFlag(FLAGS_steps) : 1;
    const double seconds = SecondsOf([&] {
      for (int i = 0; i < count; ++i) step();
      c10::cuda::device_synchronize();
    });
    if (first == 0) first = seconds / count;
    return seconds / count;
  };
  c10::cuda::CUDACachingAllocator::emptyCache();
  c10::cuda::CUDACachingAllocator::resetPeakStats(device.index());
  ASSIGN_OR_RETURN(const auto measured, bench->Measure({steps}));
  const double seconds = Mean(measured[0]);
  constexpr double kGib = 1 << 30;
  const double peak =
      static_cast<double>(
          c10::cuda::CUDACachingAllocator::getDeviceStats(device.index()).allocated_bytes[0].peak +
          rank->mapped_bytes()) /
      kGib;
  const double predicted = static_cast<double>(plan.peak_bytes) / kGib;
  const StepProfile profile = absl::GetFlag(FLAGS_profile) ? ProfileStep(step) : StepProfile();
  const double tokens = static_cast<double>(batch.num_tokens());
  bench->Add(Name(lengths),
             {{"rate", tokens / seconds, "tokens/s", PeerValue(peer, "tokens_per_s"), std::nullopt,
               Rates(tokens, measured[0])},
              {"step", 1e3 * seconds, "ms", PeerValue(peer, "seconds", 1e3)},
              {"arithmetic", StepFlops(model.config(), lengths) / seconds / 1e12, "TFLOP/s"},
              {"peak memory", peak, "GiB", PeerValue(peer, "peak_gib")},
              {"predicted peak memory", predicted, "GiB"},
              {"predicted to measured memory", predicted / peak, ""},
              {"predicted share of recompute", plan.recompute_share, ""},
              {"first step", first, "s"}});
  bench->Add(Name(lengths), profile.Figures());
  bench->PrintTable();
  PrintKernels(profile, absl::GetFlag(FLAGS_kernels));
  return absl::OkStatus();
}

absl::Status Run(Bench* bench) {
  const std::string shape = absl::GetFlag(FLAGS_shape);
  ASSIGN_OR_RETURN(const ModelConfig config, ReadModelShape(shape));
  ASSIGN_OR_RETURN(const auto batches, ParseBatches(absl::GetFlag(FLAGS_lengths)));
  if (absl::GetFlag(FLAGS_share_of) < 1) {
    return absl::InvalidArgumentError("--share_of must be at least 1");
  }
  if (!at::globalContext().hasCUDA()) {
    return absl::FailedPreconditionError("this machine has no GPU that torch can use");
  }
  const at::Device device(at::kCUDA, 0);
  RETURN_IF_ERROR(InitializeGpu(device, /*trains=*/true));
  Transformer::Options options;
  options.gpu.fp8_projections = absl::GetFlag(FLAGS_fp8);
  options.gpu.fp8_fast_gradients = absl::GetFlag(FLAGS_fp8_fast_gradients);
  if (options.gpu.fp8_projections) RETURN_IF_ERROR(CheckFp8(device, at::kBFloat16));
  options.gpu.autotune_gemm = absl::GetFlag(FLAGS_autotune);
  options.gpu.attention.deterministic = absl::GetFlag(FLAGS_deterministic);
  options.gpu.attention.dense_min_length = absl::GetFlag(FLAGS_dense_min_length);
  std::vector<MemoryPlan> plans;  // made before the first step, because a batch may be refused
  for (const std::vector<int64_t>& lengths : batches) {
    ASSIGN_OR_RETURN(plans.emplace_back(), PlanBatch(config, options, lengths, device));
  }
  bench->set_subject(absl::StrCat("training step, ", shape, " shape, bf16",
                                  options.gpu.fp8_projections ? ", FP8 projections" : "",
                                  ", one of ", absl::GetFlag(FLAGS_share_of), " ranks"));
  ASSIGN_OR_RETURN(const auto peer,
                   RunStepPeer(bench, {.script = "bench/model/step_peer.py"}, shape,
                               absl::GetFlag(FLAGS_lengths), absl::GetFlag(FLAGS_steps)));
  const std::shared_ptr<Weights> weights = RandomWeights(config, device, at::kBFloat16);
  Transformer model(config, weights, options);
  GradientsOfRank rank(*weights, absl::GetFlag(FLAGS_share_of));
  for (size_t i = 0; i < batches.size(); ++i) {
    MeasureAttention(bench, config, options.gpu.attention, batches[i], device);
    model.set_recompute(plans[i].layers);
    RETURN_IF_ERROR(
        MeasureBatch(bench, model, batches[i], plans[i], FastestOf(peer, batches[i]), &rank));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench({.usage = "Tokens per second of forward and backward on one GPU. --peer=0,0.5 "
                               "first measures transformers with torch.compile, with these shares "
                               "of layers recomputed. --warmup counts steps.",
                      .warmup = 2,
                      .repeats = 1,
                      .peer = ""},
                     argc, argv, tritonrl::Run);
}
