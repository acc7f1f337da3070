// tensor_parallel_test starts this program under mpirun, with the case's name as its argument. On a
// machine with two or more GPUs a person can start it from an archive of tools/bundle.sh, with the
// prefix "gpu_":
//   mpirun -n 2 ./run tensor_parallel_test_program gpu_same
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "model/weights/weights.h"
#include "parallel/process_group.h"
#include "rollout/distributed/tensor_parallel.h"
#include "rollout/engine/model_runner.h"
#include "rollout/factory/make_engine.h"

namespace tritonrl {
namespace {

absl::Status Expect(bool holds, const std::string& what) {
  return holds ? absl::OkStatus() : absl::InternalError("wrong: " + what);
}

struct Setting {
  ProcessGroup* ranks = nullptr;
  at::Device device = at::Device(at::kCPU);
  absl::Duration timeout = absl::Seconds(60);
  bool on_gpu() const { return device.is_cuda(); }
};

ModelConfig SmallConfig(bool on_gpu) {
  ModelConfig config;
  config.hidden_size = on_gpu ? 256 : 48;
  config.num_layers = 3;
  config.num_heads = 8;
  config.num_kv_heads = 4;
  config.head_dim = on_gpu ? 64 : 16;
  config.intermediate_size = on_gpu ? 640 : 80;
  config.vocab_size = on_gpu ? 512 : 96;
  config.max_positions = 512;
  return config;
}

// The same weights on every rank, scaled so that the next token depends strongly on the text.
std::shared_ptr<Weights> WholeWeights(const Setting& setting) {
  auto weights = Weights::RandomInit(SmallConfig(setting.on_gpu()), 5, setting.device,
                                     setting.on_gpu() ? at::kBFloat16 : at::kFloat);
  for (const ParameterInfo& parameter : weights->layout().parameters) {
    if (parameter.decay()) at::Tensor(weights->Get(parameter.name)).mul_(setting.on_gpu() ? 4 : 8);
  }
  return weights;
}

// Records the tokens that its rank draws, and causes `trouble` in step kTroubleAt.
class WatchedRunner : public ForwardingRunner {
 public:
  enum class Trouble { kNone, kError, kDeath, kHang };

  WatchedRunner(std::unique_ptr<ModelRunner> runner, Trouble trouble)
      : ForwardingRunner(std::move(runner)), trouble_(trouble) {}

  absl::Status Launch(const ModelStep& step) override {
    constexpr int kTroubleAt = 5;
    if (steps_++ == kTroubleAt) {
      if (trouble_ == Trouble::kError) return absl::ResourceExhaustedError("no memory is left");
      if (trouble_ == Trouble::kDeath) raise(SIGKILL);
      if (trouble_ == Trouble::kHang) sleep(600);
    }
    return ForwardingRunner::Launch(step);
  }

  absl::StatusOr<std::vector<TokenDraw>> Collect() override {
    ASSIGN_OR_RETURN(std::vector<TokenDraw> draws, ForwardingRunner::Collect());
    for (const TokenDraw& draw : draws) tokens_->push_back(draw.token);
    return draws;
  }

  // The tokens drawn so far; they outlive the runner.
  std::shared_ptr<const std::vector<int32_t>> tokens() const { return tokens_; }

 private:
  const Trouble trouble_;
  int steps_ = 0;
  const std::shared_ptr<std::vector<int32_t>> tokens_ = std::make_shared<std::vector<int32_t>>();
};

using Trouble = WatchedRunner::Trouble;

struct Case {
  EngineConfig engine;
  EngineContext context = {.max_length = 256, .cpu_threads = 1};
  double temperature = 1.0;
  int max_tokens = 60;
};

Case PlainCase() {
  Case plain;
  plain.engine.set_max_num_seqs(8);
  return plain;
}

absl::StatusOr<std::vector<Sample>> Samples(const Case& c, int64_t vocab, Engine* engine) {
  constexpr int kRequests = 3, kEach = 3;
  for (uint64_t id = 0; id < kRequests; ++id) {
    GenerateRequest request;
    request.id = id;
    for (uint64_t i = 0; i < 4 + 29 * id; ++i) {
      request.prompt.push_back(static_cast<int32_t>((id * 31 + i * 7) % vocab));
    }
    request.n = kEach;
    request.sampling.max_tokens = c.max_tokens;
    request.sampling.temperature = c.temperature;
    request.key = {.run_seed = 1, .step = 2, .task = id};
    RETURN_IF_ERROR(engine->Submit(std::move(request)));
  }
  std::vector<Sample> samples(kRequests * kEach);
  while (engine->Outstanding() > 0) {
    ASSIGN_OR_RETURN(Sample sample, engine->Next(absl::Now() + absl::Seconds(60)));
    Sample& place = samples[sample.request_id * kEach + sample.index];
    place = std::move(sample);
  }
  return samples;
}

// The largest difference of log-probabilities before the first different token of each sample; adds
// the number of equal tokens to *tokens. A greedy sample's first different token counts too: both
// tokens are the most probable ones, so their log-probabilities differ by no more than rounding.
double Difference(const std::vector<Sample>& a, const std::vector<Sample>& b, bool greedy,
                  int64_t* tokens) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const size_t count = std::min(a[i].tokens.size(), b[i].tokens.size());
    for (size_t t = 0; t < count; ++t) {
      const bool same = a[i].tokens[t] == b[i].tokens[t];
      if (same || greedy) {
        largest = std::max<double>(largest, std::abs(a[i].log_probs[t] - b[i].log_probs[t]));
      }
      if (!same) break;
      ++*tokens;
    }
  }
  return largest;
}

struct Spread {
  std::unique_ptr<Engine> engine;  // null on all ranks except rank 0
  std::shared_ptr<const std::vector<int32_t>> drawn;
};

// As MakeTensorParallelEngine, with a WatchedRunner.
absl::StatusOr<Spread> StartSpread(const Setting& setting, Case c, Trouble trouble) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Weights> weights,
                   ExtractShard(*WholeWeights(setting), TensorParallelShard(*setting.ranks)));
  ASSIGN_OR_RETURN(RankChannels links,
                   MakeRankChannels(setting.device, setting.ranks, setting.timeout));
  c.context.ranks = links.collectives.get();
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner,
                   MakeModelRunner(weights, c.engine, c.context));
  auto watched = std::make_unique<WatchedRunner>(std::move(runner), trouble);
  Spread spread;
  spread.drawn = watched->tokens();
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> all,
                   MakeTensorParallelRunner(std::move(watched), std::move(links), setting.ranks));
  if (all != nullptr) {
    spread.engine = std::make_unique<BatchedEngine>(std::move(all), c.engine);
  }
  return spread;
}

// Checks that all ranks have drawn the same tokens, each by itself.
absl::Status CompareDraws(const std::vector<int32_t>& drawn, ProcessGroup* ranks) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   ranks->AllGather(std::string(reinterpret_cast<const char*>(drawn.data()),
                                                drawn.size() * sizeof(int32_t))));
  for (const std::string& one : all) {
    RETURN_IF_ERROR(Expect(!one.empty() && one == all[0], "the draws of another rank"));
  }
  return absl::OkStatus();
}

// Compares the samples of all ranks together with those of rank 0 alone with the whole model.
absl::StatusOr<EngineStats> CompareWithOne(const Setting& setting, const Case& c) {
  ASSIGN_OR_RETURN(Spread spread, StartSpread(setting, c, Trouble::kNone));
  EngineStats stats;
  if (setting.ranks->is_root()) {
    const std::shared_ptr<Weights> whole = WholeWeights(setting);
    const int64_t vocab = whole->config().vocab_size;
    ASSIGN_OR_RETURN(const std::vector<Sample> together, Samples(c, vocab, spread.engine.get()));
    stats = spread.engine->Stats();
    spread.engine.reset();
    ASSIGN_OR_RETURN(const std::unique_ptr<Engine> alone,
                     MakeBatchedEngine(whole, c.engine, c.context));
    ASSIGN_OR_RETURN(const std::vector<Sample> expected, Samples(c, vocab, alone.get()));
    int64_t tokens = 0;
    const double difference = Difference(together, expected, c.temperature == 0, &tokens);
    const int64_t all = static_cast<int64_t>(expected.size()) * c.max_tokens;
    std::printf("%lld of %lld tokens alike, log-probabilities at most %.2g apart\n",
                static_cast<long long>(tokens), static_cast<long long>(all), difference);
    // In bf16 a token may differ by rounding, and then all later tokens of the sample differ: with
    // these random weights a tenth of the tokens at temperature 1 were equal on two H200.
    const bool alike = setting.on_gpu() ? tokens > all / 20 : tokens == all;
    RETURN_IF_ERROR(Expect(alike, "tokens of the samples"));
    RETURN_IF_ERROR(Expect(difference < (setting.on_gpu() ? 0.15 : 1e-5), "log-probabilities"));
  }
  if (!setting.on_gpu()) RETURN_IF_ERROR(CompareDraws(*spread.drawn, setting.ranks));
  return stats;
}

absl::Status Same(const Setting& setting) {
  Case c = PlainCase();
  RETURN_IF_ERROR(CompareWithOne(setting, c).status());
  c.temperature = 0;
  return CompareWithOne(setting, c).status();
}

// Preempted samples, prompts in small chunks, and draft tokens.
absl::Status LittleMemory(const Setting& setting) {
  Case c = PlainCase();
  c.engine.set_max_num_batched_tokens(12);
  c.temperature = 0;
  c.max_tokens = 120;
  c.engine.set_num_speculative_tokens(4);
  c.engine.set_always_speculate(true);
  // One rank's keys and values for 30 pages of 16 tokens.
  const ModelConfig whole = SmallConfig(setting.on_gpu());
  ASSIGN_OR_RETURN(const ModelConfig part, ShardConfig(whole, setting.ranks->size()));
  c.engine.set_cache_bytes(30 * 2 * whole.num_layers * 16 * part.kv_size() *
                           (setting.on_gpu() ? 2 : 4));
  c.engine.set_max_num_seqs(7);
  ASSIGN_OR_RETURN(const EngineStats stats, CompareWithOne(setting, c));
  if (!setting.ranks->is_root()) return absl::OkStatus();
  RETURN_IF_ERROR(Expect(stats.preemptions > 0, "no sample was preempted"));
  return Expect(stats.accepted_tokens > 0, "no draft token was accepted");
}

// An engine that is idle for longer than the time after which a rank counts as lost.
absl::Status Idle(const Setting& setting) {
  const Case c = PlainCase();
  ASSIGN_OR_RETURN(const Spread spread, StartSpread(setting, c, Trouble::kNone));
  if (!setting.ranks->is_root()) return absl::OkStatus();
  const int64_t vocab = SmallConfig(setting.on_gpu()).vocab_size;
  ASSIGN_OR_RETURN(const std::vector<Sample> before, Samples(c, vocab, spread.engine.get()));
  absl::SleepFor(2 * setting.timeout);
  ASSIGN_OR_RETURN(const std::vector<Sample> after, Samples(c, vocab, spread.engine.get()));
  return Expect(before[4].tokens == after[4].tokens, "samples after a rest");
}

// Loses the last rank, or with `first` rank 0, during generation.
absl::Status Lose(const Setting& setting, Trouble trouble, bool first) {
  const int lost = first ? 0 : setting.ranks->size() - 1;
  const Case c = PlainCase();
  ASSIGN_OR_RETURN(
      const Spread spread,
      StartSpread(setting, c, setting.ranks->rank() == lost ? trouble : Trouble::kNone));
  if (!setting.ranks->is_root()) {
    absl::SleepFor(absl::Seconds(60));  // rank 0 knows why, and ends the job
    return absl::OkStatus();
  }
  const int64_t vocab = SmallConfig(setting.on_gpu()).vocab_size;
  RETURN_IF_ERROR(Samples(c, vocab, spread.engine.get()).status());
  std::printf("survived\n");
  return absl::OkStatus();
}

// Stops rank 0's process while its engine is idle.
absl::Status StopTheFirst(const Setting& setting) {
  const Case c = PlainCase();
  ASSIGN_OR_RETURN(const Spread spread, StartSpread(setting, c, Trouble::kNone));
  if (!setting.ranks->is_root()) return absl::OkStatus();
  const int64_t vocab = SmallConfig(setting.on_gpu()).vocab_size;
  RETURN_IF_ERROR(Samples(c, vocab, spread.engine.get()).status());
  raise(SIGSTOP);  // mpirun wakes it as it ends the job
  return absl::InternalError("rank 0 was woken");
}

absl::Status WrongSizes(const Setting& setting) {
  Case c = PlainCase();
  c.engine.set_max_num_seqs(c.engine.max_num_seqs() + setting.ranks->rank());
  const absl::Status refused = StartSpread(setting, c, Trouble::kNone).status();
  return Expect(absl::IsInvalidArgument(refused) &&
                    absl::StrContains(refused.message(), "rank 1 has (max_length 256"),
                refused.ToString());
}

absl::Status Run(absl::string_view what, Setting setting) {
  if (absl::ConsumePrefix(&what, "gpu_")) {
    setting.device =
        at::Device(at::kCUDA, static_cast<at::DeviceIndex>(setting.ranks->local_rank()));
  }
  if (what == "die") return Lose(setting, Trouble::kDeath, false);
  if (what == "hang") return Lose(setting, Trouble::kHang, false);
  if (what == "fail") return Lose(setting, Trouble::kError, false);
  if (what == "first_dies") return Lose(setting, Trouble::kDeath, true);
  if (what == "first_hangs") return Lose(setting, Trouble::kHang, true);
  if (what == "first_stops") return StopTheFirst(setting);
  if (what == "first_fails") return Lose(setting, Trouble::kError, true);
  if (what == "same") {
    RETURN_IF_ERROR(Same(setting));
  } else if (what == "memory") {
    RETURN_IF_ERROR(LittleMemory(setting));
  } else if (what == "idle") {
    RETURN_IF_ERROR(Idle(setting));
  } else if (what == "sizes") {
    RETURN_IF_ERROR(WrongSizes(setting));
  } else {
    return absl::InvalidArgumentError(absl::StrCat("no case \"", what, "\""));
  }
  std::printf("rank %d of %d: %s\n", setting.ranks->rank(), setting.ranks->size(),
              std::string(what).c_str());
  return setting.ranks->Barrier();
}

// Time limit of the ranks' waits in a case.
absl::Duration TimeoutOf(const std::string& what) {
  if (absl::EndsWith(what, "idle")) return absl::Seconds(4);
  for (const char* unharmed : {"same", "memory", "sizes"}) {
    if (absl::EndsWith(what, unharmed)) return absl::Seconds(60);
  }
  return absl::Seconds(2);  // a rank is lost
}

int Main(const std::string& what) {
  const absl::Duration timeout = TimeoutOf(what);
  auto ranks = ProcessGroup::Join(timeout);
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  return ExitCodeFor(Run(what, {.ranks = ranks->get(), .timeout = timeout}), ranks->get());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return argc == 2 ? tritonrl::Main(argv[1]) : 2; }
