#include "exec/client_run/call_windows.h"

#include <unistd.h>

#include <algorithm>
#include <string>

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

}  // namespace

absl::StatusOr<std::unique_ptr<CallWindows>> CallWindows::Open(
    const ExecRequest& request, const ReferenceResult& reference_result, absl::Duration call_limit,
    absl::Time deadline) {
  std::unique_ptr<CallWindows> windows(
      new CallWindows(request, reference_result, call_limit, deadline));
  RETURN_IF_ERROR(windows->OpenWindows());
  return windows;
}

absl::Status CallWindows::OpenWindows() {
  std::vector<int> fds;
  ASSIGN_OR_RETURN(const Json opened, Ask({{"open", true}}, "opened", &fds));
  if (!opened.is_object() || !opened.contains("session") ||
      !opened["session"].is_number_integer() || fds.size() != 2) {
    for (const int fd : fds) close(fd);
    return Nonsense("windows that it did not open");
  }
  session_ = opened["session"].get<int64_t>();
  const SharedBufferSizes& sizes = reference_result_.shared_buffers;
  auto exchange = std::make_shared<device::Exchange>();
  // Each takes its descriptor over in any case.
  auto inputs = device::ReserveWindow(fds[0], static_cast<int64_t>(sizes.in_bytes));
  auto outputs = device::ReserveWindow(fds[1], static_cast<int64_t>(sizes.out_bytes));
  ASSIGN_OR_RETURN(exchange->inputs, std::move(inputs));
  ASSIGN_OR_RETURN(exchange->outputs, std::move(outputs));
  exchange_ = std::move(exchange);
  return absl::OkStatus();
}

CallWindows::~CallWindows() {
  if (session_ > 0) (void)Ask({{"close", {{"session", session_}}}}, "closed");
}

absl::StatusOr<Json> CallWindows::Ask(const Json& order, const char* answer,
                                      std::vector<int>* fds) {
  // Giving back what was opened is no matter of the candidate's time.
  const bool closes = order.contains("close");
  if (!lost_.ok() && !closes) return lost_;
  absl::StatusOr<Json> value =
      reference_result_.session->Ask(order, answer,
                                     {.deadline = closes ? absl::Now() + call_limit_ : deadline_,
                                      .answer_timeout = call_limit_,
                                      .fds = fds});
  lost_.Update(value.status());
  return value;
}

absl::Status CallWindows::Provide(int trial) {
  if (provided_ == trial) return absl::OkStatus();
  provided_ = -1;
  RETURN_IF_ERROR(Ask({{"fill", {{"session", session_}, {"trial", trial}}}}, "filled").status());
  provided_ = trial;
  return absl::OkStatus();
}

absl::StatusOr<Comparison> CallWindows::Compare(size_t call, const std::vector<Leaf>& output) {
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

absl::StatusOr<InputSensitivity> CallWindows::Follow(size_t call, int leaf, const Leaf& got) {
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

absl::Status CallWindows::NoteLive(size_t call, int trial, const std::vector<Leaf>& output) {
  if (any_wrong_) return absl::OkStatus();
  ASSIGN_OR_RETURN(Comparison compared, Compare(call, output));
  any_wrong_ = !compared.equal;
  compared_[call] = std::move(compared);
  if (any_wrong_) return absl::OkStatus();
  for (const int leaf : FollowedLeaves(reference_result_, trial, call, output)) {
    ASSIGN_OR_RETURN(followed_[std::make_pair(call, leaf)], Follow(call, leaf, output[leaf]));
  }
  return absl::OkStatus();
}

OutputAccess CallWindows::Access(std::function<bool()> live) {
  OutputAccess access;
  access.compare = [this, live](size_t call,
                                const std::vector<Leaf>& output) -> absl::StatusOr<Comparison> {
    if (!live()) return Compare(call, output);
    const auto found = compared_.find(call);
    if (found == compared_.end()) return absl::InternalError("an output was not compared");
    return found->second;
  };
  access.follow = [this, live](size_t call, int leaf,
                               const Leaf& got) -> absl::StatusOr<InputSensitivity> {
    if (!live()) return Follow(call, leaf, got);
    const auto found = followed_.find(std::make_pair(call, leaf));
    if (found == followed_.end()) return absl::InternalError("an output was not followed");
    return found->second;
  };
  return access;
}

absl::Status CallWindows::Keep(const std::vector<Leaf>& output) {
  kept_ = output;
  uint64_t bytes = 0;
  for (const Leaf& leaf : output) {
    if (leaf.offset.has_value()) {
      bytes = std::max(bytes, *leaf.offset + static_cast<uint64_t>(leaf.bytes()));
    }
  }
  return Ask({{"keep", {{"session", session_}, {"bytes", bytes}}}}, "kept").status();
}

bool CallWindows::IsSameAsKept(const std::vector<Leaf>& output) {
  if (!SameStructure(output, kept_)) return false;
  Json leaves = Json::array();
  for (size_t i = 0; i < output.size(); ++i) {
    if (output[i].kind != Leaf::Kind::kTensor || output[i].elements == 0) continue;
    leaves.push_back({{"dtype", output[i].dtype},
                      {"elements", output[i].elements},
                      {"offset", *output[i].offset},
                      {"kept_offset", *kept_[i].offset}});
  }
  const absl::StatusOr<Json> same = Ask(
      {{"same", {{"session", session_}, {"leaves", leaves}, {"share", kSameOutputShare}}}}, "same");
  if (same.ok() && !same->is_boolean()) lost_.Update(Nonsense("what is neither same nor not"));
  return same.ok() && same->is_boolean() && same->get<bool>();
}

}  // namespace tritonrl
