// Trains one model from one set of random weights on the same batches by this learner, in several
// types, and by PyTorch, and prints the losses side by side.
//
//   ./run curve_bench --shape=qwen3_0p6b --steps=300 --out=runs/curve
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/program.h"
#include "base/progress.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "bench/trainer/curve_inputs.h"
#include "model/layers/fp8.h"
#include "model/testing/test_util.h"
#include "model/torch_runtime.h"
#include "model/weights/weights_load.h"
#include "trainer/learner/policy.h"
#include "trainer/optimizer/adamw.h"
#include "trainer/program/training_program.h"
#include "trainer/sft/sft_learner.h"

ABSL_FLAG(std::string, shape, "qwen3_0p6b", "One of model/configs, or a config.json.");
ABSL_FLAG(std::string, out, "", "Folder for inputs and curves; made.");
ABSL_FLAG(int64_t, steps, 300, "Optimizer steps.");
ABSL_FLAG(int, sequences, 16, "Sequences in a step.");
ABSL_FLAG(int64_t, max_tokens, 1024, "Longer examples are left out.");
ABSL_FLAG(double, learning_rate, 3e-4, "After 20 steps of linear rise; then half a cosine down.");
ABSL_FLAG(std::string, ours, "bf16,fp8", "Types to train in: bf16, fp32, fp8 (in bf16).");
ABSL_FLAG(std::string, peer, "bf16", "The same for PyTorch: bf16 (autocast), fp32; empty: none.");
ABSL_FLAG(std::string, device, "auto", "auto, cpu or cuda.");
ABSL_FLAG(bool, deterministic, false, "The same bits in every run.");

namespace tritonrl {
namespace {

struct Curve {
  std::string name;
  double seconds = 0;
  std::vector<double> losses;
};

OptimizerConfig CurveOptimizer() {
  OptimizerConfig config;
  config.set_learning_rate(absl::GetFlag(FLAGS_learning_rate));
  config.set_warmup_steps(20);
  config.set_schedule(COSINE);
  config.set_final_fraction(0.1);
  config.set_weight_decay(0.1);
  return config;
}

absl::Status WriteOptimizerState(const OptimizerConfig& config, const std::string& folder) {
  const nlohmann::json settings{{"beta1", config.beta1()},
                                {"beta2", config.beta2()},
                                {"epsilon", config.adam_epsilon()},
                                {"weight_decay", config.weight_decay()},
                                {"clip_norm", config.clip_norm()}};
  return WriteFileAtomic(JoinPath(folder, "optimizer.json"), settings.dump());
}

absl::StatusOr<Curve> TrainOurs(const std::string& type, at::Device device,
                                const std::string& folder, const std::vector<SftBatch>& batches,
                                ProcessGroup* ranks) {
  if (type != "bf16" && type != "fp32" && type != "fp8") {
    return absl::InvalidArgumentError(
        absl::StrCat("--ours: \"", type, "\" is none of bf16, fp32, fp8"));
  }
  const at::ScalarType dtype = type == "fp32" ? at::kFloat : at::kBFloat16;
  RETURN_IF_ERROR(InitializeGpu(device, /*trains=*/true));
  if (type == "fp8") RETURN_IF_ERROR(CheckFp8(device, dtype));
  Policy policy;
  ASSIGN_OR_RETURN(policy.config, ReadModelConfig(folder));
  ASSIGN_OR_RETURN(policy.weights, LoadWeights(folder, device, dtype));
  Transformer::Options options;
  options.gpu = TrainingGpuOptions(absl::GetFlag(FLAGS_deterministic), type == "fp8");
  policy.transformer = std::make_shared<Transformer>(policy.config, policy.weights, options);
  const OptimizerConfig config = CurveOptimizer();
  AdamW optimizer(config, policy.weights, ranks);
  SftLearner learner(config, static_cast<int64_t>(batches.size()), &policy, &optimizer, ranks);
  Curve curve{.name = "ours, " + type};
  ProgressOptions bar;
  bar.label = curve.name;
  bar.total = static_cast<int64_t>(batches.size());
  Progress progress(bar);
  const absl::Time begin = absl::Now();
  for (int64_t step = 0; step < bar.total; ++step) {
    ASSIGN_OR_RETURN(const SftStepStats stats, learner.Step(batches[step], step));
    curve.losses.push_back(stats.loss);
    progress.Tick(step + 1, absl::StrCat("loss ", stats.loss));
  }
  curve.seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  return curve;
}

absl::StatusOr<Curve> TrainPeer(const std::string& type, at::Device device,
                                const std::string& folder) {
  ASSIGN_OR_RETURN(const PythonEnv python, FindPythonEnv());
  ASSIGN_OR_RETURN(const std::string script, Runfile("bench/trainer/curve_peer.py"));
  RunCommandOptions options;
  options.env = python.Environment();
  options.timeout = absl::Minutes(30);
  ASSIGN_OR_RETURN(const CommandResult result,
                   RunCommand({python.interpreter, script, "--folder=" + folder, "--dtype=" + type,
                               device.is_cuda() ? "--device=cuda" : "--device=cpu"},
                              options));
  const size_t line = result.out.rfind("{\"curve\"");
  if (!result.ok() || line == std::string::npos) {
    return absl::InternalError(absl::StrCat("the peer: ", result.err));
  }
  const nlohmann::json parsed = nlohmann::json::parse(result.out.substr(line));
  return Curve{parsed["curve"], parsed["seconds"], parsed["losses"]};
}

// Mean of |a - b| over the steps from `first` on.
double MeanDifference(const Curve& a, const Curve& b, size_t first) {
  double sum = 0;
  for (size_t i = first; i < a.losses.size(); ++i) sum += std::abs(a.losses[i] - b.losses[i]);
  return sum / static_cast<double>(a.losses.size() - first);
}

// A line of JSON for each curve; differences are to the last one.
void Print(const std::vector<Curve>& curves) {
  const size_t steps = curves.front().losses.size();
  for (const Curve& curve : curves) {
    nlohmann::ordered_json line{{"curve", curve.name}, {"seconds", curve.seconds}};
    for (size_t step : {size_t{0}, steps / 30, steps / 10, steps / 3, steps - 1}) {
      line[absl::StrCat("loss_", step)] = curve.losses[step];
    }
    line["mean_difference"] = MeanDifference(curve, curves.back(), 0);
    line["mean_difference_last_third"] = MeanDifference(curve, curves.back(), steps * 2 / 3);
    std::printf("%s\n", line.dump().c_str());
  }
}

absl::Status Keep(const std::vector<Curve>& curves, const std::string& path) {
  std::string text;
  for (const Curve& curve : curves) {
    text += nlohmann::json{{"curve", curve.name}, {"losses", curve.losses}}.dump() + "\n";
  }
  return WriteFileAtomic(path, text);
}

std::vector<std::string> Types(const std::string& flag) {
  return absl::StrSplit(flag, ',', absl::SkipEmpty());
}

absl::Status Run() {
  if (absl::GetFlag(FLAGS_out).empty()) return absl::InvalidArgumentError("--out: name a folder");
  if (absl::GetFlag(FLAGS_steps) < 1 || absl::GetFlag(FLAGS_sequences) < 1) {
    return absl::InvalidArgumentError("--steps and --sequences must be at least 1");
  }
  const std::string folder = UserPath(absl::GetFlag(FLAGS_out));
  RETURN_IF_ERROR(CreateDirectories(folder));
  ASSIGN_OR_RETURN(const ModelConfig config, ReadModelShape(absl::GetFlag(FLAGS_shape)));
  ASSIGN_OR_RETURN(const at::Device device, ResolveDevice(absl::GetFlag(FLAGS_device), 0));
  CurveSettings settings;
  settings.steps = absl::GetFlag(FLAGS_steps);
  settings.sequences = absl::GetFlag(FLAGS_sequences);
  settings.max_sequence_tokens = absl::GetFlag(FLAGS_max_tokens);
  ASSIGN_OR_RETURN(const std::vector<SftBatch> batches, MakeCurveBatches(settings, folder));
  RETURN_IF_ERROR(WriteCurveBatches(batches, CurveOptimizer(), JoinPath(folder, "batches.jsonl")));
  RETURN_IF_ERROR(WriteOptimizerState(CurveOptimizer(), folder));
  RETURN_IF_ERROR(RandomWeights(config, device, at::kBFloat16)->Save(folder));
  ASSIGN_OR_RETURN(const auto alone, ProcessGroup::Join(absl::Minutes(1)));
  RETURN_IF_ERROR(alone->InitNcclCollectives(device));
  std::vector<Curve> curves;
  for (const std::string& type : Types(absl::GetFlag(FLAGS_ours))) {
    ASSIGN_OR_RETURN(curves.emplace_back(), TrainOurs(type, device, folder, batches, alone.get()));
    if (device.is_cuda()) c10::cuda::CUDACachingAllocator::emptyCache();
  }
  for (const std::string& type : Types(absl::GetFlag(FLAGS_peer))) {
    ASSIGN_OR_RETURN(curves.emplace_back(), TrainPeer(type, device, folder));
  }
  if (curves.empty()) return absl::InvalidArgumentError("--ours and --peer are both empty");
  Print(curves);
  return Keep(curves, JoinPath(folder, "curves.jsonl"));
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Loss curves of one training run by this learner and by PyTorch.", argc,
                         argv);
  const int code = tritonrl::ExitCodeFor(tritonrl::Run(), nullptr);
  std::fflush(nullptr);
  // Not by exit(): see bench/model/step_bench_main.cc.
  std::_Exit(code);
}
