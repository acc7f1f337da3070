#include "exec/timing_rounds.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/classify.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;
using Kind = TimingResult::Kind;

constexpr int kBlocks = 3;              // A B B A so often, with n, n, 2n and 2n calls
constexpr int kMostCalls = 8;           // n
constexpr double kRoundSeconds = 0.05;  // n is lowered so that a round of n takes about this long
constexpr double kToleranceSeconds = 20e-6;
constexpr double kToleranceShare = 0.5;

// A job's message as an object with the one member `name`; null if it is anything else.
Json Member(const std::optional<std::string>& message, const char* name) {
  if (!message.has_value()) return nullptr;
  const Json json = Json::parse(*message, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.size() != 1 || !json.contains(name)) return nullptr;
  return json[name].is_object() ? json[name] : Json();
}

double PositiveNumber(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return 0;
  const double value = found->get<double>();
  return std::isfinite(value) && value > 0 ? value : 0;
}

// Orders one round and reads its times; the layout of its last output goes to `output`. False when
// the answer is not what was asked for.
bool OrderRound(int calls, int trial, JobDialogue* job, TimedRound* round, std::string* output,
                bool* ended) {
  const absl::Time start = absl::Now();
  job->Send(Json{{"round", {{"calls", calls}, {"trial", trial}}}}.dump());
  const std::optional<std::string> message = job->Next();
  round->calls = calls;
  round->outside_seconds = absl::ToDoubleSeconds(absl::Now() - start);
  *ended = !message.has_value();
  const Json answer = Member(message, "round");
  if (!answer.is_object() || !answer.contains("output") || !answer.contains("seconds")) {
    return false;
  }
  const Json& seconds = answer["seconds"];
  if (!seconds.is_array() || seconds.size() != static_cast<size_t>(calls)) return false;
  for (const Json& value : seconds) {
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() <= 0) {
      return false;
    }
    round->event_seconds.push_back(value.get<double>());
  }
  *output = answer["output"].dump();
  return true;
}

// The two sides and what they have said so far.
class Turns {
 public:
  Turns(int trials, JobDialogue* timer, JobDialogue* candidate, const JudgeOutput& judge)
      : trials_(trials), timer_(timer), candidate_(candidate), judge_(judge) {}

  TimingResult Run() {
    const Json reference = Member(timer_->Next(), "ready");
    if (!reference.is_object()) return Failed(Kind::kTimerFailed, "it never got ready");
    const std::optional<std::string> message = candidate_->Next();
    if (!message.has_value()) return Failed(Kind::kCandidateEnded, "");
    if (!Member(message, "ready").is_object()) {
      return Failed(Kind::kBadMessage, "it did not say that it is ready for timing");
    }
    result_.bytes_per_second = PositiveNumber(reference, "bytes_per_second");
    const double one_call = std::max(PositiveNumber(reference, "seconds"), 1e-6);
    const int calls = std::clamp(static_cast<int>(kRoundSeconds / one_call), 1, kMostCalls);
    for (int block = 0; block < kBlocks; ++block) {
      const int trial = (block + 1) % trials_;
      for (const auto& [is_candidate, factor] :
           {std::pair(false, 1), {true, 1}, {true, 2}, {false, 2}}) {
        if (!Turn(is_candidate, factor * calls, trial)) return result_;
      }
    }
    result_.reference = Summarize(reference_rounds_);
    result_.candidate = Summarize(candidate_rounds_);
    return result_;
  }

 private:
  TimingResult Failed(Kind kind, const std::string& text) {
    result_.kind = kind;
    result_.text = text;
    return result_;
  }

  bool Turn(bool is_candidate, int calls, int trial) {
    TimedRound round;
    std::string output;
    bool ended = false;
    if (!OrderRound(calls, trial, is_candidate ? candidate_ : timer_, &round, &output, &ended)) {
      if (!is_candidate)
        Failed(Kind::kTimerFailed, "it did not answer a round");
      else if (ended)
        Failed(Kind::kCandidateEnded, "");
      else
        Failed(Kind::kBadMessage, "its answer to a timed round makes no sense");
      return false;
    }
    if (is_candidate && !judge_(trial, output)) {
      Failed(Kind::kWrongOutput, "");
      return false;
    }
    (is_candidate ? candidate_rounds_ : reference_rounds_).push_back(std::move(round));
    return true;
  }

  const int trials_;
  JobDialogue* const timer_;
  JobDialogue* const candidate_;
  const JudgeOutput& judge_;
  TimingResult result_;
  std::vector<TimedRound> reference_rounds_, candidate_rounds_;
};

}  // namespace

TimePerCall Summarize(const std::vector<TimedRound>& rounds) {
  TimePerCall result;
  double sum = 0;
  int64_t events = 0;
  std::vector<double> slopes;
  for (size_t i = 0; i < rounds.size(); ++i) {
    for (const double seconds : rounds[i].event_seconds) sum += seconds;
    events += static_cast<int64_t>(rounds[i].event_seconds.size());
    if (i % 2 == 0) continue;
    const int more = rounds[i].calls - rounds[i - 1].calls;
    if (more != 0) {
      slopes.push_back((rounds[i].outside_seconds - rounds[i - 1].outside_seconds) / more);
    }
  }
  if (events > 0) result.event = sum / static_cast<double>(events);
  if (!slopes.empty()) {
    std::nth_element(slopes.begin(), slopes.begin() + slopes.size() / 2, slopes.end());
    result.outside = slopes[slopes.size() / 2];
  }
  return result;
}

double OutsideSeconds(const TimePerCall& reference, const TimePerCall& candidate) {
  return candidate.outside - (reference.outside - reference.event);
}

bool IsBelievable(double event_seconds, double outside_seconds) {
  return event_seconds >=
         outside_seconds - std::max(kToleranceSeconds, kToleranceShare * outside_seconds);
}

TimingResult TimeInTurns(const JobContext& context, const OracleResult& oracle,
                         WorkerPool* oracle_pool, const ExecLimits& limits, absl::Time deadline,
                         JobDialogue* candidate, const JudgeOutput& judge) {
  TimingResult failed{.kind = Kind::kTimerFailed};
  absl::StatusOr<SharedMemory> memory =
      SharedMemory::Create("memory", static_cast<uint64_t>(limits.memory_bytes()));
  if (!memory.ok()) {
    failed.text = Message(memory.status());
    return failed;
  }
  auto timer =
      JobDialogue::Start(oracle_pool, TimerJobJson(context, oracle.visible_layout), limits,
                         deadline, {{"visible", oracle.visible.fd()}, {"memory", memory->fd()}});
  if (!timer.ok()) {
    failed.text = Message(timer.status());
    return failed;
  }
  const int trials = TrialsOf(context.request);  // not on variants: other shapes take other times
  TimingResult result = Turns(trials, timer->get(), candidate, judge).Run();
  const std::string end = Json{{"done", true}}.dump();
  candidate->Send(end);
  (*timer)->Send(end);
  const ExecResult timed = Classify((*timer)->Finish(), limits, JobRole::kTimer);
  if (result.kind == Kind::kTimerFailed) {
    result.text = absl::StrCat("timing the reference failed: ", result.text, ": ", timed.message());
  }
  return result;
}

}  // namespace tritonrl
