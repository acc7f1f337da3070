#include "exec/candidate/window_exchange.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/reference/reference_process.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

absl::Status Nonsense(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("the reference's process told of ", what));
}

// Numbers come as text, since they may be NaN or infinite.
absl::Status ReadNumber(const Json& json, const char* name, double* value) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string() ||
      !absl::SimpleAtod(found->get<std::string>(), value)) {
    return Nonsense("a comparison without all its numbers");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> ReadElement(const Json& json, const char* name) {
  std::vector<double> parts;
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array() || found->size() > 2) {
    return Nonsense("a comparison without its elements");
  }
  for (const Json& part : *found) {
    if (!part.is_string() || !absl::SimpleAtod(part.get<std::string>(), &parts.emplace_back())) {
      return Nonsense("an element that is no number");
    }
  }
  return parts;
}

class WindowExchange : public TensorExchange {
 public:
  WindowExchange(const ExecRequest& request, const ReferenceResult& reference_result,
                 absl::Duration call_limit, absl::Time deadline, WaitedTime* queued)
      : request_(request),
        reference_result_(reference_result),
        call_limit_(call_limit),
        deadline_(deadline),
        queued_(queued) {}

  absl::Status Open() {
    ASSIGN_OR_RETURN(const Json opened, Ask({{"open", true}}, "opened", &windows_));
    if (!opened.is_object() || !opened.contains("session") ||
        !opened["session"].is_number_integer() || windows_.size() != 2) {
      return Nonsense("windows that it did not open");
    }
    session_ = opened["session"].get<int64_t>();
    return absl::OkStatus();
  }

  ~WindowExchange() override {
    for (const int fd : windows_) close(fd);
    if (session_ > 0) (void)Ask({{"close", {{"session", session_}}}}, "closed");
  }

  std::vector<JobFd> fds() const override {
    return {{"visible", windows_[0]}, {"memory", windows_[1]}};
  }
  uint64_t memory_bytes() const override { return reference_result_.shared_buffers.out_bytes; }

  absl::Status Provide(int trial) override {
    if (!reference_result_.shared_buffers.in_turn || provided_ == trial) return absl::OkStatus();
    RETURN_IF_ERROR(Ask({{"fill", {{"session", session_}, {"trial", trial}}}}, "filled").status());
    provided_ = trial;
    return absl::OkStatus();
  }

  absl::StatusOr<Comparison> Compare(size_t call, const std::vector<Leaf>& output) override {
    const Tolerance tolerance = reference_result_.ToleranceOf(request_, call);
    const auto compare = [&](int index, const Leaf& want,
                             const Leaf& got) -> absl::StatusOr<Difference> {
      Json order = ToleranceJson(tolerance, index, want);
      order["session"] = session_;
      order["call"] = call;
      order["leaf"] = index;
      order["offset"] = *got.offset;
      ASSIGN_OR_RETURN(const Json answer, Ask({{"compare", std::move(order)}}, "difference"));
      ASSIGN_OR_RETURN(Difference found, ParseDifference(answer));
      found.exactly = ExactOf(tolerance, index, want) != nullptr;
      return found;
    };
    return CompareOutputs(reference_result_.outputs[call], output, tolerance, compare);
  }

  absl::StatusOr<InputSensitivity> Follow(size_t call, int leaf, const Leaf& got) override {
    const Json order = {{"session", session_},
                        {"call", call},
                        {"leaf", leaf},
                        {"offset", *got.offset},
                        {"step", SensitivitySampleStep(got.elements)},
                        {"rounding", SensitivityRoundingShare(got.type)}};
    ASSIGN_OR_RETURN(const Json answer, Ask({{"follow", order}}, "followed"));
    InputSensitivity sums;
    if (!answer.is_object() || !answer.contains("elements") ||
        !answer["elements"].is_number_unsigned()) {
      return Nonsense("a result that follows nothing");
    }
    sums.elements = answer["elements"].get<int64_t>();
    RETURN_IF_ERROR(ReadNumber(answer, "variation", &sums.variation));
    RETURN_IF_ERROR(ReadNumber(answer, "covariance", &sums.covariance));
    RETURN_IF_ERROR(ReadNumber(answer, "own_variation", &sums.own_variation));
    RETURN_IF_ERROR(ReadNumber(answer, "rounding", &sums.rounding));
    return sums;
  }

  bool inputs_come_back() const override { return false; }
  bool SameInputs(int, const std::vector<Leaf>&) const override { return false; }

  absl::Status Keep(const std::vector<Leaf>& output) override {
    kept_ = output;
    uint64_t bytes = 0;
    for (const Leaf& leaf : output) {
      if (leaf.offset.has_value()) {
        bytes = std::max(bytes, *leaf.offset + static_cast<uint64_t>(leaf.bytes()));
      }
    }
    return Ask({{"keep", {{"session", session_}, {"bytes", bytes}}}}, "kept").status();
  }

  absl::StatusOr<bool> IsSameAsKept(const std::vector<Leaf>& output) override {
    if (!SameStructure(output, kept_)) return false;
    Json leaves = Json::array();
    for (size_t i = 0; i < output.size(); ++i) {
      if (output[i].kind != Leaf::Kind::kTensor || output[i].elements == 0) continue;
      leaves.push_back({{"dtype", output[i].dtype},
                        {"elements", output[i].elements},
                        {"offset", *output[i].offset},
                        {"kept_offset", *kept_[i].offset}});
    }
    ASSIGN_OR_RETURN(
        const Json same,
        Ask({{"same", {{"session", session_}, {"leaves", leaves}, {"share", kSameOutputShare}}}},
            "same"));
    if (!same.is_boolean()) return Nonsense("something that is neither the same nor not");
    return same.get<bool>();
  }

  absl::StatusOr<std::string> AskTimer(const std::string& order) override {
    const Json inner = Json::parse(order, nullptr, /*allow_exceptions=*/false);
    if (!inner.is_object() || inner.empty()) return absl::InternalError("no order to a timer");
    const std::string name = inner.begin().key();
    const char* const answer = name == "prepare" ? "prepared"
                               : name == "begin" ? "ready"
                               : name == "load"  ? "loaded"
                               : name == "move"  ? "moved"
                               : name == "end"   ? "ended"
                                                 : "round";
    ASSIGN_OR_RETURN(Json value, Ask({{"time", inner}}, answer));
    return Json{{answer, std::move(value)}}.dump();
  }

 private:
  absl::StatusOr<Json> Ask(const Json& order, const char* answer, std::vector<int>* fds = nullptr) {
    // Giving back what was opened is no matter of the candidate's time.
    const absl::Time deadline = order.contains("close") ? absl::Now() + call_limit_ : deadline_;
    return reference_result_.session->Ask(
        order, answer,
        {.deadline = deadline, .answer_timeout = call_limit_, .fds = fds, .queued = queued_});
  }

  const ExecRequest& request_;
  const ReferenceResult& reference_result_;
  const absl::Duration call_limit_;
  const absl::Time deadline_;
  WaitedTime* const queued_;
  std::vector<int> windows_;  // in, out
  int64_t session_ = 0;
  int provided_ = 0;  // a fresh window holds the first trial
  std::vector<Leaf> kept_;
};

}  // namespace

absl::StatusOr<Difference> ParseDifference(const Json& json) {
  if (!json.is_object()) return Nonsense("a comparison that is none");
  Difference found;
  RETURN_IF_ERROR(ReadNumber(json, "largest", &found.largest));
  const auto share = json.find("share");
  if (share != json.end() && !share->is_null()) {
    found.share = 0;
    RETURN_IF_ERROR(ReadNumber(json, "share", &*found.share));
    RETURN_IF_ERROR(ReadNumber(json, "share_error", &found.share_error));
    RETURN_IF_ERROR(ReadNumber(json, "share_tolerance", &found.share_tolerance));
  }
  const auto bad = json.find("bad");
  if (bad == json.end() || !bad->is_number_integer() || *bad < 0) {
    return Nonsense("a comparison that counts nothing");
  }
  found.bad = bad->get<int64_t>();
  if (found.bad == 0) return found;
  const auto first = json.find("first"), nan = json.find("nan");
  if (first == json.end() || !first->is_number_integer() || nan == json.end() ||
      !nan->is_boolean()) {
    return Nonsense("elements that differ, but not which");
  }
  found.first = first->get<int64_t>();
  found.nan = nan->get<bool>();
  RETURN_IF_ERROR(ReadNumber(json, "error", &found.error));
  RETURN_IF_ERROR(ReadNumber(json, "tolerance", &found.tolerance));
  ASSIGN_OR_RETURN(const std::vector<double> want, ReadElement(json, "want"));
  ASSIGN_OR_RETURN(const std::vector<double> got, ReadElement(json, "got"));
  found.want = ElementText(want, 9);
  found.got = ElementText(got, 9);
  found.want_short = ElementText(want, 6);
  found.got_short = ElementText(got, 6);
  return found;
}

Json ToleranceJson(const Tolerance& tolerance, int index, const Leaf& want) {
  if (const ExactLeaf* exact = ExactOf(tolerance, index, want); exact != nullptr) {
    return {{"exact", true}, {"absolute", exact->absolute}, {"relative", exact->relative}};
  }
  return {{"atol", tolerance.atol}, {"rtol", tolerance.rtol}};
}

absl::StatusOr<std::unique_ptr<TensorExchange>> OpenWindows(const ExecRequest& request,
                                                            const ReferenceResult& reference_result,
                                                            absl::Duration call_limit,
                                                            absl::Time deadline,
                                                            WaitedTime* queued) {
  auto exchange =
      std::make_unique<WindowExchange>(request, reference_result, call_limit, deadline, queued);
  RETURN_IF_ERROR(exchange->Open());
  return exchange;
}

}  // namespace tritonrl
