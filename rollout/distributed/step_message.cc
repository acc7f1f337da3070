#include "rollout/distributed/step_message.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {
namespace {

struct Counts {
  int64_t copies = 0, slices = 0, draws = 0, tokens = 0, pages = 0;
};

struct PackedSlice {
  int32_t slot = -1, draws = 0, num_draft_tokens = 0, pages = 0;
  int64_t tokens = 0;  // number of tokens in the message, out of `count`
  int64_t first = 0, count = 0;
};

// Only the settings that a draw needs: the engine itself decides when a sample ends. Rank 0 alone
// has biases, penalties, min_p and log-probabilities, because only its draws count.
struct PackedDraw {
  int32_t slot = -1, top_k = 0;
  uint64_t stream = 0;
  int64_t position = 0;
  double temperature = 1, top_p = 1;
};

template <typename T>
void Append(const T* values, size_t count, std::string* text) {
  static_assert(std::is_trivially_copyable_v<T>);
  text->append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

// Removes `count` values from the front of a text; false if it holds too few.
template <typename T>
bool Take(absl::string_view* text, int64_t count, std::vector<T>* values) {
  if (count < 0 || count > static_cast<int64_t>(text->size() / sizeof(T))) return false;
  values->resize(count);
  if (count > 0) std::memcpy(values->data(), text->data(), count * sizeof(T));
  text->remove_prefix(count * sizeof(T));
  return true;
}

absl::Status Damaged() { return absl::DataLossError("a step that another rank sent is damaged"); }

}  // namespace

std::string EncodeCommand(StepCommand command) {
  return std::string(1, static_cast<char>(command));
}

std::string EncodeLaunch(const ModelStep& step) {
  Counts counts = {.copies = static_cast<int64_t>(step.copies.size()),
                   .slices = static_cast<int64_t>(step.slices.size()),
                   .draws = static_cast<int64_t>(step.draws.size())};
  std::vector<PackedSlice> slices;
  slices.reserve(step.slices.size());
  for (const SequenceSlice& slice : step.slices) {
    slices.push_back({.slot = slice.slot,
                      .draws = slice.draws,
                      .num_draft_tokens = slice.num_draft_tokens,
                      .pages = static_cast<int32_t>(slice.pages.size()),
                      .tokens = static_cast<int64_t>(slice.tokens.size()),
                      .first = slice.first,
                      .count = slice.count});
    counts.tokens += slices.back().tokens;
    counts.pages += slices.back().pages;
  }
  std::vector<PackedDraw> draws;
  draws.reserve(step.draws.size());
  for (const StepDraw& draw : step.draws) {
    draws.push_back({.slot = draw.slot,
                     .top_k = draw.sampling->top_k,
                     .stream = draw.stream,
                     .position = draw.position,
                     .temperature = draw.sampling->temperature,
                     .top_p = draw.sampling->top_p});
  }
  std::string text = EncodeCommand(StepCommand::kLaunch);
  Append(&counts, 1, &text);
  Append(step.copies.data(), step.copies.size(), &text);
  Append(slices.data(), slices.size(), &text);
  Append(draws.data(), draws.size(), &text);
  for (const SequenceSlice& slice : step.slices)
    Append(slice.tokens.data(), slice.tokens.size(), &text);
  for (const SequenceSlice& slice : step.slices)
    Append(slice.pages.data(), slice.pages.size(), &text);
  return text;
}

absl::StatusOr<StepMessage> StepMessage::Decode(absl::string_view text) {
  StepMessage message;
  if (text.empty() || text[0] < static_cast<char>(StepCommand::kLaunch) ||
      text[0] > static_cast<char>(StepCommand::kEnd)) {
    return Damaged();
  }
  message.command_ = static_cast<StepCommand>(text[0]);
  text.remove_prefix(1);
  if (message.command_ != StepCommand::kLaunch) {
    return text.empty() ? absl::StatusOr<StepMessage>(std::move(message)) : Damaged();
  }
  std::vector<Counts> counts;
  std::vector<PackedSlice> slices;
  std::vector<PackedDraw> draws;
  if (!Take(&text, 1, &counts) || !Take(&text, counts[0].copies, &message.copies_) ||
      !Take(&text, counts[0].slices, &slices) || !Take(&text, counts[0].draws, &draws) ||
      !Take(&text, counts[0].tokens, &message.tokens_) ||
      !Take(&text, counts[0].pages, &message.pages_) || !text.empty()) {
    return Damaged();
  }
  message.step_.copies = message.copies_;
  std::span<const int32_t> tokens = message.tokens_, pages = message.pages_;
  for (const PackedSlice& slice : slices) {
    if (slice.tokens < 0 || slice.pages < 0 || slice.tokens > static_cast<int64_t>(tokens.size()) ||
        slice.pages > static_cast<int64_t>(pages.size())) {
      return Damaged();
    }
    message.step_.slices.push_back({.tokens = tokens.first(slice.tokens),
                                    .slot = slice.slot,
                                    .first = slice.first,
                                    .count = slice.count,
                                    .pages = pages.first(slice.pages),
                                    .draws = slice.draws,
                                    .num_draft_tokens = slice.num_draft_tokens});
    tokens = tokens.subspan(slice.tokens);
    pages = pages.subspan(slice.pages);
  }
  for (const PackedDraw& draw : draws) {
    SamplingSettings& sampling = message.sampling_.emplace_back();
    sampling.temperature = draw.temperature;
    sampling.top_p = draw.top_p;
    sampling.top_k = draw.top_k;
  }
  for (size_t i = 0; i < draws.size(); ++i) {
    message.step_.draws.push_back({.slot = draws[i].slot,
                                   .sampling = &message.sampling_[i],
                                   .stream = draws[i].stream,
                                   .position = draws[i].position});
  }
  return message;
}

std::string EncodeStatus(const absl::Status& status) {
  return absl::StrCat(static_cast<int>(status.code()), " ", Message(status));
}

absl::Status DecodeStatus(absl::string_view text) {
  const size_t space = text.find(' ');
  int code = 0;
  if (space == absl::string_view::npos || !absl::SimpleAtoi(text.substr(0, space), &code)) {
    return absl::DataLossError("a status that another rank sent is damaged");
  }
  return absl::Status(static_cast<absl::StatusCode>(code), text.substr(space + 1));
}

}  // namespace tritonrl
