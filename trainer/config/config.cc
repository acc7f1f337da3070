#include "trainer/config/config.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "rollout/engine/engine_config.h"
#include "tasks/response_style.h"
#include "trainer/config/text_proto.h"

namespace tritonrl {
namespace {

// Keeps the error of the first failed check.
class Checks {
 public:
  // `value` must be in [low, high]; `high` may be infinite.
  void Range(const char* field, double value, double low, double high) {
    if (!status_.ok() || (value >= low && value <= high)) return;
    status_ = absl::InvalidArgumentError(
        std::isinf(high)
            ? absl::StrCat(field, " is ", value, "; it must be at least ", low)
            : absl::StrCat(field, " is ", value, "; it must lie between ", low, " and ", high));
  }
  void Positive(const char* field, double value) {
    if (!status_.ok() || value > 0) return;
    status_ =
        absl::InvalidArgumentError(absl::StrCat(field, " is ", value, "; it must be above 0"));
  }
  void That(bool holds, const std::string& sentence) {
    if (status_.ok() && !holds) status_ = absl::InvalidArgumentError(sentence);
  }
  void Ok(const absl::Status& status) { status_.Update(status); }
  absl::Status status() const { return status_; }

 private:
  absl::Status status_;
};

constexpr double kInfinity = INFINITY;

void CheckPolicy(const PolicyConfig& policy, Checks* checks) {
  checks->That(!policy.dir().empty(),
               "policy.dir is empty; name the folder that holds config.json");
  const std::string& device = policy.device();
  checks->That(
      device == "auto" || device == "cpu" || device == "cuda" || absl::StartsWith(device, "cuda:"),
      absl::StrCat("policy.device is '", device, "'; it must be auto, cpu, cuda or cuda:N"));
}

void CheckOptimizer(const OptimizerConfig& o, Checks* checks) {
  checks->Positive("optimizer.learning_rate", o.learning_rate());
  checks->Range("optimizer.warmup_steps", o.warmup_steps(), 0, kInfinity);
  checks->Range("optimizer.warmup_share", o.warmup_share(), 0, 1);
  checks->That(o.warmup_share() == 0 || o.warmup_steps() == 0,
               "optimizer.warmup_steps and optimizer.warmup_share are both set; set one of the two "
               "to 0");
  checks->Range("optimizer.final_fraction", o.final_fraction(), 0, 1);
  checks->Range("optimizer.beta1", o.beta1(), 0, 0.999999999);
  checks->Range("optimizer.beta2", o.beta2(), 0, 0.999999999);
  checks->Positive("optimizer.adam_epsilon", o.adam_epsilon());
  checks->Range("optimizer.weight_decay", o.weight_decay(), 0, kInfinity);
  checks->Range("optimizer.clip_norm", o.clip_norm(), 0, kInfinity);
  checks->Range("optimizer.max_consecutive_skipped", o.max_consecutive_skipped(), 1, kInfinity);
  checks->Range("optimizer.zero_stage", o.zero_stage(), 1, 2);
}

void CheckCheckpoint(const CheckpointConfig& c, Checks* checks) {
  checks->Range("checkpoint.every", c.every(), 0, kInfinity);
  checks->Range("checkpoint.keep", c.keep(), 1, kInfinity);
}

void CheckObjective(const ObjectiveConfig& o, Checks* checks) {
  checks->Range("objective.alpha", o.alpha(), 0, 1);
  checks->Range("objective.epsilon", o.epsilon(), 0, 1);
  checks->Range("objective.beta", o.beta(), 0, 1);
  checks->Positive("objective.speedup_clip", o.speedup_clip());
  checks->Range("objective.kl_coefficient", o.kl_coefficient(), 0, kInfinity);
  checks->That(o.importance_sampling_cap() == 0 || o.importance_sampling_cap() >= 1,
               absl::StrCat("objective.importance_sampling_cap is ", o.importance_sampling_cap(),
                            "; it must be 0 (off) or at least 1"));
  checks->Range("objective.epochs_per_batch", o.epochs_per_batch(), 1, kInfinity);
  checks->Range("objective.optimizer_steps_per_epoch", o.optimizer_steps_per_epoch(), 1, kInfinity);
}

void CheckSampling(const SamplingConfig& s, Checks* checks) {
  checks->That(s.temperature() > 0,
               absl::StrCat("sampling.temperature is ", s.temperature(),
                            "; training needs a temperature above 0, as a greedy policy gives "
                            "groups of equal samples"));
  checks->That(s.top_p() > 0 && s.top_p() <= 1,
               absl::StrCat("sampling.top_p is ", s.top_p(), "; it must lie in (0, 1]"));
  checks->Range("sampling.top_k", s.top_k(), 0, kInfinity);
  checks->Range("sampling.max_prompt_tokens", s.max_prompt_tokens(), 1, kInfinity);
  checks->Range("sampling.max_response_tokens", s.max_response_tokens(), 1, kInfinity);
  checks->Ok(ValidateEngineConfig(s.engine(), "sampling.engine."));
  checks->That(!s.async_rollout() || !s.engine().batch_invariant(),
               "sampling.engine.batch_invariant is on, but with sampling.async_rollout samples "
               "depend on the moment at which the weights change; turn one of the two off");
  checks->That(s.async_rollout() || !s.keep_stale_kv_cache(),
               "sampling.keep_stale_kv_cache is for sampling.async_rollout, which is off");
  checks->That(!s.engine().enable_sleep_mode() || !s.keep_stale_kv_cache(),
               "sampling.engine.enable_sleep_mode frees old keys and values in each update, and "
               "sampling.keep_stale_kv_cache keeps them; turn one of the two off");
}

// FP8 in the engine means that another policy draws the tokens; without importance weights the
// learner would treat them as its own.
void CheckDrawnInFp8(const GrpoHrdConfig& c, Checks* checks) {
  const EngineConfig& engine = c.sampling().engine();
  for (const auto& [on, field] : {std::pair(engine.fp8_kv_cache(), "sampling.engine.fp8_kv_cache"),
                                  std::pair(engine.fp8_weights(), "sampling.engine.fp8_weights")}) {
    checks->That(
        !on || c.objective().importance_sampling_cap() > 0,
        absl::StrCat(field,
                     " is on, but objective.importance_sampling_cap is 0; set it to 2, say, "
                     "as tokens are then drawn by another policy than the learner's"));
  }
}

void CheckTasks(const TasksConfig& tasks, Checks* checks) {
  checks->Range("tasks.generated_share", tasks.generated_share(), 0, 1);
  checks->That(tasks.train_size() > 0 || tasks.generated_share() >= 1,
               "tasks.train is empty; name a folder of task files to train on");
  double sum = 0;
  for (const double p : tasks.level_mixture()) {
    checks->Range("tasks.level_mixture", p, 0, kInfinity);
    sum += p;
  }
  checks->That(tasks.level_mixture_size() == 0 || sum > 0,
               "tasks.level_mixture has no entry above 0, so no task could be drawn");
  checks->Positive("tasks.preflight_wait_s", tasks.preflight_wait_s());
  checks->Ok(
      AddContext(CheckResponseStyleNames(tasks.response_style(), tasks.code_block()), "tasks"));
  checks->That(tasks.prompt_style() == TasksConfig::FULL ||
                   (tasks.prompt_file().empty() && tasks.eval_prompt_file().empty()),
               "tasks.prompt_file and tasks.eval_prompt_file are for tasks.prompt_style FULL, "
               "which is MINI");
}

void CheckVerifier(const VerifierConfig& v, Checks* checks) {
  checks->Range("verifier.workers", v.workers(), 0, 1024);
  checks->Range("verifier.trials", v.trials(), 1, kInfinity);
  checks->Positive("verifier.tolerance", v.tolerance());
  checks->That(v.device_model() == "l40s" || v.device_model() == "l40s_mini",
               absl::StrCat("verifier.device_model is '", v.device_model(),
                            "'; it must be l40s or l40s_mini"));
  checks->That(v.servers().empty() || v.backend() != VerifierConfig::AUTO,
               "verifier.servers is set but verifier.backend is AUTO; say NATIVE or CUDA, as "
               "the servers have it");
  checks->That(v.servers().empty() || v.workers() > 0,
               "verifier.servers is set but verifier.workers is 0; say how many candidates to send "
               "at the same time");
  checks->Range("verifier.retries", v.retries(), 0, kInfinity);
  checks->Positive("verifier.limits.seconds", v.limits().seconds());
  checks->Range("verifier.limits.memory_mib", v.limits().memory_mib(), 64, kInfinity);
  checks->Range("verifier.limits.processes", v.limits().processes(), 1, kInfinity);
  checks->Range("verifier.limits.output_bytes", v.limits().output_bytes(), 0, kInfinity);
  checks->Range("verifier.limits.disk_mib", v.limits().disk_mib(), 1, kInfinity);
  checks->Positive("verifier.judge.timeout_s", v.judge().timeout_s());
  checks->Range("verifier.judge.retries", v.judge().retries(), 0, kInfinity);
  checks->Range("verifier.judge.parallel", v.judge().parallel(), 1, 1024);
  checks->That(v.judge().endpoint().empty() || !v.judge().model().empty(),
               "verifier.judge.endpoint is set but verifier.judge.model is empty; name the model");
  checks->Ok(CheckJudgeMode(v.judge()));
}

constexpr char kBaseOnlyInFiles[] =
    "base is set on the command line, but works in a configuration file only; name that file by "
    "--config";

template <typename Config>
absl::StatusOr<Config> Load(const std::string& path, const std::vector<std::string>& overrides,
                            absl::Status (*validate)(const Config&)) {
  Config config;
  if (!path.empty()) RETURN_IF_ERROR(LoadTextProtoWithBase(path, &config));
  for (const std::string& assignment : overrides) {
    RETURN_IF_ERROR(ApplyOverride(assignment, &config));
  }
  RETURN_IF_ERROR(validate(config));
  return config;
}

}  // namespace

absl::Status CheckJudgeMode(const JudgeConfig& judge) {
  if (judge.mode() == JudgeConfig::NONE && !judge.endpoint().empty()) {
    return absl::InvalidArgumentError(
        "verifier.judge.endpoint is set, but verifier.judge.mode is NONE; set "
        "verifier.judge.mode=REQUIRED to use the judge, or leave the endpoint empty");
  }
  if (judge.mode() != JudgeConfig::REQUIRED || !judge.endpoint().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "verifier.judge.mode is REQUIRED, but verifier.judge.endpoint is empty; set "
      "verifier.judge.endpoint (and verifier.judge.model) to the judge's service, or "
      "verifier.judge.mode=NONE to go without a judge");
}

bool HasJudge(const JudgeConfig& judge) { return !judge.endpoint().empty(); }

absl::StatusOr<SftConfig> LoadSftConfig(const std::string& path,
                                        const std::vector<std::string>& overrides) {
  return Load<SftConfig>(path, overrides, ValidateSftConfig);
}

absl::StatusOr<GrpoHrdConfig> LoadGrpoHrdConfig(const std::string& path,
                                                const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(GrpoHrdConfig config,
                   Load<GrpoHrdConfig>(path, overrides, ValidateGrpoHrdConfig));
  EngineConfig* const engine = config.mutable_sampling()->mutable_engine();
  // Fewer sequences than the engine's default on a GPU, because the learner needs memory there too.
  if (!engine->has_max_num_seqs()) engine->set_max_num_seqs(64);
  return config;
}

absl::Status ValidateSftConfig(const SftConfig& c) {
  Checks checks;
  CheckPolicy(c.policy(), &checks);
  CheckOptimizer(c.optimizer(), &checks);
  CheckCheckpoint(c.checkpoint(), &checks);
  checks.That(c.train_data_size() > 0 || c.generated().samples() > 0,
              "train_data is empty and generated.samples is 0; name a data file or let the "
              "generator make the data");
  const auto& g = c.generated();
  checks.Range("generated.samples", static_cast<double>(g.samples()), 0, kInfinity);
  checks.Range("generated.eval_samples", static_cast<double>(g.eval_samples()), 0, kInfinity);
  checks.Range("generated.hard_rate", g.hard_rate(), 0, 1);
  checks.Range("generated.easy_rate", g.easy_rate(), 0, 1);
  checks.Range("generated.structural_rate", g.structural_rate(), 0, 1);
  checks.Range("batch_size", c.batch_size(), 1, kInfinity);
  checks.Range("steps", static_cast<double>(c.steps()), 0, kInfinity);
  checks.That(c.steps() > 0 || c.epochs() > 0, "steps is 0 and epochs is not above 0; set either");
  checks.Range("max_sequence_tokens", c.max_sequence_tokens(), 2, kInfinity);
  checks.Range("micro_batch_tokens", c.micro_batch_tokens(), 0, kInfinity);
  checks.Range("bucket_batches", c.bucket_batches(), 1, kInfinity);
  checks.Range("eval_every", c.eval_every(), 0, kInfinity);
  checks.Range("eval_samples", c.eval_samples(), 0, kInfinity);
  checks.Range("log_every", c.log_every(), 1, kInfinity);
  checks.Range("threads", c.threads(), 0, 4096);
  checks.Range("data_threads", c.data_threads(), 0, 4096);
  checks.Positive("collective_timeout_s", c.collective_timeout_s());
  checks.Range("memory_gib", c.memory_gib(), 0, kInfinity);
  checks.That(!c.output_dir().empty(), "output_dir is empty; name the run folder");
  checks.That(c.base().empty(), kBaseOnlyInFiles);
  return checks.status();
}

absl::Status ValidateGrpoHrdConfig(const GrpoHrdConfig& c) {
  Checks checks;
  CheckPolicy(c.policy(), &checks);
  CheckTasks(c.tasks(), &checks);
  CheckObjective(c.objective(), &checks);
  CheckSampling(c.sampling(), &checks);
  CheckDrawnInFp8(c, &checks);
  CheckOptimizer(c.optimizer(), &checks);
  CheckVerifier(c.verifier(), &checks);
  CheckCheckpoint(c.checkpoint(), &checks);
  checks.Range("eval.samples", c.eval().samples(), 0, kInfinity);
  checks.Range("eval.every", c.eval().every(), 0, kInfinity);
  checks.Positive("eval.temperature", c.eval().temperature());
  checks.Range("eval.max_tasks", c.eval().max_tasks(), 0, kInfinity);
  checks.Range("steps", static_cast<double>(c.steps()), 0, kInfinity);
  checks.That(c.steps() > 0 || c.epochs() > 0, "steps is 0 and epochs is not above 0; set either");
  checks.Range("prompts_per_step", c.prompts_per_step(), 1, kInfinity);
  checks.That(
      c.group_size() >= 2,
      absl::StrCat("group_size is ", c.group_size(),
                   "; it must be at least 2, as a lone sample has no group to compare with"));
  checks.That(c.objective().optimizer_steps_per_epoch() <= c.prompts_per_step(),
              absl::StrCat("objective.optimizer_steps_per_epoch is ",
                           c.objective().optimizer_steps_per_epoch(),
                           "; it can't exceed prompts_per_step (", c.prompts_per_step(),
                           "), as each step needs a group"));
  checks.Range("micro_batch_tokens", c.micro_batch_tokens(), 0, kInfinity);
  checks.Range("threads", c.threads(), 0, 4096);
  checks.Positive("step_timeout_s", c.step_timeout_s());
  checks.Positive("collective_timeout_s", c.collective_timeout_s());
  checks.Range("memory_gib", c.memory_gib(), 0, kInfinity);
  checks.Range("rollout_ranks", c.rollout_ranks(), 0, kInfinity);
  checks.That(
      !c.sampling().engine().enable_sleep_mode() || c.rollout_ranks() == 0,
      "sampling.engine.enable_sleep_mode is on, but with rollout_ranks no rank both generates and "
      "learns, so no rank needs the freed memory; turn one of the two off");
  checks.That(!c.output_dir().empty(), "output_dir is empty; name the run folder");
  checks.That(c.base().empty(), kBaseOnlyInFiles);
  return checks.status();
}

}  // namespace tritonrl
