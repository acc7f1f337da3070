// Tokens per second of whole optimizer steps at the shapes of real models, with random weights, on
// one process or on the ranks of an MPI job (one GPU each), and where the time goes.
//
//   mpirun -n 4 ./run update_bench --shape=qwen3_8b '--lengths=16384;8192,4096,4000,96' --peer=0
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/program.h"
#include "base/status.h"
#include "bench/model/peer.h"
#include "bench/model/step_batches.h"
#include "bench/model/step_profile.h"
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
ABSL_FLAG(int, steps, 4, "Steps that are timed, after two others.");
ABSL_FLAG(bool, profile, true, "Three more steps with the time of each kernel.");
ABSL_FLAG(bool, deterministic, false, "The same bits in every run.");
ABSL_FLAG(bool, fp8, false, "Decoder-layer projections in FP8.");
ABSL_FLAG(double, memory_gib, 0,
          "For all tensors; what does not fit is recomputed. 0: what the GPU has free.");
ABSL_FLAG(int, zero, 1, "Ranks share the optimizer's state (1), the gradients as well (2).");
ABSL_FLAG(int, kernels, 12, "Kernels to name, by time.");
ABSL_FLAG(std::string, peer, "",
          "First the same with PyTorch's FSDP2, so large a share of layers recomputed (0 to 1, "
          "several divided by commas); empty: not. All ranks on this machine.");

namespace tritonrl {
namespace {

constexpr absl::Duration kPeerTime = absl::Minutes(20);

// A peer that fails, for example for want of memory, is said, and keeps nothing from us.
absl::Status MeasurePeer(ProcessGroup* ranks) {
  if (!ranks->is_root()) return ranks->Barrier();
  const absl::Status status =
      RunPeer({.launcher = {"-m", "torch.distributed.run", "--standalone",
                            absl::StrCat("--nproc-per-node=", ranks->size())},
               .script = "bench/trainer/update_peer.py",
               .shape = absl::GetFlag(FLAGS_shape),
               .lengths = absl::GetFlag(FLAGS_lengths),
               .recompute = absl::GetFlag(FLAGS_peer),
               .steps = absl::GetFlag(FLAGS_steps),
               .timeout = kPeerTime});
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return ranks->Barrier();
}

// Micro-batches of random tokens, from number `rank` on.
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

// Chooses what is recomputed, for the largest micro-batch; printed.
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

// GiB of tensors at the most, of the rank that has most; 0 on a CPU. `others`: bytes of those that
// torch's allocator does not know.
absl::StatusOr<double> PeakGib(at::Device device, int64_t others, ProcessGroup* ranks) {
  double peak = 0;
  if (device.is_cuda()) {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
    peak = static_cast<double>(stats.allocated_bytes[0].peak + others) / (1 << 30);
  }
  RETURN_IF_ERROR(ranks->AllReduceMax(std::span<double>(&peak, 1)));
  return peak;
}

absl::Status Measure(SftLearner* learner, const SftBatch& batch, const AdamW& optimizer,
                     ProcessGroup* ranks) {
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
  const absl::Time begin = absl::Now();
  for (int i = 0; i < 2; ++i) RETURN_IF_ERROR(step());
  Synchronize(device);
  RETURN_IF_ERROR(ranks->Barrier());
  const absl::Time start = absl::Now();
  for (int i = 0; i < absl::GetFlag(FLAGS_steps); ++i) RETURN_IF_ERROR(step());
  Synchronize(device);
  RETURN_IF_ERROR(ranks->Barrier());
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start) / absl::GetFlag(FLAGS_steps);
  ASSIGN_OR_RETURN(const double peak, PeakGib(device, ring.is_ring() ? ring.bytes() : 0, ranks));
  StepProfile profile;
  if (device.is_cuda() && absl::GetFlag(FLAGS_profile)) {
    absl::Status status;
    profile = ProfileStep([&] { status = step(); });
    RETURN_IF_ERROR(status);
  }
  if (!ranks->is_root()) return absl::OkStatus();
  const nlohmann::ordered_json line{
      {"shape", absl::GetFlag(FLAGS_shape)},
      {"lengths", absl::GetFlag(FLAGS_lengths)},
      {"ranks", ranks->size()},
      {"zero", absl::GetFlag(FLAGS_zero)},
      {"tokens_per_s_and_rank", static_cast<double>(batch.tokens) / seconds},
      {"seconds", seconds},
      {"peak_gib", peak},
      {"first_two_s", absl::ToDoubleSeconds(start - begin)},
      {"loss", loss},
      {"gemm_s", profile.gemm},
      {"attention_s", profile.attention},
      {"rest_s", profile.rest},
      {"communication_s", profile.communication},
      {"exposed_s", profile.exposed},
      {"gaps_s", profile.gaps},
      {"profiled_s", profile.seconds}};
  std::printf("%s\n", line.dump().c_str());
  PrintKernels(profile, absl::GetFlag(FLAGS_kernels));
  return absl::OkStatus();
}

absl::Status Run(ProcessGroup* ranks) {
  ASSIGN_OR_RETURN(const auto lengths, ParseBatches(absl::GetFlag(FLAGS_lengths)));
  if (absl::GetFlag(FLAGS_steps) < 1) {
    return absl::InvalidArgumentError("--steps must be at least 1");
  }
  if (absl::GetFlag(FLAGS_zero) != 1 && absl::GetFlag(FLAGS_zero) != 2) {
    return absl::InvalidArgumentError("--zero must be 1 or 2");
  }
  Policy policy;
  ASSIGN_OR_RETURN(policy.config, ReadModelShape(absl::GetFlag(FLAGS_shape)));
  RETURN_IF_ERROR(MeasurePeer(ranks));
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
  return Measure(&learner, MakeBatch(policy.config, lengths, ranks->rank()), optimizer, ranks);
}

int Main() {
  auto ranks = ProcessGroup::Join(kPeerTime);
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  const int code = ExitCodeFor(Run(ranks->get()), ranks->get());
  std::fflush(nullptr);
  ranks->reset();
  // Not by exit(): see bench/model/step_bench_main.cc.
  std::_Exit(code);
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Tokens per second of whole optimizer steps.", argc, argv);
  return tritonrl::Main();
}
