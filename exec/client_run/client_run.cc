#include "exec/client_run/client_run.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/candidate/call_judge.h"
#include "exec/candidate/run_conclusion.h"
#include "exec/client_run/call_windows.h"
#include "exec/client_run/client_job.h"
#include "exec/client_run/layout_values.h"
#include "exec/client_run/recorded_calls.h"
#include "exec/client_run/recording_rules.h"
#include "exec/device/session.h"
#include "exec/device_backend.h"
#include "exec/executor/executor.h"
#include "exec/outcome/classify_outcome.h"
#include "exec/timing/replay_rounds.h"
#include "exec/timing/roofline.h"

namespace tritonrl {
namespace {

using device::Failure;
using device::SessionResult;

constexpr int kMostLaunches = 4096;  // in the result
constexpr int64_t kMostElementBytes = 16;
constexpr int64_t kLeastSmallElements = 4;               // a mean's division, a counter
constexpr absl::Duration kTimeToEnd = absl::Seconds(1);  // of a process that hung up
constexpr int64_t kFreeOutputBytes = 16 << 20;           // beside those of a right result
constexpr int64_t kReservedPart = 16;                    // of a GPU's memory: for allocators
constexpr int64_t kContextBytes = int64_t{3} << 30;      // of two processes, and of a flush

// Outcome of a failure in the candidate's own words.
Outcome::Reason ReasonOf(const Failure& failure) {
  // Names of Triton's errors; what raises them otherwise only harms itself.
  for (const char* kind : {"CompilationError", "CompileTimeAssertionFailure",
                           "UnsupportedLanguageConstruct", "PTXASError"}) {
    if (failure.kind == kind) return Outcome::COMPILE_ERROR;
  }
  if (failure.kind == "MLIRError" || absl::StrContains(failure.text, "PassManager::run failed")) {
    return Outcome::COMPILE_ERROR;
  }
  if (failure.kind == "OutOfMemoryError" || failure.kind == "MemoryError" ||
      absl::StrContains(failure.text, "can't allocate memory") ||
      absl::StrContains(failure.text, "CUDA out of memory")) {
    return Outcome::OUT_OF_MEMORY;
  }
  if (failure.phase == "import") return Outcome::IMPORT_ERROR;
  if (failure.phase == "init") {
    return absl::StrContains(failure.text, "the program defines no ModelNew")
               ? Outcome::NO_MODEL_NEW
               : Outcome::CONSTRUCT_ERROR;
  }
  return Outcome::RUNTIME_ERROR;
}

class ClientRun {
 public:
  ClientRun(const JobContext& context, const ReferenceResult& reference_result,
            Executors* executors, const ExecLimits& limits, absl::Time deadline)
      : context_(context),
        request_(context.request),
        reference_result_(reference_result),
        executors_(*executors),
        limits_(limits),
        deadline_(deadline),
        calls_(CallsOf(static_cast<int>(reference_result.inputs.size()))) {}

  CandidateRun Run(WorkerPool* clients) {
    CandidateRun run;
    JobReport report;
    absl::Status ran =
        Live(clients, request_.rules() == RULES_PAPER ? Decoy::kNone : Decoy::kReplayed, &report);
    // A constructor that reads what it drew may build another model under the true seed. It runs
    // under that seed then, of which its process knows what it reads.
    if (ran.ok() && result_.init_reads_that_differ > 0) {
      ran = Live(clients, Decoy::kTold, &report);
    }
    if (!exchange_lost_.ok()) return LostExchange();
    if (!ran.ok() && !session_status_.has_value()) {  // it never came to the candidate
      SetOutcome(absl::IsDeadlineExceeded(ran) ? Outcome::DEADLINE : Outcome::INTERNAL_ERROR,
                 Message(ran), run.result.mutable_outcome());
      return run;
    }
    run.result = Classify(report, limits_, JobRole::kRunner);
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
      EndedByExecutor(*session_status_, report.out_of_memory, &run.result);
    }
    run.exchange_failed =
        found_.timing.has_value() && found_.timing->kind == TimingResult::Kind::kTimerFailed;
    if (!exchange_lost_.ok()) return LostExchange();
    Conclude(request_, reference_result_, found_, &run.result);
    return run;
  }

 private:
  // What the candidate's process knows of the seed of its weights. Under another one its
  // constructor's commands run again, of which it knows nothing: what it computed by itself does
  // not fit.
  enum class Decoy {
    kNone,      // the seed
    kReplayed,  // another one, under which its constructor runs first
    kTold,      // another one, for its own generators alone
  };

  absl::Status Live(WorkerPool* clients, Decoy decoy, JobReport* report) {
    found_ = RunFindings();
    finding_.reset();
    stayed_ = false;
    std::unique_ptr<CallWindows> windows;
    if (!reference_result_.has_memory()) {
      auto opened = CallWindows::Open(request_, reference_result_,
                                      absl::Seconds(limits_.wall_seconds()), deadline_);
      exchange_lost_ = opened.status();
      ASSIGN_OR_RETURN(windows, std::move(opened));
    }
    ASSIGN_OR_RETURN(
        VisibleValues visible,
        ReadVisibleValues(reference_result_.visible_layout, reference_result_.visible.view(),
                          windows == nullptr ? nullptr : windows->exchange()->inputs.get()));
    ASSIGN_OR_RETURN(const std::unique_ptr<ExecutorSession> session, executors_.Acquire(deadline_));
    RecordedCalls recorded(context_, reference_result_, std::move(visible), calls_, windows.get());
    ASSIGN_OR_RETURN(std::unique_ptr<ClientJob> job,
                     ClientJob::Start(clients, request_.task_id(), request_.candidate_source(),
                                      limits_, deadline_));
    const bool in_memory = reference_result_.visible.fd() >= 0;
    device::SessionOptions options = Options(recorded, decoy);
    options.exchange = recorded.Exchange();
    absl::StatusOr<SessionResult> served =
        session->Run(options, in_memory ? &reference_result_.visible : nullptr, job->socket());
    session_status_ = served.status();
    if (served.ok()) {
      result_ = *std::move(served);
      recorded.set_deadline(LatestEnd());
      if (result_.init_reads_that_differ == 0) JudgeSession(session.get(), &recorded);
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

  // Of what begins now: the candidate's live calls, or all replays.
  absl::Time LatestEnd() const {
    return std::min(deadline_, absl::Now() + absl::Seconds(limits_.wall_seconds()));
  }

  device::SessionOptions Options(const RecordedCalls& recorded, Decoy decoy) const {
    device::SessionOptions options;
    options.source = request_.candidate_source();
    options.init_args = recorded.visible().args;
    options.init_kwargs = recorded.visible().kwargs;
    options.calls = recorded.LiveCalls();
    options.keeps_state = reference_result_.has_buffers;
    options.may_compute = !AsksWhoComputes();
    options.init_seed = context_.seeds.weights;
    options.state_is_known = request_.rules() != RULES_PAPER;
    if (options.state_is_known) options.state = recorded.visible().state;
    options.varied = recorded.visible().varied;
    if (decoy == Decoy::kReplayed) {
      options.true_seed = context_.seeds.weights;
      options.init_seed = context_.seeds.decoy;
    } else if (decoy == Decoy::kTold) {
      options.told_seed = context_.seeds.decoy;
    }
    // A mask that the reference draws may be drawn; nothing else that it computes is free.
    if (DrawsRandomNumbers(reference_result_.run)) options.also_allowed = MaskOperators();
    options.threads = executors_.threads();
    options.device = executors_.gpu().value_or(options.device);
    options.deadline = LatestEnd();
    options.limits.max_memory_bytes =
        std::min<int64_t>(options.limits.max_memory_bytes, limits_.memory_bytes());
    if (executors_.gpu().has_value()) {
      options.limits.max_memory_bytes = MostMemory(executors_.gpu()->total_bytes);
    }
    options.limits.max_small_elements_of_call =
        std::min(options.limits.max_small_elements_of_call, MostSmallElements(recorded));
    // The executor's own bound is for outputs that pass through memory of the host.
    options.limits.max_output_bytes =
        reference_result_.has_memory()
            ? std::min(options.limits.max_output_bytes, MostOutputBytes())
            : MostOutputBytes();
    return options;
  }

  bool AsksWhoComputes() const { return !request_.torch_may_compute(); }

  // What the windows, and the same call in the reference's process, leave of a GPU. Half of it is
  // for tags, unless nobody reads them.
  int64_t MostMemory(int64_t total_bytes) const {
    const SharedBufferSizes& sizes = reference_result_.shared_buffers;
    const auto windows = static_cast<int64_t>(sizes.in_bytes + sizes.out_bytes);
    const int64_t left = total_bytes - total_bytes / kReservedPart - kContextBytes - 2 * windows;
    return std::max(AsksWhoComputes() ? left / 2 : left, total_bytes / 8);
  }

  // A little arithmetic beside the kernels: it may not be as much as the task itself.
  static int64_t MostSmallElements(const RecordedCalls& recorded) {
    int64_t elements = 0;
    for (const at::Tensor& input : TensorsOf(recorded.visible().inputs[0])) {
      elements += input.numel();
    }
    return std::max(kLeastSmallElements, elements / 4);
  }

  // A larger result is wrong, whatever type its elements have.
  int64_t MostOutputBytes() const {
    int64_t most = 0;
    for (const std::vector<Leaf>& outputs : reference_result_.outputs) {
      int64_t elements = 0;
      for (const Leaf& leaf : outputs) elements += leaf.elements;
      most = std::max(most, elements);
    }
    return most * kMostElementBytes + kFreeOutputBytes;
  }

  // Compares all calls; looks at the recording of a right candidate; leaves kernels out.
  void JudgeSession(ExecutorSession* session, RecordedCalls* recorded) {
    if (result_.failure.has_value()) {
      finding_ = ExplainFailure(result_);
      if (!finding_.has_value()) finding_ = OwnWords(*result_.failure);
      return;
    }
    launches_ = recorded->Launches(session->recording());  // without counts, should a call fail
    if (AsksWhoComputes()) finding_ = JudgeRecording(result_, reference_result_.run);
    if (const absl::Status reads = recorded->CheckReads(result_, session); !reads.ok()) {
      finding_ = RuleFinding{Outcome::RUNTIME_ERROR, Message(reads), 0};
      return;
    }
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
    if (AsksWhoComputes() && !finding_.has_value() && recorded->OnlyCopies(compare, session)) {
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

  // While no other request uses the GPU.
  void Time(ExecutorSession* session, RecordedCalls* recorded, CallJudge* judge) {
    ReplaySides sides;
    sides.reference = [this](const nlohmann::json& order, const char* answer) {
      return reference_result_.session->Ask(
          {{"replays", order}}, answer,
          {.deadline = deadline_, .answer_timeout = absl::Seconds(limits_.wall_seconds())});
    };
    sides.begin = [&](bool direct) { return recorded->BeginTiming(direct, session); };
    sides.candidate = [&](const CandidateRound& round) -> absl::StatusOr<std::vector<double>> {
      TimeRequest request;
      request.count = round.count;
      request.with_launches = round.with_launches;
      request.output = round.checked;
      ASSIGN_OR_RETURN(std::vector<double> seconds, recorded->TimeReplays(request, session));
      // The paper's rules know no check of timed calls.
      if (!round.checked || request_.rules() == RULES_PAPER) return seconds;
      found_.timed = true;
      if (judge->Judge(0, 0, recorded->output())) return seconds;
      return absl::InvalidArgumentError("the output of a timed call is wrong");
    };
    sides.alone = [&] {
      if (context_.lease != nullptr && !context_.lease->AcquireExclusive(deadline_)) return false;
      recorded->set_deadline(LatestEnd());
      return true;
    };
    sides.launches = static_cast<int64_t>(session->recording().launches.size());
    for (const auto& [name, moved] : result_.traffic.operators) sides.operators += moved.calls;
    ReplayTiming timed = MeasureReplays(request_, reference_result_, sides);
    if (context_.lease != nullptr) context_.lease->ReturnToShared(deadline_);
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
    setup.until = std::min(deadline_, absl::Now() + absl::Seconds(limits_.wall_seconds() / 4));
    setup.call = [&](const AblatedCall& call) {
      return recorded->Ablated(call, setup.until, session);
    };
    found_.ablation = tritonrl::Ablate(setup, recorded->Kernels(session->recording()));
  }

  static RuleFinding ReplayFailed(const absl::Status& status) {
    const Outcome::Reason reason = absl::IsOutOfRange(status)         ? Outcome::OUT_OF_BOUNDS
                                   : absl::IsDeadlineExceeded(status) ? Outcome::TIMEOUT
                                                                      : Outcome::RUNTIME_ERROR;
    return {reason, Message(status), 0};
  }

  static RuleFinding OwnWords(const Failure& failure) {
    const std::string where = failure.line > 0 ? absl::StrCat(" at line ", failure.line) : "";
    const char* what = failure.phase == "import"    ? "the candidate does not import"
                       : failure.phase == "init"    ? "ModelNew cannot be constructed"
                       : failure.phase == "forward" ? "forward failed"
                                                    : "forward's result cannot be handed over";
    return {ReasonOf(failure), absl::StrCat(what, where, ": ", failure.kind, ": ", failure.text),
            failure.line};
  }

  void Apply(const RuleFinding& finding, ExecResult* result) const {
    SetOutcome(finding.reason, finding.message, result->mutable_outcome());
    result->mutable_outcome()->set_line(finding.line);
    if (!result_.failure.has_value()) return;
    result->mutable_outcome()->set_detail(result_.failure->text);
    const std::string& phase = result_.failure->phase;
    result->set_phase(phase == "init" ? "construct" : phase == "output" ? "forward" : phase);
  }

  static void EndedByExecutor(const absl::Status& status, bool out_of_memory, ExecResult* result) {
    const Outcome::Reason reason = absl::IsDeadlineExceeded(status)    ? Outcome::TIMEOUT
                                   : absl::IsResourceExhausted(status) ? Outcome::RUNTIME_ERROR
                                   : absl::IsInternal(status)          ? Outcome::INTERNAL_ERROR
                                                                       : Outcome::BAD_RESULT;
    // A limit that the pool enforced says more.
    if (reason == Outcome::TIMEOUT && result->outcome().reason() != Outcome::EXITED &&
        result->outcome().reason() != Outcome::DEADLINE) {
      return;
    }
    if (reason == Outcome::TIMEOUT && out_of_memory) {
      SetOutcome(Outcome::OUT_OF_MEMORY,
                 "the kernel ended one of the candidate's processes for its memory, and the others "
                 "did not finish in time",
                 result->mutable_outcome());
      return;
    }
    SetOutcome(reason, Message(status), result->mutable_outcome());
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

  const JobContext& context_;
  const ExecRequest& request_;
  const ReferenceResult& reference_result_;
  Executors& executors_;
  const ExecLimits& limits_;
  const absl::Time deadline_;
  const std::vector<int> calls_;

  std::optional<absl::Status> session_status_;
  absl::Status exchange_lost_;
  bool stayed_ = false;  // the process hung up, but did not end
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
  return ClientRun(context, reference_result, executors, limits, deadline).Run(clients);
}

}  // namespace tritonrl
