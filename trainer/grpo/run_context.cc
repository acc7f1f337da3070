#include "trainer/grpo/run_context.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "trainer/config/text_proto.h"
#include "trainer/grpo/engine_setup.h"
#include "trainer/grpo/verification.h"
#include "trainer/learner/recompute_plan.h"
#include "trainer/program/training_program.h"

namespace tritonrl {
namespace {

// A run may be made longer, and fields that do not change what is computed may differ; all else
// must be as it was when the run began.
absl::Status CheckSameRun(const std::string& path, const GrpoHrdConfig& config) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  GrpoHrdConfig stored;
  RETURN_IF_ERROR(ParseTextProto(text, path, &stored));
  stored.set_steps(std::max(stored.steps(), config.steps()));
  stored.set_output_dir(config.output_dir());
  stored.set_threads(config.threads());
  stored.set_step_timeout_s(config.step_timeout_s());
  stored.set_collective_timeout_s(config.collective_timeout_s());
  stored.set_memory_gib(config.memory_gib());
  stored.set_rollout_ranks(config.rollout_ranks());
  stored.mutable_sampling()->set_enable_sleep_mode(config.sampling().enable_sleep_mode());
  *stored.mutable_checkpoint() = config.checkpoint();
  stored.mutable_verifier()->set_workers(config.verifier().workers());
  if (FullText(stored) == FullText(config)) return WriteFileAtomic(path, FullText(config));
  return absl::OkStatus();  // RunDir::WriteConfig names the first difference
}

// Rank 0 opens the folder; the others learn whether that worked.
absl::Status OpenRunDir(GrpoRunContext* parts) {
  absl::Status status;
  if (parts->ranks->is_root()) {
    status = [&]() -> absl::Status {
      const bool resume = parts->config.checkpoint().resume();
      ASSIGN_OR_RETURN(parts->run_dir,
                       RunDir::Open(parts->paths.dir, resume ? RunDir::Mode::kCreateOrResume
                                                             : RunDir::Mode::kCreate));
      if (parts->run_dir->resumed()) {
        RETURN_IF_ERROR(CheckSameRun(parts->run_dir->config_path(), parts->config));
      }
      RETURN_IF_ERROR(CreateDirectories(parts->paths.JournalDir()));
      return parts->run_dir->WriteConfig(FullText(parts->config));
    }();
  }
  std::string message(status.message());
  RETURN_IF_ERROR(parts->ranks->Broadcast(&message));
  if (!status.ok()) return status;
  if (!message.empty()) return absl::FailedPreconditionError(message);
  return absl::OkStatus();
}

LearnerOptions MakeLearnerOptions(const GrpoRunContext& parts) {
  const GrpoHrdConfig& config = parts.config;
  LearnerOptions options;
  options.objective = config.objective();
  options.optimizer = config.optimizer();
  options.micro_batch_tokens = config.micro_batch_tokens();
  if (options.micro_batch_tokens == 0) {
    options.micro_batch_tokens = parts.policy.device().is_cpu() ? 4096 : 32768;
  }
  options.temperature = config.sampling().temperature();
  options.seed = config.seed();
  options.total_steps = config.steps();
  options.nonfinite_gradients = parts.paths.NonFiniteGradients();
  return options;
}

absl::Status LoadLearner(const LearnerOptions& options, GrpoRunContext* parts) {
  const GrpoHrdConfig& config = parts->config;
  const Policy& policy = parts->policy;
  ProcessGroup* learners = parts->placement->learners();
  ASSIGN_OR_RETURN(parts->memory_plan,
                   PlanRecompute({.micro_batch_tokens = options.micro_batch_tokens,
                                  .max_sequence_tokens = config.sampling().max_prompt_tokens() +
                                                         config.sampling().max_response_tokens(),
                                  .memory_gib = config.memory_gib(),
                                  .zero_stage = config.optimizer().zero_stage()},
                                 policy, learners));
  parts->optimizer = std::make_unique<AdamW>(config.optimizer(), policy.weights, learners);
  parts->learner = std::make_unique<Learner>(options, &policy, parts->optimizer.get(), learners);
  parts->startup_timer.EndPhase("optimizer");
  return absl::OkStatus();
}

absl::Status LoadModel(GrpoRunContext* parts) {
  const GrpoHrdConfig& config = parts->config;
  RankPlacement& placement = *parts->placement;
  const int threads = ThreadsFor(config.threads(), *parts->ranks);
  at::set_num_threads(threads);
  ASSIGN_OR_RETURN(parts->policy,
                   LoadPolicy(config.policy(), {.threads = threads,
                                                .ranks = parts->ranks,
                                                .startup_timer = &parts->startup_timer}));
  const Policy& policy = parts->policy;
  RETURN_IF_ERROR(placement.InitWeightSync(policy.weights));
  parts->startup_timer.EndPhase("weight sync setup");
  const LearnerOptions options = MakeLearnerOptions(*parts);
  if (placement.learns() && config.objective().kl_coefficient() > 0) {
    parts->reference = std::make_unique<ReferencePolicy>(
        policy, threads, options.micro_batch_tokens, options.temperature);
  }
  const bool releases = config.sampling().enable_sleep_mode();
  if (placement.generates()) {
    EngineSetup setup = MakeEngineSetup(config.sampling(), threads);
    if (releases) {
      setup.spare_bytes =
          TrainingStateBytes(config.optimizer().zero_stage(), policy, *parts->ranks);
    }
    ASSIGN_OR_RETURN(parts->engine, StartEngine(policy, setup));
  }
  parts->startup_timer.EndPhase("engine");
  if (!placement.learns()) return absl::OkStatus();
  // The learner's steps have the memory that is theirs at its start already.
  if (releases) RETURN_IF_ERROR(parts->engine->BeginWeightUpdate());
  RETURN_IF_ERROR(LoadLearner(options, parts));
  if (releases) parts->engine->EndWeightUpdate(0);
  return absl::OkStatus();
}

absl::Status LoadAllTasks(GrpoRunContext* parts) {
  const GrpoHrdConfig& config = parts->config;
  const PromptStyle style =
      config.tasks().prompt_style() == TasksConfig::FULL ? PromptStyle::kFull : PromptStyle::kMini;
  const Tokenizer& tokenizer = *parts->policy.tokenizer;
  const std::vector<std::string> train(config.tasks().train().begin(),
                                       config.tasks().train().end());
  const std::vector<std::string> held_out(config.tasks().held_out().begin(),
                                          config.tasks().held_out().end());
  PreparedTasks tasks;
  if (!train.empty() || config.tasks().generated_share() < 1) {
    ASSIGN_OR_RETURN(
        tasks, LoadPreparedTasks(train, style, tokenizer, config.sampling().max_prompt_tokens()));
    if (config.tasks().preflight()) {
      RETURN_IF_ERROR(RemoveUnsoundTasks(parts->verification, parts->ranks, &tasks));
    }
  }
  parts->training_tasks = static_cast<int>(tasks.tasks.size());
  parts->notes = tasks.problems;
  PromptSamplerOptions options;
  options.seed = config.seed();
  options.level_mixture.assign(config.tasks().level_mixture().begin(),
                               config.tasks().level_mixture().end());
  options.generated_share = config.tasks().generated_share();
  options.style = style;
  ASSIGN_OR_RETURN(PromptSampler prompts,
                   PromptSampler::Make(options, std::move(tasks.tasks), &tokenizer));
  parts->prompts = std::move(prompts);

  std::vector<std::shared_ptr<const PreparedTask>> evaluated;
  if (!held_out.empty()) {
    ASSIGN_OR_RETURN(
        PreparedTasks loaded,
        LoadPreparedTasks(held_out, style, tokenizer, config.sampling().max_prompt_tokens()));
    if (config.tasks().preflight()) {
      RETURN_IF_ERROR(RemoveUnsoundTasks(parts->verification, parts->ranks, &loaded));
    }
    for (PreparedTask& task : loaded.tasks) {
      if (config.eval().max_tasks() > 0 &&
          static_cast<int>(evaluated.size()) == config.eval().max_tasks()) {
        break;
      }
      evaluated.push_back(std::make_shared<const PreparedTask>(std::move(task)));
    }
    parts->notes.insert(parts->notes.end(), loaded.problems.begin(), loaded.problems.end());
  }
  parts->held_out_tasks = static_cast<int>(evaluated.size());

  EvaluatorOptions eval;
  eval.samples = config.eval().samples();
  eval.sampling = MakeSamplingSettings(config.sampling(), parts->policy);
  eval.sampling.temperature = config.eval().temperature();
  eval.sampling.top_p = 1;
  eval.sampling.top_k = 0;
  eval.greedy = config.eval().greedy();
  eval.seed = config.seed();
  eval.share = parts->placement->Share(parts->held_out_tasks);
  parts->evaluator =
      std::make_unique<Evaluator>(eval, std::move(evaluated), parts->runner.get(), parts->ranks);
  return absl::OkStatus();
}

// "triton-3.6.0.dist-info" -> "3.6.0"; empty when the packages are the interpreter's own.
std::string PackageVersion(const std::string& site, const std::string& package) {
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(site);
  if (!names.ok()) return "";
  for (const std::string& name : *names) {
    const std::string prefix = package + "-", suffix = ".dist-info";
    if (absl::StartsWith(name, prefix) && absl::EndsWith(name, suffix)) {
      return name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
    }
  }
  return "";
}

absl::Status WriteVersions(GrpoRunContext* parts) {
  std::map<std::string, std::string> entries = {
      {"device", DescribeDevice(parts->policy.device())},
      {"verification", parts->verification.backend->name()},
      {"times", parts->verification.backend->modelled() ? "modelled" : "measured"},
      {"ranks", absl::StrCat(parts->ranks->size())},
      {"rollout ranks", absl::StrCat(parts->config.rollout_ranks())}};
  if (absl::StatusOr<PythonEnv> python = FindPythonEnv(); python.ok()) {
    entries["python"] = python->interpreter;
    for (const char* package : {"torch", "triton", "numpy"}) {
      entries[package] = PackageVersion(python->site_packages, package);
    }
  }
  return parts->run_dir->WriteVersions(entries);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpoRunContext>> LoadGrpoRunContext(const GrpoHrdConfig& config,
                                                                   ProcessGroup* ranks) {
  auto parts = std::make_unique<GrpoRunContext>();
  parts->config = config;
  parts->ranks = ranks;
  parts->paths.dir = UserPath(config.output_dir());
  ASSIGN_OR_RETURN(parts->placement, RankPlacement::Make(config.rollout_ranks(), ranks));
  RETURN_IF_ERROR(OpenRunDir(parts.get()));
  parts->startup_timer.EndPhase("run folder");
  VerificationOptions verification;
  verification.config = config.verifier();
  // Nothing is verified there, but tasks before the first step on rank 0.
  const bool preflight = config.tasks().preflight() && ranks->is_root();
  if (!parts->placement->generates() && !preflight) verification.config.set_workers(1);
  verification.seed = config.seed();
  verification.journal = parts->paths.VerdictJournal(ranks->rank());
  verification.ranks_here = ranks->local_size();
  ASSIGN_OR_RETURN(parts->verification, StartVerification(verification));
  parts->startup_timer.EndPhase("verification");
  RETURN_IF_ERROR(LoadModel(parts.get()));
  ASSIGN_OR_RETURN(parts->infra_errors,
                   InfraErrorJournal::Open(parts->paths.InfraErrorJournal(ranks->rank())));
  parts->runner =
      std::make_unique<SampleRunner>(parts->engine.get(), parts->verification.verifier.get(),
                                     parts->policy.tokenizer.get(), parts->infra_errors.get());
  RETURN_IF_ERROR(LoadAllTasks(parts.get()));
  parts->startup_timer.EndPhase("tasks");
  if (ranks->is_root()) RETURN_IF_ERROR(WriteVersions(parts.get()));
  return parts;
}

}  // namespace tritonrl
