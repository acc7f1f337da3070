#include "exec/timing/timing_rounds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/random.h"
#include "base/status.h"

namespace tritonrl {

namespace {

using Json = nlohmann::json;

}  // namespace

void AddGpuStates(const Json& answer, std::vector<GpuState>* states) {
  const auto found = answer.find("gpu");
  if (found == answer.end() || !found->is_array()) return;
  for (const Json& json : *found) {
    if (!json.is_object()) continue;
    const auto throttled = json.find("throttled");
    states->push_back(
        {.sm_mhz = PositiveNumber(json, "sm_mhz"),
         .other_programs = static_cast<int>(std::min(PositiveNumber(json, "other_programs"), 1e6)),
         .throttled =
             throttled != json.end() && throttled->is_boolean() && throttled->get<bool>()});
  }
}

Json Member(const std::optional<std::string>& message, const char* name) {
  if (!message.has_value()) return nullptr;
  const Json json = Json::parse(*message, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.size() != 1 || !json.contains(name)) return nullptr;
  return json[name];
}

double PositiveNumber(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return 0;
  const double value = found->get<double>();
  return std::isfinite(value) && value > 0 ? value : 0;
}

bool RunTimedRound(const RoundRequest& order,
                   const std::function<std::optional<std::string>(const std::string&)>& ask,
                   TimedRound* round, bool* ended) {
  const Json message{{"round",
                      {{"calls", order.calls},
                       {"trial", order.trial},  // the trial loaded last
                       {"checked", order.checked},
                       {"spin_seconds", order.spin_seconds},
                       {"plain", order.plain}}}};
  const absl::Time start = absl::Now();
  const std::optional<std::string> reply = ask(message.dump());
  round->calls = order.calls;
  round->outside_seconds = absl::ToDoubleSeconds(absl::Now() - start);
  *ended = !reply.has_value();
  const Json answer = Member(reply, "round");
  if (!answer.is_object() || !answer.contains("seconds")) return false;
  const Json& seconds = answer["seconds"];
  if (!seconds.is_array() || seconds.size() != static_cast<size_t>(order.calls)) return false;
  for (const Json& value : seconds) {
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() <= 0) {
      return false;
    }
    round->event_seconds.push_back(value.get<double>());
  }
  AddGpuStates(answer, &round->gpu);
  return true;
}

namespace {

using Json = nlohmann::json;
using Kind = TimingResult::Kind;

constexpr int kMinBlocks = 4;           // before a narrow interval ends the timing
constexpr int kMinSlowBlocks = 3;       // even if the budget is used up
constexpr int kMaxBlocks = 30;          // more would not help: the remaining error is systematic
constexpr double kNarrow = 0.005;       // half width of an interval that is narrow enough
constexpr double kBudgetSeconds = 0.6;  // of rounds; meanwhile no other request may use the GPU
constexpr double kDoubtFactor = 3;      // multiplies the budget while the clocks disagree
constexpr uint64_t kMaxPads = 16;       // a block holds 0 to 15 padding allocations
constexpr int kBlocksOnTrial = 2;       // blocks on one trial, as loading large inputs takes time
constexpr int kMaxCalls = 8;            // maximum of n
constexpr double kRoundSeconds = 0.02;  // n is lowered so that a round of n takes about this long
constexpr int kPaperCalls = 10;
constexpr double kMaxPaperSeconds = 10;  // slower forwards get no paper's figure
// The GPU waits before each call until the host has queued all launches of the call.
constexpr double kSpinMargin = 1.5, kMinSpin = 30e-6, kMaxSpin = 2e-3;
constexpr double kShownBytes = 16 << 20;  // outputs up to this size are checked after every round
constexpr double kMinShown = 0.25;        // minimum share of rounds with a check
constexpr double kToleranceSeconds = 20e-6;
constexpr double kToleranceShare = 0.5;
constexpr double kSpinError = 0.1;

// The dialogue with the two sides and the times measured so far.
class Turns {
 public:
  Turns(const ExecRequest& request, const ReferenceResult& reference_result,
        const TimingSides& sides)
      : trials_(std::min(static_cast<int>(reference_result.inputs.size()), TrialsOf(request))),
        paper_rules_(request.rules() == RULES_PAPER),
        random_(MixKeys({request.seed(), 0x7153})),
        sides_(sides) {
    double bytes = 0;
    for (const Leaf& leaf :
         reference_result.outputs.empty() ? std::vector<Leaf>() : reference_result.outputs[0]) {
      if (leaf.kind == Leaf::Kind::kTensor) bytes += static_cast<double>(leaf.bytes());
    }
    shown_ = std::clamp(kShownBytes / std::max(bytes, 1.0), kMinShown, 1.0);
  }

  TimingResult Run() {
    if (!GetReady()) return result_;
    if (!Paper() || paper_rules_) return result_;
    for (int block = 0; block < kMaxBlocks && !Enough(block); ++block) {
      if (!Block((block / kBlocksOnTrial + 1) % trials_)) return result_;
    }
    result_.reference = Summarize(reference_rounds_);
    result_.candidate = Summarize(candidate_rounds_);
    result_.speedup = WithSystematicError(EstimateSpeedup(blocks_), blocks_);
    return result_;
  }

 private:
  // Returns the result of `part` and adds its duration to `seconds`.
  template <typename Part>
  static bool Timed(double* seconds, const Part& part) {
    const absl::Time start = absl::Now();
    const bool result = part();
    *seconds += absl::ToDoubleSeconds(absl::Now() - start);
    return result;
  }

  bool Failed(Kind kind, const std::string& text) {
    result_.kind = kind;
    result_.text = text;
    return false;
  }

  std::optional<std::string> AskReference(const std::string& order) {
    absl::StatusOr<std::string> answer = sides_.reference(order);
    if (answer.ok()) return *std::move(answer);
    why_ = Message(answer.status());
    return std::nullopt;
  }

  std::optional<std::string> AskCandidate(const std::string& order) {
    sides_.candidate->Send(order);
    return sides_.candidate->Next();
  }

  bool TimerFailed(const char* what) {
    return Failed(Kind::kTimerFailed,
                  absl::StrCat("timing the reference failed: ", what, ": ", why_));
  }

  // Waits until both sides are ready and alone on the GPU, then starts the reference's side: all
  // candidates of the task share the reference process, so it must not start earlier.
  bool GetReady() {
    std::optional<std::string> message;
    const bool ready = Timed(&result_.ready_seconds, [&] {
      if (Member(AskReference(Json{{"prepare", true}}.dump()), "prepared") != true) {
        return TimerFailed("it never got ready");
      }
      message = sides_.candidate->Next();
      return message.has_value() || Failed(Kind::kCandidateEnded, "");
    });
    if (!ready) return false;
    const Json candidate = Member(message, "ready");
    if (!candidate.is_object()) {
      return Failed(Kind::kBadMessage, "it did not say that it is ready for timing");
    }
    if (!Timed(&result_.wait_seconds, sides_.alone)) {
      why_ = "others used the GPU until the caller's deadline";
      return TimerFailed("it never began");
    }
    const Json reference = Member(AskReference(Json{{"begin", true}}.dump()), "ready");
    if (!reference.is_object()) return TimerFailed("it did not begin");
    NoteReady(reference, candidate);
    return true;
  }

  void NoteReady(const Json& reference, const Json& candidate) {
    result_.bytes_per_second = PositiveNumber(reference, "bytes_per_second");
    result_.operations_per_second = PositiveNumber(reference, "operations_per_second");
    // The candidate's figures are not trusted: they can only shorten rounds and lengthen the wait.
    one_call_ = std::max(
        {PositiveNumber(reference, "seconds"), PositiveNumber(candidate, "seconds"), 1e-6});
    const double enqueue = std::max(PositiveNumber(reference, "enqueue_seconds"),
                                    PositiveNumber(candidate, "enqueue_seconds"));
    spin_ = std::clamp(kSpinMargin * enqueue + kMinSpin, kMinSpin, kMaxSpin);
    result_.spin_seconds = spin_;
  }

  // Measures the paper's figure: the mean of ten successive calls on each side.
  bool Paper() {
    if (!paper_rules_ && 2 * kPaperCalls * one_call_ > kMaxPaperSeconds) return true;
    double mean[2] = {0, 0};
    for (const bool is_candidate : {false, true}) {
      TimedRound round;
      if (!Turn(is_candidate, {.calls = kPaperCalls, .trial = 0, .plain = true}, &round)) {
        return false;
      }
      for (const double seconds : round.event_seconds) mean[is_candidate] += seconds / kPaperCalls;
    }
    result_.paper_speedup = mean[0] / mean[1];
    if (paper_rules_) {
      result_.paper_rules = true;
      result_.reference.event = mean[0];
      result_.candidate.event = mean[1];
    }
    return true;
  }

  // Makes both sides load a trial's inputs, so that the time of a round does not include this.
  bool Load(int trial) {
    if (std::exchange(loaded_, trial) == trial) return true;
    const std::string order = Json{{"load", trial}}.dump();
    if (const absl::Status provided = sides_.provide(trial); !provided.ok()) {
      why_ = Message(provided);
      return TimerFailed("it did not hand over inputs");
    }
    return TellBoth(order, order, "loaded");
  }

  // Moves the sides' allocations to other GPU addresses in each block: an address that slows a
  // kernel down then widens the interval instead of showing as a difference between the programs.
  bool Move() {
    const auto order = [&] { return Json{{"move", random_.Below(kMaxPads)}}.dump(); };
    const std::string reference = order();
    return TellBoth(reference, order(), "moved");
  }

  // Sends one order to each side at the same time; each answers with `done`.
  bool TellBoth(const std::string& reference, const std::string& candidate, const char* done) {
    sides_.candidate->Send(candidate);
    if (Member(AskReference(reference), done) != true) {
      return TimerFailed("it did not get ready for a timed round");
    }
    const std::optional<std::string> reply = sides_.candidate->Next();
    if (!reply.has_value()) return Failed(Kind::kCandidateEnded, "");
    return Member(reply, done) == true ||
           Failed(Kind::kBadMessage, "it did not get ready for a timed round");
  }

  bool Block(int trial) {
    if (!Timed(&result_.load_seconds, [&] { return Load(trial) && Move(); })) return false;
    const int calls = std::clamp(static_cast<int>(kRoundSeconds / one_call_), 1, kMaxCalls);
    std::vector<double> seconds[2];
    for (const auto& [is_candidate, factor] : BlockOrder()) {
      TimedRound round;
      if (!Turn(is_candidate, {.calls = factor * calls, .trial = trial, .spin_seconds = spin_},
                &round)) {
        return false;
      }
      used_seconds_ += round.outside_seconds;
      std::vector<double>* const side = &seconds[is_candidate];
      side->insert(side->end(), round.event_seconds.begin(), round.event_seconds.end());
      (is_candidate ? candidate_rounds_ : reference_rounds_).push_back(std::move(round));
    }
    blocks_.push_back({Median(std::move(seconds[0])), Median(std::move(seconds[1]))});
    result_.ratios.push_back(blocks_.back().reference / blocks_.back().candidate);
    return true;
  }

  bool Enough(int blocks) const {
    if (blocks < kMinSlowBlocks) return false;
    // A busy host delays rounds, so it takes more of them until some of each length are undelayed.
    const double budget = ClocksAgree() ? kBudgetSeconds : kDoubtFactor * kBudgetSeconds;
    if (used_seconds_ > budget) return true;
    return blocks >= kMinBlocks && ClocksAgree() && EstimateSpeedup(blocks_).HalfWidth() < kNarrow;
  }

  bool ClocksAgree() const {
    const TimePerCall candidate = Summarize(candidate_rounds_);
    return IsBelievable(candidate.event, OutsideSeconds(Summarize(reference_rounds_), candidate),
                        spin_);
  }

  bool Turn(bool is_candidate, RoundRequest order, TimedRound* round) {
    order.checked = static_cast<int>(random_.Below(static_cast<uint64_t>(order.calls)));
    bool ended = false;
    const auto ask = [&](const std::string& message) {
      return is_candidate ? AskCandidate(message) : AskReference(message);
    };
    const bool answered =
        Timed(&result_.round_seconds, [&] { return RunTimedRound(order, ask, round, &ended); });
    if (!answered) {
      if (!is_candidate) return TimerFailed("it did not answer a round");
      if (ended) return Failed(Kind::kCandidateEnded, "");
      return Failed(Kind::kBadMessage, "its answer to a timed round makes no sense");
    }
    if (!is_candidate) {
      result_.gpu.insert(result_.gpu.end(), round->gpu.begin(), round->gpu.end());
      return true;
    }
    const bool first = std::exchange(first_round_, false);
    if (random_.Uniform() >= shown_ && !first) return true;
    return Timed(&result_.check_seconds, [&] { return Show(order.trial); });
  }

  // Makes the candidate hand over the output of the round's checked call, and checks it.
  bool Show(int trial) {
    const std::optional<std::string> reply = AskCandidate(Json{{"show", true}}.dump());
    if (!reply.has_value()) return Failed(Kind::kCandidateEnded, "");
    const Json output = Member(reply, "output");
    if (output.is_null()) {
      return Failed(Kind::kBadMessage, "it did not hand over the output of a timed round");
    }
    return sides_.check_output(trial, output.dump()) || Failed(Kind::kWrongOutput, "");
  }

  const int trials_;
  const bool paper_rules_;
  Philox random_;
  const TimingSides& sides_;
  std::string why_;          // why the reference's side gave no answer
  double shown_ = 1;         // share of rounds whose output is checked
  double one_call_ = 0;      // seconds of one call on the slower side
  double spin_ = 0;          // seconds
  double used_seconds_ = 0;  // of the budget, by the rounds of blocks
  bool first_round_ = true;  // of the candidate
  int loaded_ = 0;           // the trial whose inputs both sides have loaded
  TimingResult result_;
  std::vector<TimedBlock> blocks_;
  std::vector<TimedRound> reference_rounds_, candidate_rounds_;
};

}  // namespace

const std::vector<BlockRound>& BlockOrder() {
  static const auto& order = *new std::vector<BlockRound>{
      {false, 1}, {true, 1}, {true, 2}, {false, 2}, {false, 2}, {true, 2}, {true, 1}, {false, 1}};
  return order;
}

TimePerCall Summarize(const std::vector<TimedRound>& rounds) {
  TimePerCall result;
  std::vector<double> events;
  std::map<int, double> shortest;  // by number of calls
  for (const TimedRound& round : rounds) {
    events.insert(events.end(), round.event_seconds.begin(), round.event_seconds.end());
    const auto [place, first] = shortest.emplace(round.calls, round.outside_seconds);
    if (!first) place->second = std::min(place->second, round.outside_seconds);
  }
  result.event = Median(std::move(events));
  if (shortest.size() > 1) {
    const auto& [few, few_seconds] = *shortest.begin();
    const auto& [many, many_seconds] = *shortest.rbegin();
    result.outside = (many_seconds - few_seconds) / (many - few);
  }
  return result;
}

double OutsideSeconds(const TimePerCall& reference, const TimePerCall& candidate) {
  return candidate.outside - (reference.outside - reference.event);
}

bool IsBelievable(double event_seconds, double outside_seconds, double spin_seconds) {
  return event_seconds >= outside_seconds - std::max(kToleranceSeconds + kSpinError * spin_seconds,
                                                     kToleranceShare * outside_seconds);
}

TimingResult MeasureInterleaved(const ExecRequest& request, const ReferenceResult& reference_result,
                                const TimingSides& sides) {
  TimingResult result = Turns(request, reference_result, sides).Run();
  sides.candidate->Send(Json{{"done", true}}.dump());
  // An error is ignored: a process that cannot answer has no timing to end.
  (void)sides.reference(Json{{"end", true}}.dump());
  return result;
}

}  // namespace tritonrl
