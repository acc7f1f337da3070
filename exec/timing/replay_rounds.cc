#include "exec/timing/replay_rounds.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/timing/speedup.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;
using Kind = TimingResult::Kind;

constexpr int kRounds = 6;                 // of each side; even, so that each is first as often
constexpr int kMinCalls = 2;               // of a round
constexpr int kMaxCalls = 20;              // of a round
constexpr double kRoundSeconds = 0.01;     // of calls and what is around them
constexpr double kAroundSeconds = 150e-6;  // of one call: the flush, and what is put back
constexpr int kPaperCalls = 10;
constexpr double kMaxPaperSeconds = 0.5;  // slower forwards get no paper's figure
constexpr double kShownBytes = 16 << 20;  // outputs up to this size are checked after every round
// What Python's host takes, as multiples of an operator of torch in a loop: the call of a module
// and the events around it, a launch by Triton, an operator of the candidate.
constexpr double kCall = 3.2;
constexpr double kLaunch = 3.2;
constexpr double kOperator = 0.8;
constexpr double kMaxHostSeconds = 100e-6;  // for one operator: a host so slow is not believed

class Rounds {
 public:
  Rounds(const ExecRequest& request, const ReferenceResult& reference_result,
         const ReplaySides& sides)
      : paper_rules_(request.rules() == RULES_PAPER), sides_(sides) {
    for (const Leaf& leaf :
         reference_result.outputs.empty() ? std::vector<Leaf>() : reference_result.outputs[0]) {
      if (leaf.kind == Leaf::Kind::kTensor) bytes_ += static_cast<double>(leaf.bytes());
    }
  }

  ReplayTiming Run() {
    if (!GetReady() || !Estimate() || !Paper() || paper_rules_) return std::move(timing_);
    std::vector<TimedBlock> blocks;
    std::vector<double> all[2];
    for (int round = 0; round < kRounds; ++round) {
      TimedBlock block;
      // Reference and candidate, then candidate and reference: a drift is the same for both.
      for (const bool is_candidate : {round % 2 == 1, round % 2 == 0}) {
        std::vector<double> seconds;
        const bool first_or_last = round == 0 || round == kRounds - 1;
        if (!Turn(is_candidate, first_or_last || bytes_ <= kShownBytes, &seconds)) {
          return std::move(timing_);
        }
        all[is_candidate].insert(all[is_candidate].end(), seconds.begin(), seconds.end());
        (is_candidate ? block.candidate : block.reference) = Median(std::move(seconds));
      }
      blocks.push_back(block);
      result_.ratios.push_back(block.reference / block.candidate);
    }
    result_.reference_seconds = Median(std::move(all[0]));
    result_.candidate_seconds = Median(std::move(all[1]));
    result_.speedup = WithSystematicError(EstimateSpeedup(blocks), blocks);
    return std::move(timing_);
  }

 private:
  template <typename Part>
  static auto Timed(double* seconds, const Part& part) {
    const absl::Time start = absl::Now();
    auto result = part();
    *seconds += absl::ToDoubleSeconds(absl::Now() - start);
    return result;
  }

  bool TimerFailed(const absl::Status& status) {
    result_.kind = Kind::kTimerFailed;
    result_.text = absl::StrCat("timing the reference failed: ", Message(status));
    return false;
  }

  bool CandidateFailed(const absl::Status& status) {
    result_.kind = absl::IsInvalidArgument(status) ? Kind::kWrongOutput : Kind::kCandidateEnded;
    timing_.candidate = status;
    return false;
  }

  // The reference's process may have to make its model anew: it does so before others must wait.
  bool GetReady() {
    if (!Timed(&result_.wait_seconds, sides_.alone)) {
      return TimerFailed(
          absl::DeadlineExceededError("others used the GPU until the caller's deadline"));
    }
    return Timed(&result_.ready_seconds, [&] { return Begin(); });
  }

  bool Begin() {
    std::string why;
    if (!BeginReference(true, &why)) return false;
    const bool captured = why.empty();
    const absl::StatusOr<std::string> candidate = sides_.begin(!captured);
    if (!candidate.ok()) return CandidateFailed(candidate.status());
    if (captured && !candidate->empty()) {
      if (!BeginReference(false, &why)) return false;
      why = absl::StrCat("the candidate's call: ", *candidate);
    } else if (!captured) {
      why = absl::StrCat("the reference's call: ", why);
    }
    timing_.not_a_graph = why;
    return true;
  }

  bool BeginReference(bool graph, std::string* why) {
    const absl::StatusOr<Json> begun = sides_.reference({{"begin", {{"graph", graph}}}}, "begun");
    if (!begun.ok()) return TimerFailed(begun.status());
    if (!begun->is_object() || !begun->contains("not_a_graph") ||
        !(*begun)["not_a_graph"].is_string()) {
      return TimerFailed(absl::InternalError("its answer makes no sense"));
    }
    *why = (*begun)["not_a_graph"].get<std::string>();
    result_.bytes_per_second = PositiveNumber(*begun, "bytes_per_second");
    result_.operations_per_second = PositiveNumber(*begun, "operations_per_second");
    operator_seconds_ = PositiveNumber(*begun, "operator_seconds");
    return true;
  }

  bool ReferenceSeconds(const char* what, int count, std::vector<double>* seconds) {
    const absl::StatusOr<Json> timed = sides_.reference({{what, count}}, "timed");
    if (!timed.ok()) return TimerFailed(timed.status());
    const Json list = timed->is_object() ? timed->value("seconds", Json()) : Json();
    if (!list.is_array() || list.size() != static_cast<size_t>(count)) {
      return TimerFailed(absl::InternalError("its answer makes no sense"));
    }
    for (const Json& value : list) {
      if (!value.is_number() || !(value.get<double>() > 0)) {
        return TimerFailed(absl::InternalError("its answer makes no sense"));
      }
      seconds->push_back(value.get<double>());
    }
    AddGpuStates(*timed, &result_.gpu);
    return true;
  }

  bool CandidateSeconds(const CandidateRound& round, std::vector<double>* seconds) {
    absl::StatusOr<std::vector<double>> timed = sides_.candidate(round);
    if (!timed.ok()) return CandidateFailed(timed.status());
    *seconds = *std::move(timed);
    return true;
  }

  // So many calls that a round of the slower side is short.
  bool Estimate() {
    std::vector<double> reference, candidate;
    if (!ReferenceSeconds("count", 1, &reference)) return false;
    if (!CandidateSeconds({.checked = true}, &candidate)) return false;
    one_call_ = std::max(reference[0], candidate[0]);
    calls_ = std::clamp(static_cast<int>(kRoundSeconds / (one_call_ + kAroundSeconds)), kMinCalls,
                        kMaxCalls);
    return true;
  }

  bool Turn(bool is_candidate, bool checked, std::vector<double>* seconds) {
    return Timed(&result_.round_seconds, [&] {
      return is_candidate ? CandidateSeconds({.count = calls_, .checked = checked}, seconds)
                          : ReferenceSeconds("count", calls_, seconds);
    });
  }

  bool Paper() {
    if (!paper_rules_ && one_call_ > kMaxPaperSeconds) return true;
    std::vector<double> reference, candidate;
    const bool timed = Timed(&result_.round_seconds, [&] {
      return ReferenceSeconds("plain", kPaperCalls, &reference) &&
             CandidateSeconds({.count = kPaperCalls, .with_launches = true}, &candidate);
    });
    if (!timed) return false;
    double mean = 0;
    for (const double seconds : reference) mean += seconds / kPaperCalls;
    const double seconds =
        PaperSeconds(candidate[0], operator_seconds_, sides_.launches, sides_.operators);
    result_.paper_speedup = mean / seconds;
    if (paper_rules_) {
      result_.paper_rules = true;
      result_.reference_seconds = mean;
      result_.candidate_seconds = seconds;
    }
    return true;
  }

  const bool paper_rules_;
  const ReplaySides& sides_;
  ReplayTiming timing_;
  TimingResult& result_ = timing_.result;
  double bytes_ = 0;  // of the output
  double operator_seconds_ = 0;
  double one_call_ = 0;  // seconds on the slower side
  int calls_ = 1;        // of a round
};

}  // namespace

double PaperSeconds(double replay_seconds, double operator_seconds, int64_t launches,
                    int64_t operators) {
  const double one = std::clamp(operator_seconds, 0.0, kMaxHostSeconds);
  const double host = one * (kCall + kLaunch * static_cast<double>(launches) +
                             kOperator * static_cast<double>(operators));
  const double first = one * (kCall + (launches > 0 ? kLaunch : 0));
  return std::max(host, first + replay_seconds);
}

ReplayTiming MeasureReplays(const ExecRequest& request, const ReferenceResult& reference_result,
                            const ReplaySides& sides) {
  ReplayTiming timing = Rounds(request, reference_result, sides).Run();
  // An error is ignored: a process that cannot answer has no timing to end.
  (void)sides.reference({{"end", true}}, "ended");
  return timing;
}

}  // namespace tritonrl
