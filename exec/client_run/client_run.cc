#include "exec/client_run/client_run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/candidate/call_judge.h"
#include "exec/candidate/run_conclusion.h"
#include "exec/client_run/call_windows.h"
#include "exec/client_run/candidate_timing.h"
#include "exec/client_run/client_job.h"
#include "exec/client_run/layout_values.h"
#include "exec/client_run/recorded_calls.h"
#include "exec/client_run/recording_rules.h"
#include "exec/client_run/run_failures.h"
#include "exec/client_run/run_setup.h"
#include "exec/client_run/session_options.h"
#include "exec/device/session.h"
#include "exec/device_backend.h"
#include "exec/executor/executor.h"
#include "exec/outcome/classify_outcome.h"
#include "exec/timing/replay_rounds.h"
#include "exec/timing/roofline.h"

namespace tritonrl {
namespace {

using device::SessionResult;

constexpr int kMostLaunches = 4096;                      // in the result
constexpr absl::Duration kTimeToEnd = absl::Seconds(1);  // of a process that hung up

class ClientRun {
 public:
  ClientRun(const RunSetup& setup, Executors* executors)
      : setup_(setup),
        request_(setup.request()),
        reference_result_(setup.reference_result),
        executors_(*executors),
        calls_(CallsOf(static_cast<int>(setup.reference_result.inputs.size()))) {}

  CandidateRun Run(WorkerPool* clients) {
    CandidateRun run;
    JobReport report;
    Decoy decoy = request_.rules() == RULES_PAPER ? Decoy::kNone : Decoy::kReplayed;
    absl::Status ran = Live(clients, decoy, &report);
    // A constructor that reads what it drew may build another model under the true seed. It runs
    // under that seed then, of which its process knows what it reads.
    if (ran.ok() && result_.init_reads_that_differ > 0) {
      decoy = Decoy::kTold;
      ran = Live(clients, decoy, &report);
    }
    // What forward reads back decides on its launches: a recording does not tell what it does on
    // other inputs.
    if (ran.ok() && reads_differ_) {
      all_live_ = true;
      ran = Live(clients, decoy, &report);
    }
    if (!exchange_lost_.ok()) return LostExchange();
    if (!ran.ok() && !session_status_.has_value()) {  // it never came to the candidate
      SetOutcome(absl::IsDeadlineExceeded(ran) ? Outcome::DEADLINE : Outcome::INTERNAL_ERROR,
                 Message(ran), run.result.mutable_outcome());
      return run;
    }
    run.result = Classify(report, setup_.limits, JobRole::kRunner);
    if (absl::IsAborted(*session_status_)) {  // of the executor, not of the process
      run.worker_died = true;
      SetOutcome(Outcome::WORKER_LOST, Message(*session_status_), run.result.mutable_outcome());
      return run;
    }
    run.worker_died = report.end == JobEnd::kWorkerDied && !report.out_of_memory &&
                      StatusOf(run.result.outcome().reason()) == Outcome::STATUS_INFRA_ERROR;
    if (run.worker_died) return run;
    Describe(&run.result);
    // A fork that the limit refused is an error of the candidate's, whatever it says of it.
    const bool refused = report.refused_forks && result_.failure.has_value();
    if (stayed_) {
      SetOutcome(Outcome::BAD_RESULT, "the candidate's process closed its connection and went on",
                 run.result.mutable_outcome());
    } else if (session_status_->ok() && !refused) {
      // How the process ended after its last word is nothing to its result.
      SetOutcome(Outcome::OK, "", run.result.mutable_outcome());
      run.result.mutable_outcome()->clear_detail();
      run.result.set_phase("done");
      if (finding_.has_value()) Apply(*finding_, &run.result);
    } else if (!session_status_->ok() && !absl::IsUnavailable(*session_status_)) {
      SetSessionOutcome(*session_status_, report.out_of_memory, &run.result);
    }
    run.exchange_failed =
        found_.timing.has_value() && found_.timing->kind == TimingResult::Kind::kTimerFailed;
    if (!exchange_lost_.ok()) return LostExchange();
    if (finding_.has_value() && finding_->reason == Outcome::OUT_OF_MEMORY) JudgeLack(&run.result);
    Conclude(request_, reference_result_, found_, &run.result);
    return run;
  }

 private:
  absl::Status Live(WorkerPool* clients, Decoy decoy, JobReport* report) {
    found_ = RunFindings();
    finding_.reset();
    reads_differ_ = false;
    stayed_ = false;
    std::unique_ptr<CallWindows> windows;
    if (!reference_result_.has_memory()) {
      auto opened = CallWindows::Open(request_, reference_result_,
                                      absl::Seconds(setup_.limits.wall_seconds()), setup_.deadline);
      exchange_lost_ = opened.status();
      ASSIGN_OR_RETURN(windows, std::move(opened));
    }
    ASSIGN_OR_RETURN(
        VisibleValues visible,
        ReadVisibleValues(reference_result_.visible_layout, reference_result_.visible.view(),
                          windows == nullptr ? nullptr : windows->exchange()->inputs.get()));
    ASSIGN_OR_RETURN(const std::unique_ptr<ExecutorSession> session,
                     executors_.Acquire(setup_.deadline));
    RecordedCalls recorded(setup_.context, reference_result_, std::move(visible), calls_,
                           windows.get(), all_live_);
    ASSIGN_OR_RETURN(std::unique_ptr<ClientJob> job,
                     ClientJob::Start(clients, request_.task_id(), request_.candidate_source(),
                                      setup_.limits, setup_.deadline));
    const bool in_memory = reference_result_.visible.fd() >= 0;
    device::SessionOptions options = MakeSessionOptions(setup_, recorded, decoy, executors_);
    options.exchange = recorded.Exchange();
    allowed_bytes_ = options.limits.max_memory_bytes;
    absl::StatusOr<SessionResult> served =
        session->Run(options, in_memory ? &reference_result_.visible : nullptr, job->socket());
    session_status_ = served.status();
    if (served.ok()) {
      result_ = *std::move(served);
      recorded.set_deadline(setup_.LatestEnd());
      if (result_.init_reads_that_differ == 0) JudgeSession(session.get(), &recorded);
      reads_differ_ = recorded.reads_differ();
      if (const absl::Status lost = session->lost(); !lost.ok()) session_status_ = lost;
    } else if (!absl::IsUnavailable(served.status()) || !job->WaitForEnd(kTimeToEnd)) {
      stayed_ = absl::IsUnavailable(served.status());
      job->Cancel();
    }
    *report = job->Finish();
    if (windows != nullptr) exchange_lost_ = windows->lost();
    return *session_status_;
  }

  // Of an error of the reference's process, which is not the candidate's.
  CandidateRun LostExchange() const {
    CandidateRun run;
    SetOutcome(
        absl::IsDeadlineExceeded(exchange_lost_) ? Outcome::DEADLINE : Outcome::INTERNAL_ERROR,
        absl::StrCat("its inputs or outputs were lost: ", Message(exchange_lost_)),
        run.result.mutable_outcome());
    run.exchange_failed = true;
    run.out_of_memory = absl::IsResourceExhausted(exchange_lost_);
    return run;
  }

  // Compares all calls; looks at the recording of a right candidate; leaves kernels out.
  void JudgeSession(ExecutorSession* session, RecordedCalls* recorded) {
    if (result_.failure.has_value()) {
      finding_ = ExplainFailure(result_);
      if (!finding_.has_value()) finding_ = OwnWords(*result_.failure);
      return;
    }
    launches_ = recorded->Launches(session->recording());  // without counts, should a call fail
    if (setup_.asks_who_computes()) finding_ = JudgeRecording(result_, reference_result_.run);
    CallJudge judge(request_, reference_result_, recorded->access(), &found_);
    for (size_t call = 0; call < calls_.size(); ++call) {
      const absl::Status called = recorded->Call(call, result_, session);
      if (!called.ok()) {
        finding_ = ReplayFailed(called);
        return;
      }
      ++found_.compared;
      if (!JudgeCall(static_cast<int>(call), *recorded, &judge)) return;
    }
    const auto compare = [&] { return judge.Compare(0, recorded->output()); };
    if (setup_.asks_who_computes() && !finding_.has_value() &&
        recorded->OnlyCopies(compare, session)) {
      finding_ = RuleFinding{Outcome::RUNTIME_COMPUTE,
                             "the kernels only copy what operators of torch made", 0};
    }
    if (!request_.skip_timing() && reference_result_.run.modelled()) {
      const absl::Status counted = recorded->CountLaunches(session);
      if (!counted.ok() && !finding_.has_value()) finding_ = ReplayFailed(counted);
      launches_ = recorded->Launches(session->recording());
    }
    if (!request_.skip_timing() && !reference_result_.run.modelled() && !finding_.has_value()) {
      Time(session, recorded, &judge);
    }
    if (!request_.skip_ablation() && found_.wrong.equal) Ablate(session, recorded, &judge);
  }

  void Time(ExecutorSession* session, RecordedCalls* recorded, CallJudge* judge) {
    int64_t operators = 0;
    for (const auto& [name, moved] : result_.traffic.operators) operators += moved.calls;
    CandidateTiming timing(setup_, session, recorded, judge);
    ReplayTiming timed = timing.Measure(operators);
    found_.timed = timing.judged();
    if (timed.result.kind == TimingResult::Kind::kCandidateEnded) {
      finding_ = ReplayFailed(timed.candidate);
    }
    not_a_graph_ = timed.not_a_graph;
    found_.timing = std::move(timed.result);
  }

  bool JudgeCall(int call, const RecordedCalls& recorded, CallJudge* judge) {
    const int trial = calls_[call];
    // The paper's rules have no second call on the same input.
    if (request_.rules() == RULES_PAPER && call == 1) return true;
    const std::vector<Leaf>& output = recorded.output();
    if (!judge->Judge(trial, call, output)) return false;
    if (call == 0 && !judge->CheckSharing(trial, output, recorded.inputs())) return false;
    judge->NoteFollowing(trial, call, output);
    return judge->CheckInputs(trial, recorded.inputs_unchanged());
  }

  void Ablate(ExecutorSession* session, RecordedCalls* recorded, CallJudge* judge) {
    AblationSetup setup;
    setup.trials = recorded->replayed_trials();
    setup.is_right = [&](int trial, const std::vector<Leaf>& output) {
      return judge->Compare(trial == 0 ? 0 : trial + 1, output).equal;
    };
    setup.keep = [&](const std::vector<Leaf>& output) { recorded->Keep(output); };
    setup.same_as_kept = [&](const std::vector<Leaf>& output) {
      return recorded->IsSameAsKept(output);
    };
    setup.until =
        std::min(setup_.deadline, absl::Now() + absl::Seconds(setup_.limits.wall_seconds() / 4));
    setup.call = [&](const AblatedCall& call) {
      return recorded->Ablated(call, setup.until, session);
    };
    found_.ablation = tritonrl::Ablate(setup, recorded->Kernels(session->recording()));
  }

  void JudgeLack(ExecResult* result) const {
    if (!executors_.gpu().has_value()) return;
    SetLackOutcome({.allowed_bytes = allowed_bytes_,
                    .lacking_bytes = result_.lacking_bytes,
                    .reference_bytes = reference_result_.CallBytes()},
                   result);
  }

  void Apply(const RuleFinding& finding, ExecResult* result) const {
    SetOutcome(finding.reason, finding.message, result->mutable_outcome());
    result->mutable_outcome()->set_line(finding.line);
    if (!result_.failure.has_value()) return;
    result->mutable_outcome()->set_detail(result_.failure->text);
    const std::string& phase = result_.failure->phase;
    result->set_phase(phase == "init" ? "construct" : phase == "output" ? "forward" : phase);
  }

  // What the executor counted, and the modelled time.
  void Describe(ExecResult* result) const {
    for (const std::string& sentence : result_.own_state) result->add_own_parameters(sentence);
    if (finding_.has_value() && finding_->reason == Outcome::COMPILE_ERROR) {
      result->set_compiled(false);
    } else if (result_.counts.launches > 0) {
      result->set_compiled(true);
    }
    if (!not_a_graph_.empty()) {
      result->set_timing_note(
          absl::StrCat("timed by direct calls, as torch captures no graph of ", not_a_graph_));
    }
    const bool modelled = reference_result_.run.modelled();
    const auto model = FindRooflineModel(request_.device_model());
    double seconds = 0;
    for (KernelLaunch launch : launches_) {
      if (model.ok() && modelled) launch.set_modelled_seconds(LaunchSeconds(*model, launch));
      seconds += launch.modelled_seconds();
      if (result->launches_size() < kMostLaunches) *result->add_launches() = std::move(launch);
    }
    for (const auto& [name, moved] : result_.traffic.operators) {
      AtenOp* const op = result->add_candidate_ops();
      op->set_name(absl::StrCat("aten.", name));
      op->set_calls(moved.calls);
      op->set_bytes(static_cast<double>(moved.bytes));
      op->set_flops(moved.flops);
      if (model.ok() && moved.bytes > 0) {
        seconds +=
            OperatorSeconds(*model, moved.calls, static_cast<double>(moved.bytes), moved.flops);
      }
    }
    if (!request_.skip_timing() && modelled) result->set_candidate_seconds(seconds);
  }

  const RunSetup& setup_;
  const ExecRequest& request_;
  const ReferenceResult& reference_result_;
  Executors& executors_;
  const std::vector<int> calls_;

  std::optional<absl::Status> session_status_;
  absl::Status exchange_lost_;
  int64_t allowed_bytes_ = 0;  // of GPU memory, to the candidate
  bool stayed_ = false;        // the process hung up, but did not end
  bool all_live_ = false;      // RecordedCalls::all_live
  bool reads_differ_ = false;  // RecordedCalls::reads_differ
  SessionResult result_;
  std::vector<KernelLaunch> launches_;  // of the recorded call
  std::optional<RuleFinding> finding_;
  RunFindings found_;
  std::string not_a_graph_;  // why calls were timed directly
};

}  // namespace

CandidateRun RunClient(const JobContext& context, const ReferenceResult& reference_result,
                       WorkerPool* clients, Executors* executors, const ExecLimits& limits,
                       absl::Time deadline) {
  const RunSetup setup{context, reference_result, limits, deadline};
  return ClientRun(setup, executors).Run(clients);
}

}  // namespace tritonrl
