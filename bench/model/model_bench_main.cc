// Measures tokens per second of the learner (forward + backward) and of decoding for the mini
// policy's shape. The peer, transformers + autograd, runs the same sequences in the same run.
#include <ATen/ops/empty.h>
#include <c10/core/Device.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "bench/harness/harness.h"
#include "model/paged_cache.h"
#include "model/transformer.h"

ABSL_FLAG(int, sequences, 16, "Sequences in a micro-batch.");
ABSL_FLAG(int, decode_rows, 64, "Sequences decoded at a time.");
ABSL_FLAG(double, seconds, 5.0, "Seconds of each measured round.");
ABSL_FLAG(int, threads, 0, "CPU threads; 0 means all.");

namespace tritonrl {
namespace {

// Tokens per second of the steps of one round.
struct RoundRates {
  double mean = 0, best = 0;  // over the round; of the fastest step
  double per_cpu_second = 0;  // by processor time, which other processes hardly disturb
};

// A round of step() for --seconds, or one step in a warm-up round. A step processes `tokens` tokens
// and ends when they are done.
template <typename Step>
BenchCase StepsFor(double tokens, const Step& step, std::vector<RoundRates>* rates) {
  return [=](bool measured) -> absl::StatusOr<double> {
    double best = 1e30, steps = 0;
    const std::clock_t cpu_start = std::clock();
    const absl::Time start = absl::Now();
    const absl::Duration least = absl::Seconds(measured ? absl::GetFlag(FLAGS_seconds) : 0);
    while (steps < (measured ? 2 : 1) || absl::Now() - start < least) {
      best = std::min(best, SecondsOf(step));
      ++steps;
    }
    if (!measured) return 0;
    const double cpu_seconds =
        static_cast<double>(std::clock() - cpu_start) / static_cast<double>(CLOCKS_PER_SEC);
    rates->push_back({tokens * steps / absl::ToDoubleSeconds(absl::Now() - start), tokens / best,
                      tokens * steps / cpu_seconds});
    return rates->back().mean;
  };
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

absl::StatusOr<RoundRates> MeasurePeer(Bench* bench, const Weights& weights,
                                       const std::vector<std::vector<int32_t>>& sequences) {
  ASSIGN_OR_RETURN(const std::string dir, MakeTempDirectory("bench"));
  RETURN_IF_ERROR(weights.Save(dir));
  nlohmann::json lengths;
  for (const auto& sequence : sequences) lengths.push_back(sequence.size());
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(dir, "lengths.json"), lengths.dump()));
  const auto lines =
      RunPeer({.script = "bench/model/model_bench_peer.py",
               .arguments = {dir, bench->device(), absl::StrCat(absl::GetFlag(FLAGS_seconds))},
               .timeout = absl::Minutes(5)});
  RETURN_IF_ERROR(RemoveTree(dir));
  RETURN_IF_ERROR(lines.status());
  const nlohmann::json& line = lines->front();
  return RoundRates{line.at("tokens_per_s"), line.at("best"), line.at("per_cpu_second")};
}

void AddRates(Bench* bench, const std::string& setting, const std::vector<RoundRates>& rounds,
              const std::optional<RoundRates>& peer) {
  const auto add = [&](const char* metric, double RoundRates::*rate) {
    std::vector<double> values;
    for (const RoundRates& round : rounds) values.push_back(round.*rate);
    Figure figure = {metric, Mean(values), "tokens/s", std::nullopt, std::nullopt, values};
    if (peer) figure.peer = (*peer).*rate;
    bench->Add(setting, {figure});
  };
  add("rate", &RoundRates::mean);
  add("rate of the fastest step", &RoundRates::best);
  add("rate by CPU time", &RoundRates::per_cpu_second);
}

absl::Status Run(Bench* bench) {
  const at::Device device(bench->device());
  ASSIGN_OR_RETURN(const std::string mini, Runfile("model/mini"));
  ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(mini));
  const std::shared_ptr<Weights> weights = Weights::RandomInit(config, 1, device);
  Transformer::Options options;
  options.cpu_threads = absl::GetFlag(FLAGS_threads);
  const Transformer model(config, weights, options);
  const auto sequences = Sequences(config, absl::GetFlag(FLAGS_sequences));

  const PackedBatch batch = PackSequences(sequences, device);
  const at::Tensor targets = NextTokenTargets(batch);
  const at::Tensor d_log_probs =
      at::empty({batch.num_tokens()}, at::TensorOptions(at::kFloat).device(device)).fill_(-1.0);
  Gradients gradients(*model.weights());
  Activations saved;
  const auto learn = [&] {
    model.Forward(batch, targets, 1.0, &saved);
    model.Backward(saved, d_log_probs, &gradients);
    gradients.flat().narrow(0, 0, 1).cpu();  // waits for a GPU
  };

  // Positions 100 to 340 of all rows, as in a rollout.
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
  const auto decode = [&] {
    for (int64_t t = 0; t < steps; ++t) {
      for (SequenceSlice& slice : slices) slice.first = first + t;
      model.Step(slices, &cache).narrow(0, 0, 1).cpu();
    }
  };

  std::vector<RoundRates> learned, decoded;
  RETURN_IF_ERROR(bench
                      ->Measure({StepsFor(static_cast<double>(batch.num_tokens()), learn, &learned),
                                 StepsFor(static_cast<double>(rows * steps), decode, &decoded)})
                      .status());
  std::optional<RoundRates> peer;
  if (!bench->peer().empty()) {
    bench->set_peer_name("transformers + autograd");
    ASSIGN_OR_RETURN(peer, MeasurePeer(bench, *weights, sequences));
  }
  bench->set_subject(absl::StrCat("learner and decoding, mini policy, ", bench->device()));
  AddRates(bench, "forward + backward", learned, peer);
  AddRates(bench, absl::StrCat("decode, ", rows, " sequences"), decoded, std::nullopt);
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench({.usage = "Tokens per second of learner and decoder, beside transformers.",
                      .warmup = 1,
                      .repeats = 1,
                      .peer = "true",
                      .device = "cpu"},
                     argc, argv, tritonrl::Run);
}
