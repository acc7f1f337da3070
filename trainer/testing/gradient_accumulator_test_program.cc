// Started by gradient_accumulator_test, alone or under mpirun, with a scratch folder and "cpu" as
// its arguments: makes the same updates with ZeRO-1 and with ZeRO-2 and compares them. On a machine
// with GPUs, from an archive of tools/bundle.sh:
//   mpirun -n 2 ./run gradient_accumulator_test_program /tmp/x cuda
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "model/testing/test_util.h"
#include "model/torch_runtime.h"
#include "parallel/testing/all_gather_shards.h"
#include "trainer/program/training_program.h"
#include "trainer/sft/sft_learner.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

// Several buckets per layer; fewer on GPUs, where each bucket takes several kernel launches.
int64_t BucketElements(at::Device device) { return 64 * (device.is_cuda() ? 1600 : 80); }

absl::Status Expect(bool holds, const std::string& what) {
  return holds ? absl::OkStatus() : absl::InternalError("wrong: " + what);
}

// Enough layers that the gradients are larger than their ring buffer.
ModelConfig DeepConfig(bool tied, at::Device device) {
  ModelConfig config = TinyModelConfig();
  config.num_layers = 8;
  config.tie_word_embeddings = tied;
  config.hidden_size = 40;
  config.intermediate_size = 75;
  config.head_dim = 6;
  if (device.is_cuda()) {
    config.hidden_size = 256;
    config.head_dim = 64;
    config.intermediate_size = 768;
  }
  return config;
}

// A policy with its optimizer at the beginning of a run.
struct Setup {
  Setup(bool tied, int stage, at::Device device, ProcessGroup* ranks) {
    policy.config = DeepConfig(tied, device);
    policy.weights = Weights::RandomInit(policy.config, 3, device,
                                         device.is_cuda() ? at::kBFloat16 : at::kFloat);
    Transformer::Options options;
    options.cpu_threads = 1;
    options.gpu = TrainingGpuOptions(/*deterministic=*/true, false);
    policy.transformer = std::make_shared<Transformer>(policy.config, policy.weights, options);
    config.set_learning_rate(1e-3);
    config.set_zero_stage(stage);
    optimizer = std::make_unique<AdamW>(config, policy.weights, ranks, BucketElements(device));
  }
  // Gathers a tensor of the optimizer's state from all ranks.
  absl::StatusOr<at::Tensor> Whole(const at::Tensor& local, ProcessGroup* ranks) const {
    const at::Tensor all = at::zeros({optimizer->plan().flat_size()}, local.options());
    RETURN_IF_ERROR(AllGatherShards(optimizer->plan(), local, all, ranks));
    return all;
  }

  Policy policy;
  OptimizerConfig config;
  std::unique_ptr<AdamW> optimizer;
};

SftBatch MakeBatch(const ModelConfig& config, int micro_batches, int rank, int64_t step) {
  SftBatch batch;
  for (int i = 0; i < micro_batches; ++i) {
    SftMicroBatch micro;
    const uint64_t seed = 100 * step + 10 * rank + i;
    micro.batch = RandomBatch(config, {20 + 3 * rank, 7 + i}, seed, at::kCPU);
    micro.targets = NextTokenTargets(micro.batch);
    batch.tokens += micro.batch.num_tokens();
    batch.response_tokens += micro.batch.num_tokens() - 2;
    batch.micro_batches.push_back(std::move(micro));
  }
  return batch;
}

struct Outcome {
  std::vector<SftStepStats> steps;
  at::Tensor weights, moment;  // gathered from all ranks
};

// Makes two updates with `micro_batches` micro-batches on this rank. If `bad` names a folder, an
// update with a non-finite gradient, dumped there, comes between them.
absl::StatusOr<Outcome> Learn(const Setup& setup, int micro_batches, const std::string& bad,
                              ProcessGroup* ranks) {
  SftLearner learner(setup.config, 10, &setup.policy, setup.optimizer.get(), ranks, bad);
  Outcome outcome;
  for (int64_t step = 0; step < 2; ++step) {
    const SftBatch batch = MakeBatch(setup.policy.config, micro_batches, ranks->rank(), step);
    if (step == 1 && !bad.empty()) {
      const at::Tensor flat = setup.policy.weights->flat(), kept = flat.clone();
      at::Tensor(flat).fill_(std::numeric_limits<float>::quiet_NaN());
      ASSIGN_OR_RETURN(const SftStepStats stats, learner.Step(batch, step));
      at::Tensor(flat).copy_(kept);
      RETURN_IF_ERROR(Expect(stats.skipped, "a gradient that is not finite is skipped"));
      RETURN_IF_ERROR(
          Expect(stats.nonfinite_gradient.substr(0, 7) == "kept in", stats.nonfinite_gradient));
    }
    ASSIGN_OR_RETURN(outcome.steps.emplace_back(), learner.Step(batch, step));
  }
  outcome.weights = setup.policy.weights->flat().clone();
  ASSIGN_OR_RETURN(outcome.moment, setup.Whole(setup.optimizer->first_moment(), ranks));
  return outcome;
}

// Checks that the dump names the gradient, and that the dumps of all ranks cover it.
absl::Status CheckBadGradient(const std::string& folder, const Setup& setup, ProcessGroup* ranks) {
  ASSIGN_OR_RETURN(const std::string text,
                   ReadFile(absl::StrCat(folder, "/update_000001_rank_", ranks->rank(), ".json")));
  const nlohmann::json kept = nlohmann::json::parse(text, nullptr, false);
  const bool share = setup.optimizer->sharded();
  RETURN_IF_ERROR(
      Expect((kept["gradient"] == "this rank's shard after the reduce-scatter") == share,
             kept["gradient"].dump()));
  double nan = 0;
  for (const auto& parameter : kept["parameters"]) {
    if (parameter["name"] == "model.norm.weight") nan += parameter["nan"].get<double>();
  }
  RETURN_IF_ERROR(ranks->AllReduce(std::span<double>(&nan, 1)));
  const double expected = static_cast<double>(setup.policy.config.hidden_size);
  return Expect(nan == expected * (share ? 1 : ranks->size()), absl::StrCat("NaN: ", nan));
}

double Difference(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).norm().item<double>() / b.norm().item<double>();
}

// `exact`: both stages add the same numbers in the same order. Otherwise the first gradient differs
// by fp32 rounding, and later values by the rounding of the weights.
absl::Status Compare(const std::string& name, const Outcome& two, const Outcome& one, bool exact) {
  const double close = one.weights.scalar_type() == at::kBFloat16 ? 3e-2 : 1e-3;
  for (size_t i = 0; i < one.steps.size(); ++i) {
    const SftStepStats &a = two.steps[i], &b = one.steps[i];
    RETURN_IF_ERROR(Expect(b.gradient_norm > 1e-3, name + ": there is a gradient"));
    const double relative = std::abs(a.gradient_norm / b.gradient_norm - 1);
    RETURN_IF_ERROR(
        Expect(exact ? a.gradient_norm == b.gradient_norm : relative < (i == 0 ? 1e-5 : close),
               absl::StrCat(name, ": norm ", a.gradient_norm, " ", b.gradient_norm)));
    RETURN_IF_ERROR(Expect(exact || i > 0 ? true : a.loss == b.loss, name + ": loss"));
  }
  if (exact) {
    RETURN_IF_ERROR(Expect(two.moment.equal(one.moment), name + ": the moments' bits"));
    return Expect(two.weights.equal(one.weights), name + ": the weights' bits");
  }
  const double difference = Difference(two.moment, one.moment);
  return Expect(difference < close, absl::StrCat(name, ": the moments differ by ", difference));
}

absl::Status Learners(const std::string& folder, bool tied, at::Device device,
                      ProcessGroup* ranks) {
  // One micro-batch per rank, then numbers of micro-batches such that one rank has none.
  const int size = ranks->size(), uneven = 2 * ((ranks->rank() + 1) % size);
  for (const int micro_batches : {1, size == 1 ? 3 : uneven}) {
    std::vector<Outcome> outcomes;
    for (const int stage : {1, 2}) {
      const Setup setup(tied, stage, device, ranks);
      const std::string bad =
          micro_batches == 1 && size != 1 ? absl::StrCat(folder, "/", tied, stage) : "";
      RETURN_IF_ERROR(
          Expect(setup.optimizer->ring_buffer().is_ring() == (stage == 2 && size > 1),
                 "a gradient ring buffer is not used exactly in stage 2 with several ranks"));
      ASSIGN_OR_RETURN(outcomes.emplace_back(), Learn(setup, micro_batches, bad, ranks));
      if (!bad.empty()) RETURN_IF_ERROR(CheckBadGradient(bad, setup, ranks));
    }
    // With one rank gradients are not sharded; with more, several passes add in another order.
    const std::string name = absl::StrCat(tied ? "tied" : "untied", " of ", micro_batches);
    double most = micro_batches;
    RETURN_IF_ERROR(ranks->AllReduceMax(std::span<double>(&most, 1)));
    RETURN_IF_ERROR(Compare(name, outcomes[1], outcomes[0], size == 1 || most == 1));
  }
  return absl::OkStatus();
}

// A pass whose gradients are integers that depend on rank, pass and position.
void IntegerPass(int pass, bool add, int rank, AdamW* optimizer, Gradients* gradients) {
  const std::vector<ParameterPart>& parts = gradients->layout().parts;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    optimizer->OnGradientOverwrite(part->begin, *gradients);
    const at::Tensor place = gradients->flat().narrow(0, part->begin, part->size());
    const at::Tensor numbers = at::arange(part->begin, part->end, place.options())
                                   .mul_(1 + pass + 7 * rank)
                                   .remainder_(97);
    if (add) {
      place.add_(numbers);
    } else {
      place.copy_(numbers);
    }
    if (optimizer->sharded()) optimizer->OnGradientsReady(part->begin, *gradients);
  }
}

absl::Status Integers(bool tied, at::Device device, ProcessGroup* ranks) {
  std::vector<at::Tensor> moments;
  for (const int stage : {1, 2}) {
    const Setup setup(tied, stage, device, ranks);
    AdamW* const optimizer = setup.optimizer.get();
    Gradients gradients = optimizer->MakeGradients();
    for (const int passes : {3, 1, 2}) {
      for (int pass = 0; pass < passes; ++pass) {
        IntegerPass(pass, !optimizer->sharded() && pass > 0, ranks->rank(), optimizer, &gradients);
      }
      if (!optimizer->sharded()) optimizer->OnGradientsReady(0, gradients);
      RETURN_IF_ERROR(optimizer->Step(1e-3, &gradients).status());
    }
    if (optimizer->sharded()) {
      RETURN_IF_ERROR(Expect(!optimizer->Step(1e-3, &gradients).ok(), "no step without a pass"));
    }
    ASSIGN_OR_RETURN(moments.emplace_back(), setup.Whole(optimizer->first_moment(), ranks));
  }
  return Expect(moments[1].equal(moments[0]) && moments[0].norm().item<double>() > 0.1,
                "sums of whole numbers");
}

// Prints progress, for a person who waits at a GPU machine.
void Say(bool tied, const char* what, const ProcessGroup* ranks) {
  std::printf("rank %d, %s: %s agree\n", ranks->rank(), tied ? "tied" : "untied", what);
  std::fflush(stdout);
}

absl::Status Run(const std::string& folder, bool cuda, ProcessGroup* ranks) {
  at::Device device = at::kCPU;
  if (cuda) device = at::Device(at::kCUDA, static_cast<at::DeviceIndex>(ranks->local_rank()));
  RETURN_IF_ERROR(InitializeGpu(device, /*trains=*/true));
  RETURN_IF_ERROR(ranks->InitNcclCollectives(device));
  for (const bool tied : {true, false}) {
    RETURN_IF_ERROR(Integers(tied, device, ranks));
    Say(tied, "sums of whole numbers", ranks);
    RETURN_IF_ERROR(Learners(folder, tied, device, ranks));
    Say(tied, "learners", ranks);
  }
  std::printf("rank %d of %d ok\n", ranks->rank(), ranks->size());
  return ranks->Barrier();
}

int Main(const std::string& folder, const std::string& device) {
  auto ranks = ProcessGroup::Join(absl::Seconds(60));
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  return ExitCodeFor(Run(folder, device == "cuda", ranks->get()), ranks->get());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return argc == 3 ? tritonrl::Main(argv[1], argv[2]) : 2; }
