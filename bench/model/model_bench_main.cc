// Tokens per second of the learner (forward + backward) and of decoding, for the mini policy's
// shape, and in the same run those of transformers + autograd on the same sequences.
//
//   bazel run //bench/model:model_bench -- [--device=cpu|cuda] [--sequences=16] [--seconds=5]
//   [--nopeer]

#include <ATen/ops/empty.h>
#include <c10/core/Device.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/program.h"
#include "base/random.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "model/paged_cache.h"
#include "model/transformer.h"

ABSL_FLAG(std::string, device, "cpu", "cpu or cuda");
ABSL_FLAG(int, sequences, 16, "Sequences in a micro-batch.");
ABSL_FLAG(int, decode_rows, 64, "Sequences decoded at a time.");
ABSL_FLAG(double, seconds, 5.0, "Seconds of each measurement.");
ABSL_FLAG(int, threads, 0, "CPU threads; 0 means all.");
ABSL_FLAG(bool, peer, true, "Also measure transformers + autograd.");

namespace tritonrl {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Measurement {
  std::string what;
  std::string program;
  double tokens_per_s = 0;    // mean over the measurement
  double best = 0;            // fastest single step
  double per_cpu_second = 0;  // tokens per second of processor time: steady on a busy machine
};

// Runs step() for the given time; it processes `tokens` tokens and ends when they are done.
template <typename Step>
Measurement Measure(const std::string& what, int64_t tokens, double seconds, const Step& step) {
  step();
  double best = 1e30;
  int steps = 0;
  const std::clock_t cpu_start = std::clock();
  const Clock::time_point start = Clock::now();
  while (steps < 2 || SecondsSince(start) < seconds) {
    const Clock::time_point before = Clock::now();
    step();
    best = std::min(best, SecondsSince(before));
    ++steps;
  }
  const double done = static_cast<double>(tokens);
  const double cpu_seconds =
      static_cast<double>(std::clock() - cpu_start) / static_cast<double>(CLOCKS_PER_SEC);
  return {what, "tritonrl", done * steps / SecondsSince(start), done / best,
          done * steps / cpu_seconds};
}

std::vector<std::vector<int32_t>> Sequences(const ModelConfig& config, int count) {
  Philox random(1);
  std::vector<std::vector<int32_t>> sequences(count);
  for (std::vector<int32_t>& sequence : sequences) {
    sequence.resize(240 + random.Below(240));  // prompt and response of the mini suite
    for (int32_t& token : sequence) token = static_cast<int32_t>(random.Below(config.vocab_size));
  }
  return sequences;
}

Measurement MeasureLearner(const Transformer& model,
                           const std::vector<std::vector<int32_t>>& sequences, at::Device device) {
  const PackedBatch batch = PackSequences(sequences, device);
  const at::Tensor targets = NextTokenTargets(batch);
  const at::Tensor d_log_probs =
      at::empty({batch.num_tokens()}, at::TensorOptions(at::kFloat).device(device)).fill_(-1.0);
  Gradients gradients(*model.weights());
  Activations saved;
  return Measure("learner, forward + backward", batch.num_tokens(), absl::GetFlag(FLAGS_seconds),
                 [&] {
                   model.Forward(batch, targets, 1.0, &saved);
                   model.Backward(saved, d_log_probs, &gradients);
                   gradients.flat().narrow(0, 0, 1).cpu();  // waits for a GPU
                 });
}

// Positions 100 to 340 of all rows, as in a rollout.
Measurement MeasureDecode(const Transformer& model, at::Device device) {
  const int64_t rows = absl::GetFlag(FLAGS_decode_rows), first = 100, steps = 240;
  const int64_t pages = PagedKvCache::NumPages(first + steps);
  PagedKvCache cache(model.config(), rows * pages, device, at::kFloat);
  std::vector<std::vector<int32_t>> tables(rows);
  for (int64_t i = 0; i < rows * pages; ++i) tables[i / pages].push_back(static_cast<int32_t>(i));
  const std::vector<int32_t> token = {5};
  std::vector<SequenceSlice> slices;
  for (const auto& table : tables) {
    slices.push_back({.tokens = token, .first = first, .count = 1, .pages = table, .draws = 1});
  }
  return Measure(absl::StrCat("decode, ", rows, " sequences"), rows * steps,
                 absl::GetFlag(FLAGS_seconds), [&] {
                   for (int64_t t = 0; t < steps; ++t) {
                     for (SequenceSlice& slice : slices) slice.first = first + t;
                     model.Step(slices, &cache).narrow(0, 0, 1).cpu();
                   }
                 });
}

absl::StatusOr<Measurement> MeasurePeer(const Weights& weights,
                                        const std::vector<std::vector<int32_t>>& sequences) {
  ASSIGN_OR_RETURN(const std::string dir, MakeTempDirectory("bench"));
  RETURN_IF_ERROR(weights.Save(dir));
  nlohmann::json lengths;
  for (const auto& sequence : sequences) lengths.push_back(sequence.size());
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(dir, "lengths.json"), lengths.dump()));
  ASSIGN_OR_RETURN(const PythonEnv python, FindPythonEnv());
  ASSIGN_OR_RETURN(const std::string script, Runfile("bench/model/model_bench_peer.py"));
  RunCommandOptions options;
  options.timeout = absl::Minutes(5);
  options.env = python.Environment();
  ASSIGN_OR_RETURN(const CommandResult run,
                   RunCommand({python.interpreter, script, dir, absl::GetFlag(FLAGS_device),
                               absl::StrCat(absl::GetFlag(FLAGS_seconds))},
                              options));
  RETURN_IF_ERROR(RemoveTree(dir));
  const nlohmann::json result = nlohmann::json::parse(run.out, nullptr, false);
  if (!run.ok() || !result.is_object()) {
    return absl::InternalError(absl::StrCat("the peer failed: ", run.err));
  }
  return Measurement{"learner, forward + backward", "transformers + autograd",
                     result.value("tokens_per_s", 0.0), result.value("best", 0.0),
                     result.value("per_cpu_second", 0.0)};
}

absl::Status Run() {
  const at::Device device(absl::GetFlag(FLAGS_device));
  ASSIGN_OR_RETURN(const std::string mini, Runfile("model/mini"));
  ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(mini));
  const std::shared_ptr<Weights> weights = Weights::RandomInit(config, 1, device);
  Transformer::Options options;
  options.cpu_threads = absl::GetFlag(FLAGS_threads);
  const Transformer model(config, weights, options);
  const auto sequences = Sequences(config, absl::GetFlag(FLAGS_sequences));
  std::vector<Measurement> results = {MeasureLearner(model, sequences, device),
                                      MeasureDecode(model, device)};
  if (absl::GetFlag(FLAGS_peer)) {
    ASSIGN_OR_RETURN(Measurement peer, MeasurePeer(*weights, sequences));
    results.push_back(std::move(peer));
  }
  for (const Measurement& m : results) {
    std::printf("%s\n", nlohmann::ordered_json{{"what", m.what},
                                               {"program", m.program},
                                               {"device", absl::GetFlag(FLAGS_device)},
                                               {"parameters", config.NumParameters()},
                                               {"tokens_per_s", m.tokens_per_s},
                                               {"best_tokens_per_s", m.best},
                                               {"tokens_per_cpu_second", m.per_cpu_second}}
                            .dump()
                            .c_str());
  }
  std::printf("\n%-30s %-26s %12s %12s %14s\n", "", "", "tokens/s", "best step", "per CPU s");
  for (const Measurement& m : results) {
    std::printf("%-30s %-26s %12.0f %12.0f %14.0f\n", m.what.c_str(), m.program.c_str(),
                m.tokens_per_s, m.best, m.per_cpu_second);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Tokens per second of learner and decoder, beside transformers.", argc,
                         argv);
  const absl::Status status = tritonrl::Run();
  if (!status.ok()) std::fprintf(stderr, "bench: %s\n", tritonrl::Message(status).c_str());
  return status.ok() ? 0 : 1;
}
