#include "trainer/sft/sft_run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/status.h"
#include "tasks/dataset.h"
#include "trainer/learner/policy.h"
#include "trainer/sft/chat_encoder.h"
#include "trainer/sft/example_encoder.h"
#include "trainer/sft/sft_data.h"
#include "trainer/sft/sft_learner.h"
#include "trainer/sft/token_cache.h"
#include "trainer/sft/tokenise.h"

namespace tritonrl {
namespace {

// Files of the generated corpus in the run folder.
constexpr char kTrainCorpus[] = "corpus_train.jsonl";
constexpr char kEvalCorpus[] = "corpus_eval.jsonl";

// Time for rank 0 to tokenise the data, while the others wait.
constexpr absl::Duration kTokeniseDeadline = absl::Hours(12);

class SftRun {
 public:
  SftRun(const SftConfig& config, ProcessGroup* ranks, const SignalHandler& stop)
      : config_(config),
        ranks_(*ranks),
        run_({.program = "sft",
              .progress_label = "sft",
              .first_step_number = 0,
              .gpu_micro_batch_tokens = 65536,
              .derived_files = {kTrainCorpus, kEvalCorpus}},
             config, ranks, /*learners=*/ranks, stop) {}

  absl::StatusOr<TrainingOutcome> Run();

 private:
  absl::Status MakeCorpus(std::vector<std::string>* train, std::vector<std::string>* eval);
  absl::Status WriteCorpusOnce(const std::string& path, uint64_t first, uint64_t count);
  absl::Status MakeEncoder();
  absl::StatusOr<std::unique_ptr<TokenCache>> Tokenise(const std::vector<std::string>& paths,
                                                       const char* name, int64_t limit);
  absl::StatusOr<ExampleCounts> CheckExamples(const TokenCache& data, const std::string& name);
  absl::Status OpenData();
  absl::Status Load();
  absl::Status Loop();
  absl::Status Step(const SftBatch& batch);
  absl::Status Log(const SftStepStats& stats, const std::optional<double>& eval_loss);

  const SftConfig& config_;
  ProcessGroup& ranks_;
  TrainingRun run_;
  int64_t total_steps_ = 0;
  std::unique_ptr<ExampleEncoder> encoder_;
  std::unique_ptr<TokenCache> train_data_;
  std::unique_ptr<SftOrder> order_;
  std::optional<SftBatch> eval_batch_;
  std::unique_ptr<SftLearner> learner_;
  absl::Time last_log_;
  int64_t tokens_since_log_ = 0;
  ExampleCounts train_counts_;
  bool stopped_ = false;
};

// A corpus file gets its name only when it is complete, so an existing file is reused.
absl::Status SftRun::WriteCorpusOnce(const std::string& path, uint64_t first, uint64_t count) {
  if (!ranks_.is_root() || FileExists(path)) return absl::OkStatus();
  CorpusSettings settings;
  settings.seed = config_.generated().seed();
  settings.hard_rate = config_.generated().hard_rate();
  settings.easy_rate = config_.generated().easy_rate();
  settings.structural_rate = config_.generated().structural_rate();
  run_.Say(absl::StrCat("generating ", count, " examples: ", path));
  return WriteCorpus(settings, first, count, /*with_references=*/false, path);
}

absl::Status SftRun::MakeCorpus(std::vector<std::string>* train, std::vector<std::string>* eval) {
  const GeneratedCorpusConfig& g = config_.generated();
  if (g.samples() == 0) return absl::OkStatus();
  train->push_back(JoinPath(run_.dir(), kTrainCorpus));
  RETURN_IF_ERROR(WriteCorpusOnce(train->back(), 0, g.samples()));
  if (g.eval_samples() > 0) {
    eval->push_back(JoinPath(run_.dir(), kEvalCorpus));
    RETURN_IF_ERROR(WriteCorpusOnce(eval->back(), g.samples(), g.eval_samples()));
  }
  return ranks_.Barrier();
}

absl::Status SftRun::MakeEncoder() {
  const Policy& policy = run_.policy();
  ASSIGN_OR_RETURN(std::string hash, HashTokenizerFiles(policy.folder));
  if (!policy.chat->plain()) {
    run_.Say(absl::StrCat("chat template: ", policy.chat->source(), "; turns end with ",
                          policy.chat->end_of_turn().text));
    encoder_ = std::make_unique<ChatEncoder>(*policy.chat, std::move(hash), config_.teach());
    return absl::OkStatus();
  }
  encoder_ = std::make_unique<PlainEncoder>(policy.tokenizer.get(), std::move(hash),
                                            policy.end_token(), config_.teach());
  return absl::OkStatus();
}

// Rank 0 tokenises, or finds the tokens of an earlier start; then every rank maps them.
absl::StatusOr<std::unique_ptr<TokenCache>> SftRun::Tokenise(const std::vector<std::string>& paths,
                                                             const char* name, int64_t limit) {
  TokeniseOptions options;
  options.paths = paths;
  options.cache = JoinPath(run_.dir(), absl::StrCat("cache/", name));
  options.limit = limit;
  // One more with a chat template: a thread waits while the helper renders.
  options.threads = run_.threads() + (run_.policy().chat->plain() ? 0 : 1);
  options.vocab_size = run_.policy().config.vocab_size;
  options.say = [this](const std::string& text) { run_.Say(text); };
  options.show_progress = true;
  std::string key;
  absl::StatusOr<std::unique_ptr<TokenCache>> tokens;
  const absl::Status made = [&]() -> absl::Status {
    if (!ranks_.is_root()) return absl::OkStatus();
    ASSIGN_OR_RETURN(key, TokenCacheKey(options, *encoder_));
    ASSIGN_OR_RETURN(tokens, TokeniseOnce(options, key, *encoder_));
    return absl::OkStatus();
  }();
  RETURN_IF_ERROR(ranks_.Barrier(kTokeniseDeadline));
  RETURN_IF_ERROR(ranks_.AllReduceStatus(made));
  // The key holds times of change, which another machine may see a little differently.
  RETURN_IF_ERROR(ranks_.Broadcast(&key));
  if (!ranks_.is_root()) {
    tokens = TokenCache::Open(options.cache, key, /*threads=*/0);
    if (!tokens.ok()) return AddContext(tokens.status(), options.cache);
  }
  return tokens;
}

// Says which examples teach nothing; an error if all are such.
absl::StatusOr<ExampleCounts> SftRun::CheckExamples(const TokenCache& data,
                                                    const std::string& name) {
  const Policy& policy = run_.policy();
  const std::string end = policy.chat->end_of_turn().empty()
                              ? policy.tokenizer->Decode(std::vector<int32_t>{policy.end_token()})
                              : policy.chat->end_of_turn().text;
  const ExampleCounts counts =
      CountExamples(data, config_.max_sequence_tokens(), *policy.tokenizer, end);
  if (const absl::Status status = counts.Check(); !status.ok()) return AddContext(status, name);
  for (const std::string& sentence : {counts.TooLongSentence(), counts.EmptySentence()}) {
    if (!sentence.empty()) run_.Say(absl::StrCat(name, ": ", sentence), LogLevel::kWarning);
  }
  return counts;
}

absl::Status SftRun::OpenData() {
  std::vector<std::string> train, eval;
  for (const std::string& path : config_.train_data()) {
    ASSIGN_OR_RETURN(train.emplace_back(), FindInputPath(path));
  }
  for (const std::string& path : config_.eval_data()) {
    ASSIGN_OR_RETURN(eval.emplace_back(), FindInputPath(path));
  }
  RETURN_IF_ERROR(MakeCorpus(&train, &eval));
  RETURN_IF_ERROR(MakeEncoder());
  ASSIGN_OR_RETURN(train_data_, Tokenise(train, "train.tokens", /*limit=*/0));
  ASSIGN_OR_RETURN(train_counts_, CheckExamples(*train_data_, "train_data"));
  order_ = std::make_unique<SftOrder>(train_data_.get(), config_);
  total_steps_ = config_.steps();
  if (total_steps_ == 0) {
    total_steps_ = static_cast<int64_t>(std::ceil(
        config_.epochs() * static_cast<double>(train_data_->size()) / config_.batch_size()));
  }
  if (eval.empty() || config_.eval_samples() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<TokenCache> eval_data,
                   Tokenise(eval, "eval.tokens", config_.eval_samples()));
  RETURN_IF_ERROR(CheckExamples(*eval_data, "eval_data").status());
  std::vector<int64_t> all(eval_data->size());
  std::iota(all.begin(), all.end(), 0);
  eval_batch_ =
      MakeSftBatch(*eval_data, all, config_.max_sequence_tokens(), run_.micro_batch_tokens(),
                   {ranks_.rank(), ranks_.size(), SequenceCostFor(run_.policy().config)});
  return absl::OkStatus();
}

absl::Status SftRun::Load() {
  RETURN_IF_ERROR(run_.OpenFolder());
  RETURN_IF_ERROR(run_.LoadPolicy());
  RETURN_IF_ERROR(OpenData());
  run_.startup_timer().EndPhase("data");
  RETURN_IF_ERROR(run_.MakeOptimizer(config_.max_sequence_tokens()));
  learner_ = std::make_unique<SftLearner>(config_.optimizer(), total_steps_, &run_.policy(),
                                          run_.optimizer(), &ranks_, run_.NonFiniteGradientDir());
  RETURN_IF_ERROR(run_.Resume(total_steps_, {}));
  learner_->set_consecutive_skipped(run_.consecutive_skipped());
  return absl::OkStatus();
}

absl::StatusOr<TrainingOutcome> SftRun::Run() {
  RETURN_IF_ERROR(Load());
  const Policy& policy = run_.policy();
  run_.Say(absl::StrFormat("%d parameters on %s, %d examples, %d steps of %d",
                           policy.config.NumParameters(), DescribeDevice(policy.device()),
                           train_data_->size(), total_steps_, config_.batch_size()));
  if (const absl::Status status = Loop(); !status.ok()) return run_.Fail(status);
  // The steps' field "dropped" counts each use of an example; this counts the examples.
  if (const std::string sentence = train_counts_.TooLongSentence(); !sentence.empty()) {
    run_.Say(absl::StrCat("train_data: ", sentence));
  }
  run_.EndProgress();
  return run_.Finish(stopped_);
}

absl::Status SftRun::Loop() {
  const Policy& policy = run_.policy();
  SftLoaderOptions options;
  options.max_sequence_tokens = config_.max_sequence_tokens();
  options.micro_batch_tokens = run_.micro_batch_tokens();
  options.rank = ranks_.rank();
  options.size = ranks_.size();
  options.cost = SequenceCostFor(policy.config);
  options.threads =
      config_.data_threads() > 0 ? config_.data_threads() : (policy.device().is_cpu() ? 1 : 4);
  options.first_step = run_.step();
  options.end_step = total_steps_;
  SftLoader loader(options, train_data_.get(), order_.get());
  run_.StartProgress();
  last_log_ = absl::Now();
  while (!run_.complete() && !stopped_) {
    ASSIGN_OR_RETURN(const SftBatch batch, loader.Next());
    if (run_.step() == options.first_step) {
      run_.startup_timer().EndPhase("first batch");
      run_.Say(run_.startup_timer().Summary());
    }
    RETURN_IF_ERROR(Step(batch));
    ASSIGN_OR_RETURN(const bool stop, run_.AnyStop());
    stopped_ = stop && !run_.complete();
    if (!stopped_) RETURN_IF_ERROR(run_.Checkpoint());
  }
  return run_.SaveCompletedSteps();
}

absl::Status SftRun::Step(const SftBatch& batch) {
  const int64_t step = run_.step();
  run_.BeginUpdate();
  ASSIGN_OR_RETURN(const SftStepStats stats, learner_->Step(batch, step));
  run_.SayNonFinite(stats.nonfinite_gradient);
  tokens_since_log_ += stats.tokens;
  const bool last = step + 1 == total_steps_;
  const int every = config_.eval_every();
  std::optional<double> eval_loss;
  if (eval_batch_.has_value() && (last || (every > 0 && (step + 1) % every == 0))) {
    ASSIGN_OR_RETURN(eval_loss, learner_->EvaluateLoss(*eval_batch_));
  }
  if (eval_loss.has_value() || last || step % config_.log_every() == 0) {
    RETURN_IF_ERROR(Log(stats, eval_loss));
  }
  run_.CompleteStep(learner_->consecutive_skipped());
  return absl::OkStatus();
}

absl::Status SftRun::Log(const SftStepStats& stats, const std::optional<double>& eval_loss) {
  const absl::Time now = absl::Now();
  const double rate = static_cast<double>(tokens_since_log_) /
                      std::max(1e-9, absl::ToDoubleSeconds(now - last_log_));
  last_log_ = now;
  tokens_since_log_ = 0;
  MetricFields fields = {{"loss", stats.loss},
                         {"learning_rate", stats.learning_rate},
                         {"gradient_norm", stats.gradient_norm},
                         {"tokens", stats.tokens},
                         {"response_tokens", stats.response_tokens},
                         {"dropped", stats.dropped},
                         {"skipped", stats.skipped},
                         {"tokens_per_s", rate}};
  std::string line = absl::StrFormat("loss %.4f  lr %.2e  grad %.3f  %.1fk tok/s", stats.loss,
                                     stats.learning_rate, stats.gradient_norm, rate / 1000);
  if (eval_loss.has_value()) {
    fields.emplace_back("eval_loss", *eval_loss);
    line += absl::StrFormat("  eval loss %.4f", *eval_loss);
  }
  return run_.Log(fields, line, /*stays=*/eval_loss.has_value());
}

}  // namespace

absl::StatusOr<TrainingOutcome> RunSft(const SftConfig& config, ProcessGroup* ranks,
                                       const SignalHandler& stop) {
  return SftRun(config, ranks, stop).Run();
}

}  // namespace tritonrl
