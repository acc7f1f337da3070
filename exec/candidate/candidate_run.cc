#include "exec/candidate/candidate_run.h"

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
#include "exec/candidate/call_judge.h"
#include "exec/candidate/follow_up.h"
#include "exec/candidate/run_conclusion.h"
#include "exec/candidate/tensor_exchange.h"
#include "exec/compare/tensor_layout.h"
#include "exec/device_backend.h"
#include "exec/outcome/classify_outcome.h"
#include "exec/timing/timing_rounds.h"
#include "exec/workers/job_dialogue.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

class Session {
 public:
  Session(const JobContext& context, const ReferenceResult& reference_result,
          const ExecLimits& limits, absl::Time deadline)
      : context_(context),
        reference_result_(reference_result),
        limits_(limits),
        deadline_(deadline),
        trials_(static_cast<int>(reference_result.inputs.size())),
        calls_(CallsOf(trials_)),
        judge_(context.request, reference_result,
               {.compare =
                    [this](size_t call, const std::vector<Leaf>& output) {
                      return exchange_->Compare(call, output);
                    },
                .follow = [this](size_t call, int leaf,
                                 const Leaf& got) { return exchange_->Follow(call, leaf, got); }},
               &found_) {}

  CandidateRun Run(WorkerPool* runners) {
    CandidateRun run;
    JobReport report;
    absl::Status talked = Talk(runners, &report);
    talked.Update(lost_);
    talked.Update(judge_.lost());
    if (!talked.ok()) {
      SetOutcome(Outcome::INTERNAL_ERROR, Message(talked), run.result.mutable_outcome());
      run.exchange_failed = true;
      run.out_of_memory = absl::IsResourceExhausted(talked);
      return run;
    }
    run.device_doubtful = MayHaveHarmedDevice(found_.follow_up);
    if (found_.follow_up.ended) ForgetEnd(&report, &found_.follow_up);
    run.result = Classify(report, limits_, JobRole::kRunner);
    Conclude(context_.request, reference_result_, found_, &run.result);
    run.worker_died = report.end == JobEnd::kWorkerDied && !report.out_of_memory &&
                      StatusOf(run.result.outcome().reason()) == Outcome::STATUS_INFRA_ERROR;
    return run;
  }

 private:
  absl::Status Talk(WorkerPool* runners, JobReport* report) {
    ASSIGN_OR_RETURN(exchange_,
                     OpenExchange(context_.request, reference_result_,
                                  absl::Seconds(limits_.wall_seconds()), deadline_, &waited_));
    const std::string description = RunnerJobJson(
        context_, reference_result_.visible_layout, trials_,
        reference_result_.shared_buffers.in_bytes, reference_result_.shared_buffers.out_bytes);
    ASSIGN_OR_RETURN(auto job, JobDialogue::Start(runners, description, limits_, deadline_,
                                                  exchange_->fds(), {.waited = &waited_}));
    while (const std::optional<std::string> message = job->Next()) {
      if (begin_ == absl::InfinitePast()) begin_ = absl::Now();
      if (over_) {  // nobody listens any more, but it may not wait for ever either
        job->Send(Json{{"go", false}}.dump());
        continue;
      }
      if (found_.compared == calls_.size()) {
        TakeKernels(*message, job.get());
        over_ = true;
        continue;
      }
      const absl::Status taken = TakeCall(*message);
      if (!taken.ok()) found_.violation = taken;
      over_ = !taken.ok() || !found_.wrong.equal || !Lay(NextTrial());
      job->Send(Json{{"go", !over_}}.dump());
      if (!over_ && found_.compared == calls_.size() && !reference_result_.run.modelled() &&
          !context_.request.skip_timing()) {
        Time(job.get());
        over_ = found_.timing->kind != TimingResult::Kind::kTimed;
      }
    }
    *report = job->Finish();
    return absl::OkStatus();
  }

  bool PaperRules() const { return context_.request.rules() == RULES_PAPER; }

  absl::StatusOr<std::vector<Leaf>> ReadLeaves(const Json& layout) {
    return ParseLayout(layout, exchange_->memory_bytes());
  }

  // The trial that the runner looks for next: that of the next call, and for rounds the first.
  int NextTrial() const { return found_.compared < calls_.size() ? calls_[found_.compared] : 0; }

  // Has the exchange put a trial's inputs in place; false, and lost_ says why, if it cannot.
  bool Lay(int trial) {
    if (lost_.ok()) lost_ = exchange_->Provide(trial);
    return lost_.ok();
  }

  // The next call's output and inputs, which the exchange holds.
  absl::Status TakeCall(const std::string& message) {
    const Json json = Json::parse(message, nullptr, /*allow_exceptions=*/false);
    const char* names[] = {"call", "inputs", "output"};
    bool whole = json.is_object() && json.size() == std::size(names);
    for (const char* name : names) whole = whole && json.contains(name);
    if (!whole || json["call"] != found_.compared) {
      return absl::InvalidArgumentError(
          absl::StrCat("a message is not the result of call ", found_.compared));
    }
    ASSIGN_OR_RETURN(std::vector<Leaf> output, ReadLeaves(json["output"]));
    ASSIGN_OR_RETURN(const InputsAfter inputs, ReadInputs(json["inputs"], calls_[found_.compared]));
    const int trial = calls_[found_.compared];
    // The paper's rules have no second call on the same input.
    const bool counts = !PaperRules() || found_.compared != 1;
    const bool right = !counts || (judge_.Judge(trial, found_.compared, output) &&
                                   judge_.CheckSharing(trial, output, inputs.leaves));
    if (right) judge_.NoteFollowing(trial, found_.compared, output);
    if (right) judge_.CheckInputs(trial, inputs.unchanged);
    ++found_.compared;
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
    inputs.unchanged =
        reference_result_.mutates_inputs || exchange_->SameInputs(trial, inputs.leaves);
    return inputs;
  }

  // All calls were right and its result is handed over: it names its kernels and asks what comes.
  void TakeKernels(const std::string& named, JobDialogue* job) {
    found_.asked = true;
    FollowUpSetup setup;
    setup.profile = !reference_result_.run.modelled() && !context_.request.skip_gpu_profile();
    setup.ablate = !context_.request.skip_ablation();
    setup.judge_profiled = [this](const std::vector<Leaf>& output) {
      // With state, a forward called once more may rightly give something else.
      return reference_result_.mutates_inputs || reference_result_.has_buffers ||
             judge_.Judge(0, 0, output);
    };
    setup.ablation.trials = static_cast<int>(reference_result_.inputs.size());
    setup.ablation.is_right = [this](int trial, const std::vector<Leaf>& output) {
      return judge_.Compare(trial == 0 ? 0 : trial + 1, output).equal;
    };
    setup.ablation.provide = [this](int trial) { Lay(trial); };
    setup.ablation.keep = [this](const std::vector<Leaf>& output) {
      if (const absl::Status kept = exchange_->Keep(output); !kept.ok() && lost_.ok()) lost_ = kept;
    };
    setup.ablation.same_as_kept = [this](const std::vector<Leaf>& output) {
      const absl::StatusOr<bool> same = exchange_->IsSameAsKept(output);
      if (!same.ok()) lost_.Update(same.status());
      return same.ok() && *same;
    };
    setup.ablation.memory_bytes = exchange_->memory_bytes();
    setup.ablation.until = FollowUpDeadline(begin_ + waited_.Total(), limits_);
    found_.follow_up = RunFollowUp(setup, named, [job](const std::string& order) {
      job->Send(order);
      return job->Next();
    });
    if (!found_.follow_up.violation.ok()) found_.violation = found_.follow_up.violation;
    job->Send(Json{{"done", true}}.dump());
  }

  void Time(JobDialogue* job) {
    TimingSides sides;
    sides.candidate = job;
    sides.reference = [this](const std::string& order) {
      auto answer = exchange_->AskTimer(order);
      if (!answer.ok() && lost_.ok()) lost_ = answer.status();
      return answer;
    };
    sides.provide = [this](int trial) {
      (void)Lay(trial);
      return lost_;
    };
    sides.check_output = [this](int trial, const std::string& layout) {
      auto output = ReadLeaves(Json::parse(layout, nullptr, /*allow_exceptions=*/false));
      if (!output.ok()) {
        found_.violation = output.status();
        return false;
      }
      // With state, a forward called once more may rightly give something else.
      if (reference_result_.mutates_inputs || reference_result_.has_buffers) return true;
      if (PaperRules()) return true;
      found_.timed = true;
      return judge_.Judge(trial, trial == 0 ? 0 : trial + 1, *output);
    };
    sides.alone = [this] {
      const WaitedTime::Span span(&waited_);
      return context_.lease == nullptr || context_.lease->AcquireExclusive(deadline_);
    };
    found_.timing = MeasureInterleaved(context_.request, reference_result_, sides);
    if (context_.lease != nullptr) {
      const WaitedTime::Span span(&waited_);
      context_.lease->ReturnToShared(deadline_);  // if not, its end is near
    }
    if (found_.timing->kind == TimingResult::Kind::kBadMessage) {
      found_.violation = absl::InvalidArgumentError(found_.timing->text);
    }
  }

  const JobContext& context_;
  const ReferenceResult& reference_result_;
  const ExecLimits& limits_;
  const absl::Time deadline_;
  const int trials_;
  const std::vector<int> calls_;
  WaitedTime waited_;  // for other requests, which is nothing to the candidate's limit
  std::unique_ptr<TensorExchange> exchange_;
  absl::Status lost_;  // why the exchange has failed

  bool over_ = false;
  absl::Time begin_ = absl::InfinitePast();  // of its first message
  RunFindings found_;
  CallJudge judge_;
};

}  // namespace

CandidateRun RunCandidate(const JobContext& context, const ReferenceResult& reference_result,
                          WorkerPool* runners, const ExecLimits& limits, absl::Time deadline) {
  return Session(context, reference_result, limits, deadline).Run(runners);
}

}  // namespace tritonrl
