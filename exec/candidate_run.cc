#include "exec/candidate_run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/classify.h"
#include "exec/device_backend.h"
#include "exec/follow_up.h"
#include "exec/job_dialogue.h"
#include "exec/tensor_exchange.h"
#include "exec/tensor_sharing.h"
#include "exec/time_conclusion.h"
#include "exec/timing_rounds.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

class Session {
 public:
  Session(const JobContext& context, const OracleResult& oracle, const ExecLimits& limits,
          absl::Time deadline)
      : context_(context),
        oracle_(oracle),
        limits_(limits),
        deadline_(deadline),
        trials_(static_cast<int>(oracle.inputs.size())),
        calls_(CallsOf(trials_)) {}

  CandidateRun Run(WorkerPool* runners) {
    CandidateRun run;
    JobReport report;
    absl::Status talked = Talk(runners, &report);
    if (talked.ok()) talked = lost_;
    if (!talked.ok()) {
      SetOutcome(EXEC_INTERNAL_ERROR, Message(talked), &run.result);
      run.exchange_failed = true;
      run.out_of_memory = absl::IsResourceExhausted(talked);
      return run;
    }
    if (follow_up_.ended) ForgetEnd(&report, &follow_up_);
    run.result = Classify(report, limits_, JobRole::kRunner);
    Conclude(&run.result);
    run.worker_died = report.end == JobEnd::kWorkerDied && !report.out_of_memory &&
                      FaultOf(run.result.outcome()) == EXEC_FAULT_OURS;
    return run;
  }

 private:
  absl::Status Talk(WorkerPool* runners, JobReport* report) {
    ASSIGN_OR_RETURN(exchange_, OpenExchange(context_.request, oracle_,
                                             absl::Seconds(limits_.wall_seconds()), deadline_));
    const std::string description =
        RunnerJobJson(context_, oracle_.visible_layout, trials_, oracle_.windows.in_bytes,
                      oracle_.windows.out_bytes);
    ASSIGN_OR_RETURN(
        auto job, JobDialogue::Start(runners, description, limits_, deadline_, exchange_->fds()));
    while (const std::optional<std::string> message = job->Next()) {
      if (begin_ == absl::InfinitePast()) begin_ = absl::Now();
      if (over_) {  // nobody listens any more, but it may not wait for ever either
        job->Send(Json{{"go", false}}.dump());
        continue;
      }
      if (compared_ == calls_.size()) {
        TakeKernels(*message, job.get());
        over_ = true;
        continue;
      }
      const absl::Status taken = TakeCall(*message);
      if (!taken.ok()) violation_ = taken;
      over_ = !taken.ok() || !wrong_.equal || !Lay(NextTrial());
      job->Send(Json{{"go", !over_}}.dump());
      if (!over_ && compared_ == calls_.size() && !oracle_.run.modelled() &&
          !context_.request.skip_timing()) {
        Time(job.get());
        over_ = timing_->kind != TimingResult::Kind::kTimed;
      }
    }
    *report = job->Finish();
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Leaf>> ReadLeaves(const Json& layout) {
    return ParseLayout(layout, exchange_->memory_bytes());
  }

  // The trial that the runner looks for next: that of the next call, and for rounds the first.
  int NextTrial() const { return compared_ < calls_.size() ? calls_[compared_] : 0; }

  // Has the exchange put a trial's inputs in place; false, and lost_ says why, if it cannot.
  bool Lay(int trial) {
    if (lost_.ok()) lost_ = exchange_->Provide(trial);
    return lost_.ok();
  }

  // What the exchange says, or `otherwise` if it fails, and lost_ says why.
  template <typename T>
  T Answered(absl::StatusOr<T> answer, T otherwise) {
    if (answer.ok()) return *std::move(answer);
    if (lost_.ok()) lost_ = answer.status();
    return otherwise;
  }

  // The next call's output and inputs, which the exchange holds.
  absl::Status TakeCall(const std::string& message) {
    const Json json = Json::parse(message, nullptr, /*allow_exceptions=*/false);
    const char* names[] = {"call", "inputs", "output"};
    bool whole = json.is_object() && json.size() == std::size(names);
    for (const char* name : names) whole = whole && json.contains(name);
    if (!whole || json["call"] != compared_) {
      return absl::InvalidArgumentError(
          absl::StrCat("a message is not the result of call ", compared_));
    }
    ASSIGN_OR_RETURN(std::vector<Leaf> output, ReadLeaves(json["output"]));
    ASSIGN_OR_RETURN(const InputsAfter inputs, ReadInputs(json["inputs"], calls_[compared_]));
    const int trial = calls_[compared_];
    const bool right =
        Judge(trial, compared_, output) && CheckSharing(trial, output, inputs.leaves);
    if (right && !oracle_.mutates_inputs && !inputs.unchanged) {
      wrong_.equal = false;
      wrong_.message = "forward changed its inputs in place";
      wrong_.mismatch.Clear();
      wrong_.mismatch.set_kind("input_changed");
      wrong_.mismatch.set_trial(trial);
    }
    ++compared_;
    return absl::OkStatus();
  }

  struct InputsAfter {
    std::vector<Leaf> leaves;
    bool unchanged = false;
  };

  // The inputs after a call of forward. Where they do not come back the process says itself, in
  // front of what describes them, whether they are unchanged: one that lies could as well have put
  // them back.
  absl::StatusOr<InputsAfter> ReadInputs(const Json& description, int trial) {
    InputsAfter inputs;
    ASSIGN_OR_RETURN(inputs.leaves, ReadLeaves(description));
    if (!exchange_->inputs_come_back()) {
      if (inputs.leaves.empty() || inputs.leaves[0].kind != Leaf::Kind::kNumber) {
        return absl::InvalidArgumentError("it does not say whether its inputs are unchanged");
      }
      inputs.unchanged = inputs.leaves[0].number == 1;
      inputs.leaves.erase(inputs.leaves.begin());
      return inputs;
    }
    inputs.unchanged = oracle_.mutates_inputs || exchange_->SameInputs(trial, inputs.leaves);
    return inputs;
  }

  // An output against that of the oracle's call.
  Comparison Compare(size_t call, const std::vector<Leaf>& output) {
    Comparison unknown;
    unknown.equal = false;
    return Answered(exchange_->Compare(call, output), unknown);
  }

  // Compares an output with that of the oracle's call; false, and wrong_ says why, when it differs.
  bool Judge(int trial, size_t call, const std::vector<Leaf>& output) {
    Comparison found = Compare(call, output);
    if (found.max_error.has_value() && std::isfinite(*found.max_error)) {
      max_error_ = std::max(max_error_.value_or(0), *found.max_error);
    }
    NoteShare(found, trial);
    if (found.equal) return true;
    found.mismatch.set_trial(trial);
    wrong_ = std::move(found);
    repeated_ = call == 1;
    return false;
  }

  // All calls were right and its result is handed over: it names its kernels and asks what comes.
  void TakeKernels(const std::string& named, JobDialogue* job) {
    asked_ = true;
    FollowUpSetup setup;
    setup.profile = !oracle_.run.modelled() && !context_.request.skip_gpu_profile();
    setup.ablate = !context_.request.skip_ablation();
    setup.judge_profiled = [this](const std::vector<Leaf>& output) {
      // With state, a forward called once more may rightly give something else.
      return oracle_.mutates_inputs || oracle_.has_buffers || Judge(0, 0, output);
    };
    setup.ablation.trials = static_cast<int>(oracle_.inputs.size());
    setup.ablation.is_right = [this](int trial, const std::vector<Leaf>& output) {
      return Compare(trial == 0 ? 0 : trial + 1, output).equal;
    };
    setup.ablation.provide = [this](int trial) { Lay(trial); };
    setup.ablation.keep = [this](const std::vector<Leaf>& output) {
      if (const absl::Status kept = exchange_->Keep(output); !kept.ok() && lost_.ok()) lost_ = kept;
    };
    setup.ablation.same_as_kept = [this](const std::vector<Leaf>& output) {
      return Answered(exchange_->IsSameAsKept(output), false);
    };
    setup.ablation.memory_bytes = exchange_->memory_bytes();
    setup.ablation.until = FollowUpDeadline(begin_, limits_);
    follow_up_ = RunFollowUp(setup, named, [job](const std::string& order) {
      job->Send(order);
      return job->Next();
    });
    if (!follow_up_.violation.ok()) violation_ = follow_up_.violation;
    job->Send(Json{{"done", true}}.dump());
  }

  // How near the outputs came to what is allowed.
  void NoteShare(const Comparison& found, int trial) {
    if (!found.worst_share.has_value() ||
        (robust_.has_worst_share() && robust_.worst_share() >= *found.worst_share)) {
      return;
    }
    robust_.set_worst_share(*found.worst_share);
    robust_.set_worst_error(found.worst_error);
    robust_.set_worst_tolerance(found.worst_tolerance);
    robust_.set_worst_trial(oracle_.trial_names[trial]);
  }

  // False, and wrong_ says why, when an output lies in memory that is not its own although the
  // reference's do not.
  bool CheckSharing(int trial, const std::vector<Leaf>& output, const std::vector<Leaf>& inputs) {
    if (context_.request.mode() != EXEC_MODE_ROBUST || oracle_.shares_memory) return true;
    const std::string shared = FindSharedOutputs(output, inputs);
    if (shared.empty()) return true;
    wrong_ = Comparison();
    wrong_.equal = false;
    wrong_.message = absl::StrCat(shared, ", but the reference's do not");
    wrong_.mismatch.set_kind("shared_memory");
    wrong_.mismatch.set_trial(trial);
    return false;
  }

  void Time(JobDialogue* job) {
    TimingSides sides;
    sides.candidate = job;
    sides.reference = [this](const std::string& order) { return exchange_->AskTimer(order); };
    sides.provide = [this](int trial) { return exchange_->Provide(trial); };
    sides.judge = [this](int trial, const std::string& layout) {
      auto output = ReadLeaves(Json::parse(layout, nullptr, /*allow_exceptions=*/false));
      if (!output.ok()) {
        violation_ = output.status();
        return false;
      }
      // With state, a forward called once more may rightly give something else.
      if (oracle_.mutates_inputs || oracle_.has_buffers) return true;
      timed_ = true;
      return Judge(trial, trial == 0 ? 0 : trial + 1, *output);
    };
    sides.alone = [this] {
      if (context_.place != nullptr) context_.place->TakeAlone();
    };
    timing_ = TimeInTurns(context_.request, oracle_, sides);
    if (context_.place != nullptr) context_.place->ShareAgain();
    if (timing_->kind == TimingResult::Kind::kBadMessage) {
      violation_ = absl::InvalidArgumentError(timing_->text);
    }
  }

  // From what the process said of itself to what is so.
  void Conclude(ExecResult* result) {
    result->set_modelled(oracle_.run.modelled());
    result->set_device_name(oracle_.run.device_name());
    *result->mutable_versions() = oracle_.run.versions();
    *result->mutable_reference_ops() = oracle_.run.reference_ops();
    for (const auto& [phase, seconds] : oracle_.run.phase_seconds()) {
      if (phase != "rest") (*result->mutable_phase_seconds())[phase] = seconds;
    }
    if (timing_.has_value()) NoteTiming(*timing_, result);
    if (compared_ > 0) result->set_trials_run(calls_[compared_ - 1] + 1);
    if (max_error_.has_value()) result->set_max_error(*max_error_);
    if (context_.request.mode() == EXEC_MODE_ROBUST) {
      for (const std::string& name : oracle_.trial_names) robust_.add_trial_names(name);
      for (const std::string& note : oracle_.notes) robust_.add_notes(note);
      *result->mutable_robust() = robust_;
    }
    if (!wrong_.equal) return ConcludeWrong(result);
    if (!violation_.ok()) {
      return SetOutcome(EXEC_BAD_RESULT,
                        "what it handed over makes no sense: " + Message(violation_), result);
    }
    if (result->outcome() != EXEC_OK) return;
    if (compared_ < calls_.size()) {
      return SetOutcome(EXEC_BAD_RESULT,
                        absl::StrCat("it claims to have run, but handed over the results of ",
                                     compared_, " calls instead of ", calls_.size()),
                        result);
    }
    if (!asked_ && (!timing_.has_value() || timing_->kind == TimingResult::Kind::kTimed)) {
      return SetOutcome(EXEC_BAD_RESULT,
                        "it ended before it named the kernels that it had launched", result);
    }
    result->set_correct(true);
    if (!ConcludeAblation(result)) return;
    if (!context_.request.skip_timing()) ConcludeTime(oracle_, timing_, result);
  }

  static void NoteTiming(const TimingResult& timing, ExecResult* result) {
    auto& seconds = *result->mutable_phase_seconds();
    seconds["timing: ready"] = timing.ready_seconds;
    seconds["timing: wait for the GPU"] = timing.wait_seconds;
    seconds["timing: rounds"] = timing.round_seconds;
    seconds["timing: inputs"] = timing.load_seconds;
    seconds["timing: outputs judged"] = timing.judge_seconds;
  }

  // False when it cannot be known whether the kernels do the work.
  bool ConcludeAblation(ExecResult* result) {
    DescribeFollowUp(follow_up_, result);
    if (follow_up_.ablation.all != ABLATION_UNCLEAR) return true;
    SetOutcome(
        EXEC_INCONCLUSIVE,
        absl::StrCat("without its kernels the result ", follow_up_.ablation.kernels[0].text()),
        result);
    return false;
  }

  void ConcludeWrong(ExecResult* result) {
    const std::string name = oracle_.trial_names[wrong_.mismatch.trial()];
    wrong_.mismatch.set_trial_name(name);
    *result->mutable_mismatch() = wrong_.mismatch;
    result->set_correct(false);
    result->set_phase("compare");
    result->clear_detail();
    result->set_line(0);
    const char* again = follow_up_.profile_wrong ? ", in a profiled call"
                        : timed_                 ? ", in a timed call"
                        : repeated_              ? ", called once more"
                                                 : "";
    SetOutcome(EXEC_MISMATCH,
               absl::StrCat("trial ", wrong_.mismatch.trial() + 1, " of ", trials_,
                            name == "random" ? "" : absl::StrCat(" (inputs: ", name, ")"), again,
                            ": ", wrong_.message),
               result);
  }

  const JobContext& context_;
  const OracleResult& oracle_;
  const ExecLimits& limits_;
  const absl::Time deadline_;
  const int trials_;
  const std::vector<int> calls_;
  std::unique_ptr<TensorExchange> exchange_;
  absl::Status lost_;  // why the exchange has failed

  size_t compared_ = 0;  // calls
  bool over_ = false;
  Comparison wrong_;  // equal as long as nothing differed
  bool repeated_ = false, timed_ = false;
  std::optional<double> max_error_;
  RobustEvidence robust_;
  absl::Status violation_;
  std::optional<TimingResult> timing_;
  absl::Time begin_ = absl::InfinitePast();  // of its first message
  bool asked_ = false;                       // it came to its end and asked what comes
  FollowUpResult follow_up_;
};

}  // namespace

CandidateRun RunCandidate(const JobContext& context, const OracleResult& oracle,
                          WorkerPool* runners, const ExecLimits& limits, absl::Time deadline) {
  return Session(context, oracle, limits, deadline).Run(runners);
}

}  // namespace tritonrl
