// Trains one model from the same random weights on the same batches with this learner, in several
// float types, and with PyTorch, and prints the losses side by side.
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "bench/harness/harness.h"
#include "model/layers/fp8.h"
#include "model/testing/test_util.h"
#include "model/tokenizer/tokenizer.h"
#include "model/torch_runtime.h"
#include "model/weights/model_config.h"
#include "model/weights/weights_load.h"
#include "tasks/dataset.h"
#include "trainer/learner/policy.h"
#include "trainer/optimizer/adamw.h"
#include "trainer/program/training_program.h"
#include "trainer/sft/example_encoder.h"
#include "trainer/sft/sft_data.h"
#include "trainer/sft/sft_learner.h"
#include "trainer/sft/tokenise.h"

ABSL_FLAG(std::string, shape, "qwen3_0p6b", "One of model/configs, or a config.json.");
ABSL_FLAG(std::string, out, "", "Folder for inputs and curves; made.");
ABSL_FLAG(int64_t, steps, 300, "Optimizer steps.");
ABSL_FLAG(int, sequences, 16, "Sequences in a step.");
ABSL_FLAG(int64_t, max_tokens, 1024, "Longer examples are left out.");
ABSL_FLAG(double, learning_rate, 3e-4, "After 20 steps of linear rise; then half a cosine down.");
ABSL_FLAG(std::string, ours, "bf16,fp8", "Types to train in: bf16, fp32, fp8 (in bf16).");
ABSL_FLAG(bool, deterministic, false, "The same bits in every run.");

namespace tritonrl {
namespace {

constexpr int64_t kMicroBatchTokens = 16384;

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

nlohmann::json SequencesOf(const SftMicroBatch& micro) {
  const int32_t no_target = -1;
  const int64_t* tokens = micro.batch.tokens.const_data_ptr<int64_t>();
  const int64_t* targets = micro.targets.const_data_ptr<int64_t>();
  nlohmann::json sequences = nlohmann::json::array();
  for (int64_t i = 0; i < micro.batch.num_sequences(); ++i) {
    const int64_t begin = micro.batch.offsets[i], end = micro.batch.offsets[i + 1];
    int64_t first = begin;
    while (first < end && targets[first] == no_target) ++first;
    sequences.push_back(
        {{"tokens", std::vector<int64_t>(tokens + begin, tokens + end)}, {"first", first - begin}});
  }
  return sequences;
}

// The batches of all steps: examples of the generated corpus (tasks/dataset.h, fresh in each step)
// through the mini policy's tokenizer. `folder` keeps the corpus.
absl::StatusOr<std::vector<SftBatch>> MakeCurveBatches(const std::string& folder) {
  const int64_t steps = absl::GetFlag(FLAGS_steps), sequences = absl::GetFlag(FLAGS_sequences);
  ASSIGN_OR_RETURN(const std::string mini, Runfile("model/mini"));
  ASSIGN_OR_RETURN(const ModelConfig mini_config, ReadModelConfig(mini));
  ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(JoinPath(mini, "tokenizer.json")));
  const std::string corpus = JoinPath(folder, "corpus.jsonl");
  CorpusSettings corpus_settings;
  corpus_settings.seed = 0;
  RETURN_IF_ERROR(WriteCorpus(corpus_settings, 0, steps * sequences,
                              /*with_references=*/false, corpus));
  const PlainEncoder encoder(&tokenizer, mini, mini_config.eos_token_ids.front(), SftConfig::LAST);
  const TokeniseOptions options = {.paths = {corpus}, .cache = JoinPath(folder, "corpus.tokens")};
  ASSIGN_OR_RETURN(const std::string key, TokenCacheKey(options, encoder));
  ASSIGN_OR_RETURN(const auto data, TokeniseOnce(options, key, encoder));
  std::vector<SftBatch> batches;
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<int64_t> examples(sequences);
    std::iota(examples.begin(), examples.end(), step * sequences);
    batches.push_back(
        MakeSftBatch(*data, examples, absl::GetFlag(FLAGS_max_tokens), kMicroBatchTokens));
  }
  return batches;
}

// Writes one line of JSON per step: the learning rate, and the sequences with their tokens and the
// index of the first token that predicts a response token.
absl::Status WriteCurveBatches(const std::vector<SftBatch>& batches, const OptimizerConfig& config,
                               const std::string& path) {
  const int64_t steps = static_cast<int64_t>(batches.size());
  std::string text;
  for (int64_t step = 0; step < steps; ++step) {
    nlohmann::json line{{"learning_rate", LearningRate(config, step, steps)},
                        {"sequences", nlohmann::json::array()}};
    for (const SftMicroBatch& micro : batches[step].micro_batches) {
      for (nlohmann::json& sequence : SequencesOf(micro)) {
        line["sequences"].push_back(std::move(sequence));
      }
    }
    text += line.dump() + "\n";
  }
  return WriteFileAtomic(path, text);
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
  ASSIGN_OR_RETURN(const auto lines,
                   RunPeer({.script = "bench/trainer/curve_peer.py",
                            .arguments = {"--folder=" + folder, "--dtype=" + type,
                                          device.is_cuda() ? "--device=cuda" : "--device=cpu"}}));
  const nlohmann::json& line = lines.back();
  return Curve{line.at("curve"), line.at("seconds"), line.at("losses")};
}

// Mean of |a - b| over the steps from `first` on.
double MeanDifference(const Curve& a, const Curve& b, size_t first) {
  double sum = 0;
  for (size_t i = first; i < a.losses.size(); ++i) sum += std::abs(a.losses[i] - b.losses[i]);
  return sum / static_cast<double>(a.losses.size() - first);
}

// Adds the losses at some steps and the differences to the last curve.
void AddCurves(Bench* bench, const std::vector<Curve>& curves) {
  bench->set_subject(absl::StrCat("loss curves, ", absl::GetFlag(FLAGS_shape), " shape"));
  const Curve& last = curves.back();
  const size_t steps = last.losses.size();
  for (const Curve& curve : curves) {
    bench->Add(curve.name, {{"time", curve.seconds, "s"}});
    for (size_t step : {size_t{0}, steps / 30, steps / 10, steps / 3, steps - 1}) {
      bench->Add(curve.name, {{absl::StrCat("loss of step ", step), curve.losses[step]}});
    }
    bench->Add(curve.name, {{"mean difference to " + last.name, MeanDifference(curve, last, 0)},
                            {"the same, last third", MeanDifference(curve, last, steps * 2 / 3)}});
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

absl::Status Run(Bench* bench) {
  if (absl::GetFlag(FLAGS_out).empty()) return absl::InvalidArgumentError("--out: name a folder");
  if (absl::GetFlag(FLAGS_steps) < 1 || absl::GetFlag(FLAGS_sequences) < 1) {
    return absl::InvalidArgumentError("--steps and --sequences must be at least 1");
  }
  const std::string folder = UserPath(absl::GetFlag(FLAGS_out));
  RETURN_IF_ERROR(CreateDirectories(folder));
  ASSIGN_OR_RETURN(const ModelConfig config, ReadModelShape(absl::GetFlag(FLAGS_shape)));
  ASSIGN_OR_RETURN(const at::Device device, ResolveDevice(bench->device(), 0));
  ASSIGN_OR_RETURN(const std::vector<SftBatch> batches, MakeCurveBatches(folder));
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
  for (const std::string& type : Types(bench->peer())) {
    ASSIGN_OR_RETURN(curves.emplace_back(), TrainPeer(type, device, folder));
  }
  if (curves.empty()) return absl::InvalidArgumentError("--ours and --peer are both empty");
  AddCurves(bench, curves);
  return Keep(curves, JoinPath(folder, "curves.jsonl"));
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench({.usage = "Loss curves of one training run by this learner and by PyTorch. "
                               "--peer=bf16,fp32 names PyTorch's types: bf16 is autocast.",
                      .peer = "bf16",
                      .device = "auto"},
                     argc, argv, tritonrl::Run);
}
