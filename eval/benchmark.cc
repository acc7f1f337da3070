#include "eval/benchmark.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/progress.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "parallel/process_group.h"
#include "rollout/distributed/tensor_parallel.h"
#include "trainer/grpo/model_state.h"
#include "trainer/grpo/sample_batch.h"
#include "trainer/grpo/sample_journal.h"
#include "trainer/grpo/sample_runner.h"
#include "trainer/grpo/verification.h"
#include "trainer/learner/policy.h"
#include "trainer/program/training_program.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {

namespace {

std::string RulesText(const VerifierConfig& verifier) {
  return absl::AsciiStrToLower(VerifierConfig::Rules_Name(verifier.rules()));
}

using Json = nlohmann::ordered_json;

Json ToJson(const Metrics& metrics) {
  return Json{{"valid", metrics.valid},     {"compiled", metrics.compiled},
              {"correct", metrics.correct}, {"fast_1", metrics.fast_1},
              {"fast_2", metrics.fast_2},   {"mean_speedup", metrics.mean_speedup}};
}

// Both estimators of pass@k.
void AddEstimates(const TaskMetrics& metrics, Json* json) {
  for (const auto& [at, figures] : metrics.pass_at) {
    (*json)["pass_at"][std::to_string(at)] = ToJson(figures);
  }
  for (const auto& [at, figures] : metrics.max_over_first) {
    (*json)["max_over_first"][std::to_string(at)] = ToJson(figures);
  }
}

absl::Status WriteOutput(const BenchmarkOptions& options, const BenchmarkResult& result) {
  if (options.output.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(
      WriteFileAtomic(options.output + "/samples.jsonl", RecordsToText(result.details.sampled)));
  return WriteFileAtomic(options.output + "/results.json", BenchmarkJson(result, options));
}

std::vector<std::shared_ptr<const PreparedTask>> Share(std::vector<PreparedTask> tasks) {
  std::vector<std::shared_ptr<const PreparedTask>> shared;
  for (PreparedTask& task : tasks) {
    shared.push_back(std::make_shared<const PreparedTask>(std::move(task)));
  }
  return shared;
}

// Generates and verifies samples, with a progress bar. Returns nullopt if a stop was requested.
absl::StatusOr<std::optional<Evaluator::Finished>> Evaluate(Evaluator* evaluator,
                                                            const Verification& verification,
                                                            double timeout_s,
                                                            const SignalHandler& stop) {
  const absl::Time deadline = absl::Now() + absl::Seconds(timeout_s);
  ASSIGN_OR_RETURN(const Evaluator::Pending pending, evaluator->Start(0));
  ProgressOptions options;
  options.label = "samples";
  options.total = pending.num_samples();
  auto bar = std::make_unique<Progress>(options);
  const absl::Status status = evaluator->WaitVerified(pending, deadline, [&] {
    bar->Tick(pending.verified(), absl::StrCat("generated ", pending.generated()));
    return !stop.requested() && verification.Health().ok();
  });
  bar.reset();
  RETURN_IF_ERROR(verification.Health());
  if (stop.requested()) return std::nullopt;
  RETURN_IF_ERROR(status);
  ASSIGN_OR_RETURN(Evaluator::Finished finished, evaluator->Gather(pending));
  return finished;
}

// The inputs of the engine and the evaluator. Ranks other than the first have only the policy.
struct Prepared {
  Verification verification;
  Policy policy;
  int max_prompt_tokens = 0;
  int max_response_tokens = 0;
  int threads = 0;
  PreparedTasks tasks;
  ResponseStyle style;
};

// Loads the policy, or this rank's shard of it.
absl::Status LoadModel(const BenchmarkOptions& options, ProcessGroup* ranks, Prepared* prepared) {
  PolicyConfig config = options.policy;
  const bool tensor_parallel = ranks->size() > 1;
  if (tensor_parallel) {
    ASSIGN_OR_RETURN(const at::Device device, ResolveDevice(config.device(), ranks->local_rank()));
    // The tensor-parallel engine's GPU kernels are for bfloat16.
    if (device.is_cuda()) config.set_train_dtype(BFLOAT16);
  }
  const int threads = ThreadsFor(options.threads, *ranks);
  ASSIGN_OR_RETURN(prepared->policy, LoadPolicy(config, {.threads = threads,
                                                         .ranks = tensor_parallel ? ranks : nullptr,
                                                         .tensor_parallel = tensor_parallel,
                                                         .trains = false}));
  prepared->threads = threads;
  const int64_t positions = prepared->policy.config.max_positions;
  prepared->max_prompt_tokens = options.max_prompt_tokens;
  if (options.max_prompt_tokens <= 0) {
    prepared->max_prompt_tokens = static_cast<int>(std::min<int64_t>(2048, positions / 4));
  }
  prepared->max_response_tokens = options.max_response_tokens;
  if (options.max_response_tokens <= 0) {
    const int64_t left = positions - prepared->max_prompt_tokens;
    prepared->max_response_tokens = static_cast<int>(std::clamp<int64_t>(left, 1, 16384));
  }
  return absl::OkStatus();
}

absl::StatusOr<Prepared> Prepare(const BenchmarkOptions& options, ProcessGroup* ranks) {
  Prepared prepared;
  if (options.k < 1) return absl::InvalidArgumentError("--k must be at least 1");
  if (!ranks->is_root()) {
    RETURN_IF_ERROR(LoadModel(options, ranks, &prepared));
    return prepared;
  }
  VerificationOptions verification_options;
  verification_options.config = options.verifier;
  verification_options.seed = options.seed;
  // Only this rank verifies, so its workers use the cores of all ranks.
  verification_options.cores = ThreadsFor(/*configured=*/0, *ProcessGroup::SingleProcess());
  if (!options.output.empty()) {
    RETURN_IF_ERROR(CreateDirectories(options.output));
    verification_options.journal = options.output + "/verdicts.jsonl";
  }
  ASSIGN_OR_RETURN(prepared.verification, StartVerification(verification_options));
  RETURN_IF_ERROR(LoadModel(options, ranks, &prepared));
  ASSIGN_OR_RETURN(prepared.tasks,
                   LoadPreparedTasks({options.tasks}, options.prompt, *prepared.policy.tokenizer,
                                     prepared.max_prompt_tokens, prepared.policy.chat.get()));
  if (options.max_tasks > 0 && static_cast<int>(prepared.tasks.tasks.size()) > options.max_tasks) {
    prepared.tasks.tasks.resize(options.max_tasks);
  }
  const Tokenizer& tokenizer = *prepared.policy.tokenizer;
  const std::vector<PreparedTask>& tasks = prepared.tasks.tasks;
  ASSIGN_OR_RETURN(
      const ResponseStyleChoice choice,
      ChoosePolicyStyle(options.response_style, options.code_block, prepared.policy.folder,
                        tasks.front(), tokenizer, prepared.policy.chat.get()));
  prepared.style = choice.style;
  std::fprintf(stderr, "Prompts: %s.\nChat template: %s.\n%s.\nRules: %s, %s.\n",
               DescribePrompts(options.prompt, tasks, tokenizer).c_str(),
               prepared.policy.chat->source().c_str(), choice.Sentence().c_str(),
               RulesText(options.verifier).c_str(),
               DescribeJudge(options.verifier.judge()).c_str());
  return prepared;
}

// A hash of all that the samples depend on beside their prompts and indices.
std::string RunName(const BenchmarkOptions& options, const std::vector<int32_t>& stop_tokens,
                    const Prepared& prepared) {
  std::string text = absl::StrCat(options.policy.SerializeAsString(), " ", options.temperature, " ",
                                  options.top_p, " ", prepared.max_response_tokens, " ",
                                  options.seed, " ", absl::StrJoin(stop_tokens, ","));
  const std::string folder = prepared.policy.folder;
  for (const std::string& name : ListDirectory(folder).value_or(std::vector<std::string>())) {
    struct stat info = {};
    if (stat(JoinPath(folder, name).c_str(), &info) != 0) continue;
    absl::StrAppend(&text, "\n", name, " ", info.st_size, " ", info.st_mtim.tv_sec, ".",
                    info.st_mtim.tv_nsec);
  }
  return Sha256Hex(text).substr(0, 16);
}

}  // namespace

absl::StatusOr<std::optional<BenchmarkResult>> RunBenchmark(const BenchmarkOptions& options,
                                                            const SignalHandler& stop,
                                                            ProcessGroup* ranks) {
  absl::StatusOr<Prepared> prepared = Prepare(options, ranks);
  RETURN_IF_ERROR(SyncStartup(prepared.status(), ranks));
  const Policy& policy = prepared->policy;
  const Verification& verification = prepared->verification;
  PreparedTasks& tasks = prepared->tasks;
  const EngineContext context = {
      .max_length = int64_t{prepared->max_prompt_tokens} + prepared->max_response_tokens,
      .cpu_threads = prepared->threads};
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                   StartEngine(policy, options.engine, context, ranks));
  if (engine == nullptr) return std::nullopt;
  // Only rank 0 continues; on the other ranks StartEngine has run the engine's steps.
  const std::unique_ptr<ProcessGroup> alone = ProcessGroup::SingleProcess();
  if (options.preflight) {
    PreflightSettings preflight;
    if (!options.output.empty()) preflight.journal = options.output + "/preflight.jsonl";
    RETURN_IF_ERROR(RemoveUnsoundTasks(verification, preflight, alone.get(), &tasks));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<InfraErrorJournal> infra_errors,
                   InfraErrorJournal::Open(""));
  SampleRunner runner(engine.get(), verification.verifier.get(), policy.tokenizer.get(),
                      prepared->style, infra_errors.get());
  std::unique_ptr<SampleJournal> kept;
  if (!options.output.empty()) {
    ASSIGN_OR_RETURN(kept, SampleJournal::Open(options.output + "/generated.jsonl",
                                               RunName(options, policy.stop_tokens, *prepared),
                                               options.output + "/verdicts.jsonl"));
    runner.KeepSamples(kept.get());
  }
  EvaluatorOptions eval;
  eval.samples = options.k;
  eval.greedy = false;
  eval.seed = options.seed;
  eval.sampling.temperature = options.temperature;
  eval.sampling.top_p = options.top_p;
  eval.sampling.max_tokens = prepared->max_response_tokens;
  eval.sampling.stop_ids = policy.stop_tokens;
  Evaluator evaluator(eval, Share(std::move(tasks.tasks)), &runner, alone.get());
  ASSIGN_OR_RETURN(std::optional<Evaluator::Finished> finished,
                   Evaluate(&evaluator, verification, options.timeout_s, stop));
  BenchmarkResult result;
  result.style = prepared->style;
  result.problems = std::move(tasks.problems);
  if (!finished.has_value()) {
    result.stopped = true;
    return result;
  }
  result.details = *std::move(finished);
  MetricsBuilder builder;
  for (const SampleRecord& record : result.details.sampled) {
    builder.Add(record.verdict);
    if (result.first_infra_error.empty() && IsInfraError(record.verdict)) {
      result.first_infra_error = record.verdict.outcome().message();
    }
  }
  result.best = builder.MaxOverSamples();
  if (result.best.tasks == 0) {
    return absl::UnavailableError(absl::StrCat(
        "no sample could be verified because of infrastructure errors: ", result.best.infra_errors,
        " samples of ", result.best.tasks_left_out,
        " tasks were dropped. The first: ", result.first_infra_error));
  }
  result.written = WriteOutput(options, result);
  return result;
}

std::string BenchmarkTable(const BenchmarkResult& result, int k) {
  const std::string note = result.best.modelled ? " (modelled)" : "";
  const auto row = [](const std::string& name, const Metrics& m) {
    return std::vector<std::string>{name,
                                    Percent(m.valid),
                                    Percent(m.compiled),
                                    Percent(m.correct),
                                    Percent(m.fast_1),
                                    Percent(m.fast_2),
                                    absl::StrFormat("%.2fx", m.mean_speedup)};
  };
  std::vector<std::vector<std::string>> rows;
  const EvaluationResult& all = result.details.result;
  for (const auto& [at, metrics] : all.pass_at) {
    if (at != k) rows.push_back(row(absl::StrCat("pass@", at), metrics));
  }
  // The paper's pass@k.
  const auto max_name = [k](int at) {
    return at == k ? absl::StrCat("max over ", k) : absl::StrCat("max over the first ", at);
  };
  for (const auto& [at, metrics] : all.max_over_first) {
    if (at != k && at > 1) rows.push_back(row(max_name(at), metrics));
  }
  rows.push_back(row(max_name(k), result.best));
  for (const auto& [level, of_level] : all.levels) {
    if (all.levels.size() < 2) break;  // one level is the total
    for (const auto& [at, metrics] : of_level.max_over_first) {
      if (at == 1) continue;
      rows.push_back(
          row(absl::StrCat("level ", level, " (", of_level.tasks, "): ", max_name(at)), metrics));
    }
  }
  std::string text =
      MarkdownTable({absl::StrCat(result.best.tasks, " tasks, %"), "valid", "compiled", "correct",
                     "fast_1" + note, "fast_2" + note, "mean speedup" + note},
                    rows);
  if (result.best.infra_errors > 0) {
    absl::StrAppend(
        &text, result.best.infra_errors,
        " samples could not be verified because of infrastructure errors and were dropped",
        result.best.tasks_left_out > 0
            ? absl::StrCat(", with them all of ", result.best.tasks_left_out, " tasks")
            : "",
        ". The first: ", result.first_infra_error, "\n");
  }
  return text;
}

std::string BenchmarkJson(const BenchmarkResult& result, const BenchmarkOptions& options) {
  Json json = {{"model", options.policy.dir()},      {"task_folder", options.tasks},
               {"tasks", result.best.tasks},         {"k", options.k},
               {"temperature", options.temperature}, {"seed", options.seed}};
  json["prompt"] = options.prompt.name();
  json["response_style"] = std::string(PlanStyleName(result.style.plan));
  json["code_block"] = std::string(CodeBlockName(result.style.code_block));
  json.update(ToJson(result.best));
  json["modelled"] = result.best.modelled;
  AddEstimates(result.details.result, &json);
  for (const auto& [level, metrics] : result.details.result.levels) {
    Json& of_level = json["levels"][std::to_string(level)];
    of_level["tasks"] = metrics.tasks;
    AddEstimates(metrics, &of_level);
  }
  json["samples"] = result.best.samples;
  json["infra_errors"] = result.best.infra_errors;
  json["preflight"] = options.preflight;
  json["rules"] = RulesText(options.verifier);
  json["judge"] = DescribeJudge(options.verifier.judge());
  json["tasks_left_out"] = result.best.tasks_left_out;
  json["problems"] = result.problems;
  return json.dump(2) + "\n";
}

}  // namespace tritonrl
