// Measures tokens per second of whole optimizer steps at the shapes of real models, with random
// weights, in one process or on the ranks of an MPI job (one GPU each), and splits the time.
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "bench/harness/harness.h"
#include "bench/model/step_measures.h"
#include "model/layers/fp8.h"
#include "model/testing/test_util.h"
#include "model/torch_runtime.h"
#include "parallel/process_group.h"
#include "trainer/learner/recompute_plan.h"
#include "trainer/optimizer/adamw.h"
#include "trainer/program/training_program.h"
#include "trainer/sft/sft_learner.h"

ABSL_FLAG(std::string, shape, "qwen3_8b", "One of model/configs, or a config.json.");
ABSL_FLAG(std::string, lengths, "16384",
          "Lengths of a micro-batch's packed sequences, divided by commas; the micro-batches that "
          "each rank has in a step by semicolons (rank r begins with the r-th).");
ABSL_FLAG(int, steps, 4, "Steps of a measured round.");
ABSL_FLAG(bool, profile, true, "Three more steps with the time of each kernel.");
ABSL_FLAG(bool, deterministic, false, "The same bits in every run.");
ABSL_FLAG(bool, fp8, false, "Decoder-layer projections in FP8.");
ABSL_FLAG(double, memory_gib, 0,
          "For all tensors; what does not fit is recomputed. 0: what the GPU has free.");
ABSL_FLAG(int, zero, 1, "Ranks share the optimizer's state (1), the gradients as well (2).");
ABSL_FLAG(int, kernels, 12, "Kernels to name, by time.");

namespace tritonrl {
namespace {

constexpr absl::Duration kPeerTime = absl::Minutes(20);

// Returns the fastest line of the peer, which the first rank runs in its own processes. A peer that
// fails, for example out of memory, is reported and does not stop this bench.
absl::StatusOr<nlohmann::json> MeasurePeer(Bench* bench, ProcessGroup* ranks) {
  nlohmann::json fastest;
  if (ranks->is_root()) {
    const std::string lengths = absl::GetFlag(FLAGS_lengths);
    const auto lines = RunStepPeer(bench,
                                   {.script = "bench/trainer/update_peer.py",
                                    .launcher = {"-m", "torch.distributed.run", "--standalone",
                                                 absl::StrCat("--nproc-per-node=", ranks->size())},
                                    .timeout = kPeerTime},
                                   absl::GetFlag(FLAGS_shape), lengths, absl::GetFlag(FLAGS_steps));
    if (lines.ok()) fastest = FastestOf(*lines, lengths);
    if (!lines.ok()) std::fprintf(stderr, "%s\n", Message(lines.status()).c_str());
  }
  RETURN_IF_ERROR(ranks->Barrier());
  return fastest;
}

// Makes micro-batches of random tokens, numbered from `rank`.
SftBatch MakeBatch(const ModelConfig& config, const std::vector<std::vector<int64_t>>& lengths,
                   int rank) {
  SftBatch batch;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const size_t number = (i + rank) % lengths.size();
    SftMicroBatch micro;
    micro.batch = RandomBatch(config, lengths[number], 1000 * rank + number, at::kCPU);
    micro.targets = NextTokenTargets(micro.batch);
    batch.tokens += micro.batch.num_tokens();
    batch.response_tokens +=
        micro.batch.num_tokens() - static_cast<int64_t>(lengths[number].size());
    batch.micro_batches.push_back(std::move(micro));
  }
  return batch;
}

// Chooses and prints the activations that the largest micro-batch recomputes.
absl::Status Plan(const std::vector<std::vector<int64_t>>& lengths, const Policy& policy,
                  ProcessGroup* ranks) {
  RecomputePlanRequest request{.memory_gib = absl::GetFlag(FLAGS_memory_gib),
                               .zero_stage = absl::GetFlag(FLAGS_zero)};
  for (const std::vector<int64_t>& batch : lengths) {
    request.micro_batch_tokens = std::max(request.micro_batch_tokens,
                                          std::accumulate(batch.begin(), batch.end(), int64_t{0}));
    request.max_sequence_tokens =
        std::max(request.max_sequence_tokens, *std::max_element(batch.begin(), batch.end()));
  }
  ASSIGN_OR_RETURN(const std::string plan, PlanRecompute(request, policy, ranks));
  if (ranks->is_root()) std::fputs(plan.c_str(), stderr);
  return absl::OkStatus();
}

void Synchronize(at::Device device) {
  if (device.is_cuda()) c10::cuda::device_synchronize();
}

// Returns the peak GiB of tensors over all ranks; 0 on a CPU. `others` is the number of bytes that
// torch's allocator does not count.
absl::StatusOr<double> PeakGib(at::Device device, int64_t others, ProcessGroup* ranks) {
  double peak = 0;
  if (device.is_cuda()) {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
    peak = static_cast<double>(stats.allocated_bytes[0].peak + others) / (1 << 30);
  }
  RETURN_IF_ERROR(ranks->AllReduceMax(std::span<double>(&peak, 1)));
  return peak;
}

absl::Status Measure(Bench* bench, SftLearner* learner, const SftBatch& batch,
                     const AdamW& optimizer, const nlohmann::json& peer, ProcessGroup* ranks) {
  const at::Device device = optimizer.weights()->device();
  const GradientRingBuffer ring = optimizer.ring_buffer();
  int64_t number = 0;
  double loss = 0;
  const auto step = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const SftStepStats stats, learner->Step(batch, number++));
    if (stats.skipped) return absl::InternalError("a step's gradient was not finite");
    loss = stats.loss;
    return absl::OkStatus();
  };
  double warmup = 0;
  const auto steps = [&](bool measured) -> absl::StatusOr<double> {
    const int count = measured ? absl::GetFlag(FLAGS_steps) : 1;
    if (measured) RETURN_IF_ERROR(ranks->Barrier());
    const absl::Time start = absl::Now();
    for (int i = 0; i < count; ++i) RETURN_IF_ERROR(step());
    Synchronize(device);
    if (measured) RETURN_IF_ERROR(ranks->Barrier());
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    if (!measured) warmup += seconds;
    return seconds / count;
  };
  ASSIGN_OR_RETURN(const auto measured, bench->Measure({steps}));
  ASSIGN_OR_RETURN(const double peak, PeakGib(device, ring.is_ring() ? ring.bytes() : 0, ranks));
  StepProfile profile;
  if (device.is_cuda() && absl::GetFlag(FLAGS_profile)) {
    absl::Status status;
    profile = ProfileStep([&] { status = step(); });
    RETURN_IF_ERROR(status);
  }
  const double seconds = Mean(measured[0]), tokens = static_cast<double>(batch.tokens);
  const std::string setting = absl::StrCat(absl::GetFlag(FLAGS_lengths), ", ranks: ", ranks->size(),
                                           ", ZeRO-", absl::GetFlag(FLAGS_zero));
  bench->Add(setting,
             {{"rate of a rank", tokens / seconds, "tokens/s",
               PeerValue(peer, "tokens_per_s_and_rank"), std::nullopt, Rates(tokens, measured[0])},
              {"step", seconds, "s", PeerValue(peer, "seconds")},
              {"peak memory", peak, "GiB", PeerValue(peer, "peak_gib")},
              {"warm-up steps", warmup, "s"},
              {"loss", loss, "", PeerValue(peer, "loss")}});
  bench->Add(setting, profile.Figures());
  bench->PrintTable();
  if (ranks->is_root()) PrintKernels(profile, absl::GetFlag(FLAGS_kernels));
  return absl::OkStatus();
}

absl::Status Run(Bench* bench, ProcessGroup* ranks) {
  ASSIGN_OR_RETURN(const auto lengths, ParseBatches(absl::GetFlag(FLAGS_lengths)));
  if (absl::GetFlag(FLAGS_steps) < 1) {
    return absl::InvalidArgumentError("--steps must be at least 1");
  }
  if (absl::GetFlag(FLAGS_zero) != 1 && absl::GetFlag(FLAGS_zero) != 2) {
    return absl::InvalidArgumentError("--zero must be 1 or 2");
  }
  Policy policy;
  ASSIGN_OR_RETURN(policy.config, ReadModelShape(absl::GetFlag(FLAGS_shape)));
  bench->set_subject(absl::StrCat("optimizer step, ", absl::GetFlag(FLAGS_shape), " shape",
                                  absl::GetFlag(FLAGS_fp8) ? ", FP8 projections" : ""));
  ASSIGN_OR_RETURN(const nlohmann::json peer, MeasurePeer(bench, ranks));
  ASSIGN_OR_RETURN(const at::Device device, ResolveDevice("auto", ranks->local_rank()));
  RETURN_IF_ERROR(InitializeGpu(device, /*trains=*/true));
  RETURN_IF_ERROR(ranks->InitNcclCollectives(device));
  if (absl::GetFlag(FLAGS_fp8)) RETURN_IF_ERROR(CheckFp8(device, at::kBFloat16));
  policy.weights =
      RandomWeights(policy.config, device, device.is_cuda() ? at::kBFloat16 : at::kFloat);
  Transformer::Options options;
  options.gpu = TrainingGpuOptions(absl::GetFlag(FLAGS_deterministic), absl::GetFlag(FLAGS_fp8));
  policy.transformer = std::make_shared<Transformer>(policy.config, policy.weights, options);
  RETURN_IF_ERROR(Plan(lengths, policy, ranks));
  OptimizerConfig config;
  config.set_learning_rate(1e-6);
  config.set_zero_stage(absl::GetFlag(FLAGS_zero));
  AdamW optimizer(config, policy.weights, ranks);
  SftLearner learner(config, 1000, &policy, &optimizer, ranks);
  return Measure(bench, &learner, MakeBatch(policy.config, lengths, ranks->rank()), optimizer, peer,
                 ranks);
}

absl::Status RunOnRanks(Bench* bench) {
  ASSIGN_OR_RETURN(const auto ranks, ProcessGroup::Join(kPeerTime));
  if (!ranks->is_root()) bench->Mute();
  const absl::Status status = Run(bench, ranks.get());
  // The other ranks would wait for ever, so an error ends the job.
  if (!status.ok() && ranks->size() > 1) std::exit(ExitCodeFor(status, ranks.get()));
  return status;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench({.usage = "Tokens per second of whole optimizer steps. --peer=0,0.5 first "
                               "measures PyTorch's FSDP2 on as many ranks of this machine, with "
                               "these shares of layers recomputed. --warmup counts steps.",
                      .warmup = 2,
                      .repeats = 1,
                      .peer = ""},
                     argc, argv, tritonrl::RunOnRanks);
}
