#include "tools/augment_inputs/variant_requests.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/endpoint/response_journal.h"
#include "base/status.h"
#include "base/utf8.h"
#include "tools/augment_inputs/input_functions.h"

namespace tritonrl {

namespace {

// Bounds of the prompt's part about variants that failed.
constexpr int kMostFailures = 10;
constexpr size_t kMostInputs = 200, kMostReason = 160;  // bytes of one line's halves

std::string OneLine(std::string text, size_t most) {
  absl::RemoveExtraAsciiWhitespace(&text);
  return text.size() <= most ? text : RepairUtf8(absl::StrCat(text.substr(0, most), "..."));
}

std::string ShapesText(const Family& family) {
  std::vector<std::string> lines;
  if (!family.inputs.empty()) lines.push_back(absl::StrJoin(family.inputs, ", "));
  for (const Variant& variant : family.variants) {
    if (variant.left_out.empty()) lines.push_back(absl::StrJoin(variant.finding.inputs, ", "));
  }
  if (lines.empty()) return "- none so far";
  return absl::StrCat("- ", absl::StrJoin(lines, "\n- "));
}

// The latest of them.
std::string FailuresText(const Family& family) {
  std::vector<std::string> lines;
  for (const Variant& variant : family.variants) {
    if (variant.left_out.empty()) continue;
    const std::vector<std::string>& inputs = variant.finding.inputs;
    lines.push_back(absl::StrCat(
        OneLine(inputs.empty() ? variant.function : absl::StrJoin(inputs, ", "), kMostInputs), ": ",
        OneLine(variant.left_out, kMostReason)));
  }
  if (lines.empty()) return "- none";
  const int first = std::max(0, static_cast<int>(lines.size()) - kMostFailures);
  return absl::StrCat("- ", absl::StrJoin(lines.begin() + first, lines.end(), "\n- "));
}

}  // namespace

std::string RequestKey(const std::string& task, int round) {
  return round == 1 ? task : absl::StrCat(task, "#", round);
}

std::string AgainPrompt(const AugmentOptions& options, const Family& family) {
  const double gigabytes = static_cast<double>(options.check.memory_bytes) / (int64_t{1} << 30);
  const std::string limits =
      absl::StrFormat("%g seconds and %.3g GiB", options.check.wall_seconds, gigabytes);
  // One pass, so that a brace in the program is not replaced.
  return absl::StrReplaceAll(options.prompt_again,
                             {{"{task}", family.task->source},
                              {"{variants}", absl::StrCat(options.variants - family.kept())},
                              {"{shapes}", ShapesText(family)},
                              {"{failed}", FailuresText(family)},
                              {"{limits}", limits}});
}

VariantRequests::VariantRequests(const AugmentOptions& options, EndpointClient* client)
    : options_(options), client_(client), journal_(options.out + "/responses.jsonl") {}

absl::Status VariantRequests::Ask(int round, const std::vector<Family*>& families,
                                  AugmentSummary* summary) {
  std::vector<Family*> open;
  for (Family* family : families) {
    // Round 1 passes all to AskAll, which refuses a folder of other requests.
    if (round == 1 || !proposals_.contains(RequestKey(family->task->id, round))) {
      open.push_back(family);
    }
  }
  if (!open.empty() && summary->ended.ok()) RETURN_IF_ERROR(AskFor(round, open, summary));
  if (summary->interrupted) return absl::OkStatus();
  for (Family* family : families) {
    const auto found = proposals_.find(RequestKey(family->task->id, round));
    if (found == proposals_.end()) continue;
    family->rounds = round;
    family->proposals = found->second;
    if (static_cast<int>(family->proposals.size()) > options_.variants) {
      family->proposals.resize(options_.variants);
    }
    summary->proposed += static_cast<int64_t>(family->proposals.size());
  }
  return absl::OkStatus();
}

absl::StatusOr<AskItem> VariantRequests::ItemOf(int round, const Family& family) const {
  const std::string& id = family.task->id;
  AskItem item = {.key = RequestKey(id, round), .request = RequestFor(options_.ask, id, round - 1)};
  // One pass, as above.
  const std::string prompt =
      round > 1
          ? AgainPrompt(options_, family)
          : absl::StrReplaceAll(options_.prompt, {{"{task}", family.task->source},
                                                  {"{variants}", absl::StrCat(options_.variants)}});
  item.request.messages = {{.role = "user", .content = prompt}};
  return item;
}

absl::Status VariantRequests::AskFor(int round, const std::vector<Family*>& families,
                                     AugmentSummary* summary) {
  AskAllOptions ask;
  ask.journal = journal_;
  ask.label = round == 1 ? "responses" : absl::StrCat("responses of round ", round);
  ask.stop = options_.stop;
  ask.messages = options_.messages;
  ask.count_earlier = round == 1;  // once, for the journal has the responses of all rounds
  ask.check = [](const EndpointResponse& response) {
    return ReadInputFunctions(response.text()).status();
  };
  ASSIGN_OR_RETURN(const AskAllSummary asked,
                   AskAll(
                       static_cast<int64_t>(families.size()),
                       [&](int64_t i) { return ItemOf(round, *families[i]); }, ask, client_));
  summary->interrupted = asked.interrupted;
  summary->ended = asked.ended;
  summary->failed += asked.failed;
  return summary->interrupted ? absl::OkStatus() : ReadProposals();
}

absl::Status VariantRequests::ReadProposals() {
  return ReadResponses(journal_, [&](const StoredResponse& stored) {
    auto functions = ReadInputFunctions(stored.response.text());
    if (!functions.ok()) return AddContext(functions.status(), stored.key);
    proposals_[stored.key] = *std::move(functions);
    return absl::OkStatus();
  });
}

}  // namespace tritonrl
