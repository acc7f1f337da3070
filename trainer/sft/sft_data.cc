#include "trainer/sft/sft_data.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/random.h"
#include "model/torch_runtime.h"

namespace tritonrl {

namespace {

// Random streams of the run's seed.
constexpr uint64_t kPermutationStream = 0x7065726dULL;
constexpr uint64_t kWindowStream = 0x77696e64ULL;

// Returns the next token where it is taught, else -1, for the packed examples `chosen`.
at::Tensor TaughtTargets(const TokenCache& data, absl::Span<const int64_t> chosen,
                         const PackedBatch& batch) {
  at::Tensor targets = at::full({batch.num_tokens()}, -1, at::kLong);
  int64_t* const target = targets.data_ptr<int64_t>();
  for (size_t i = 0; i < chosen.size(); ++i) {
    const std::span<const int32_t> tokens = data.tokens(chosen[i]);
    for (const TokenSpan& span : data.taught(chosen[i])) {
      for (int32_t t = std::max(span.begin, 1); t < span.end; ++t) {
        target[batch.offsets[i] + t - 1] = tokens[t];
      }
    }
  }
  return targets;
}

// Packs the examples of one micro-batch.
SftMicroBatch Pack(const TokenCache& data, absl::Span<const int64_t> chosen) {
  std::vector<std::vector<int32_t>> sequences;
  for (const int64_t i : chosen) {
    sequences.emplace_back(data.tokens(i).begin(), data.tokens(i).end());
  }
  SftMicroBatch micro;
  micro.batch = PackSequences(sequences, at::kCPU);
  micro.targets = TaughtTargets(data, chosen, micro.batch);
  return micro;
}

}  // namespace

SftOrder::SftOrder(const TokenCache* data, const SftConfig& config)
    : data_(data),
      batch_size_(config.batch_size()),
      window_(config.batching() == LENGTH_BUCKETED
                  ? int64_t{config.batch_size()} * config.bucket_batches()
                  : 0),
      seed_(config.seed()) {}

std::shared_ptr<const std::vector<int64_t>> SftOrder::Permutation(int64_t epoch) {
  absl::MutexLock lock(&mutex_);
  auto& slot = permutations_[epoch];
  if (slot == nullptr) {
    auto order = std::make_shared<std::vector<int64_t>>(data_->size());
    std::iota(order->begin(), order->end(), 0);
    Philox random(MixKeys({seed_, static_cast<uint64_t>(epoch)}), kPermutationStream);
    random.Shuffle(order.get());
    slot = std::move(order);
  }
  std::shared_ptr<const std::vector<int64_t>> result = slot;
  // Keeps the newest three epochs; loader threads rarely need older ones.
  while (permutations_.size() > 3) permutations_.erase(permutations_.begin());
  return result;
}

int64_t SftOrder::At(int64_t position) {
  return (*Permutation(position / data_->size()))[position % data_->size()];
}

std::vector<int64_t> SftOrder::Batch(int64_t step) {
  if (window_ == 0) {
    std::vector<int64_t> indices(batch_size_);
    for (int64_t i = 0; i < batch_size_; ++i) indices[i] = At(step * batch_size_ + i);
    return indices;
  }
  // Sorts the examples of this step's window by length and takes the window's batches in random
  // order.
  const int64_t batches = window_ / batch_size_;
  const int64_t window = step / batches;
  std::vector<int64_t> members(window_);
  for (int64_t i = 0; i < window_; ++i) members[i] = At(window * window_ + i);
  std::stable_sort(members.begin(), members.end(),
                   [&](int64_t a, int64_t b) { return data_->bytes(a) < data_->bytes(b); });
  std::vector<int64_t> order(batches);
  std::iota(order.begin(), order.end(), 0);
  Philox random(MixKeys({seed_, static_cast<uint64_t>(window)}), kWindowStream);
  random.Shuffle(&order);
  const auto begin = members.begin() + order[step % batches] * batch_size_;
  return std::vector<int64_t>(begin, begin + batch_size_);
}

bool IsLeftOut(const TokenCache& data, int64_t i, int64_t max_sequence_tokens) {
  return data.length(i) > max_sequence_tokens || data.taught_tokens(i) == 0;
}

bool HasEmptyResponse(const TokenCache& data, int64_t i, const Tokenizer& tokenizer,
                      absl::string_view end) {
  // Enough for the tags of an empty thought and an end of turn that are spelled by bytes.
  constexpr int64_t kMostTokens = 96;
  if (data.taught_tokens(i) > kMostTokens * static_cast<int64_t>(data.taught(i).size())) {
    return false;
  }
  for (const TokenSpan& span : data.taught(i)) {
    const std::string taught =
        tokenizer.Decode(data.tokens(i).subspan(span.begin, span.end - span.begin));
    absl::string_view text = absl::StripAsciiWhitespace(taught);
    absl::ConsumeSuffix(&text, absl::StripAsciiWhitespace(end));
    text = absl::StripAsciiWhitespace(text);
    absl::ConsumePrefix(&text, "<think>");
    text = absl::StripLeadingAsciiWhitespace(text);
    absl::ConsumePrefix(&text, "</think>");
    if (!absl::StripAsciiWhitespace(text).empty()) return false;
  }
  return true;
}

ExampleCounts CountExamples(const TokenCache& data, int64_t max_sequence_tokens,
                            const Tokenizer& tokenizer, absl::string_view end) {
  ExampleCounts counts = {.examples = data.size(), .max_sequence_tokens = max_sequence_tokens};
  counts.shortest = data.size() > 0 ? data.length(0) : 0;
  for (int64_t i = 0; i < data.size(); ++i) {
    counts.longest = std::max(counts.longest, data.length(i));
    counts.shortest = std::min(counts.shortest, data.length(i));
    if (data.length(i) > max_sequence_tokens) {
      ++counts.too_long;
    } else if (HasEmptyResponse(data, i, tokenizer, end)) {
      ++counts.empty;
    }
  }
  return counts;
}

std::string ExampleCounts::TooLongSentence() const {
  if (too_long == 0) return "";
  return absl::StrCat(too_long, " of ", examples, " examples are longer than max_sequence_tokens (",
                      max_sequence_tokens, "; the longest has ", longest,
                      " tokens) and are left out");
}

std::string ExampleCounts::EmptySentence() const {
  if (empty == 0) return "";
  return empty == 1 ? "1 example has an empty response and teaches only the end of a turn"
                    : absl::StrCat(empty, " examples have an empty response and teach only the ",
                                   "end of a turn");
}

absl::Status ExampleCounts::Check() const {
  if (too_long + empty < examples) return absl::OkStatus();
  if (empty == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("all ", examples, " examples are longer than max_sequence_tokens (",
                     max_sequence_tokens, "; the shortest has ", shortest,
                     " tokens), so there is nothing to learn; set max_sequence_tokens higher"));
  }
  if (too_long == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("all ", examples, " examples have an empty response, so there is nothing to ",
                     "learn but the end of a turn; check the fields that hold the responses"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "of ", examples, " examples ", too_long, " are longer than max_sequence_tokens (",
      max_sequence_tokens, ") and the other ", empty, " have an empty response, so there is ",
      "nothing to learn; set max_sequence_tokens higher"));
}

SftBatch MakeSftBatch(const TokenCache& data, const std::vector<int64_t>& indices,
                      int64_t max_sequence_tokens, int64_t micro_batch_tokens,
                      const SftShare& share) {
  SftBatch batch;
  std::vector<int64_t> examples, lengths;
  for (const int64_t index : indices) {
    if (IsLeftOut(data, index, max_sequence_tokens)) {
      batch.dropped += share.rank == 0 ? 1 : 0;
      continue;
    }
    examples.push_back(index);
    lengths.push_back(data.length(index));
  }
  const std::vector<int> owners = BalanceOverRanks(lengths, share.size, share.cost);
  std::vector<int64_t> mine, my_lengths;
  for (size_t i = 0; i < examples.size(); ++i) {
    if (owners[i] != share.rank) continue;
    batch.tokens += lengths[i];
    batch.response_tokens += data.taught_tokens(examples[i]);
    mine.push_back(examples[i]);
    my_lengths.push_back(lengths[i]);
  }
  for (const std::vector<int>& pack : PackByTokens(my_lengths, micro_batch_tokens)) {
    std::vector<int64_t> chosen;
    for (const int i : pack) chosen.push_back(mine[i]);
    batch.micro_batches.push_back(Pack(data, chosen));
  }
  return batch;
}

SftLoader::SftLoader(SftLoaderOptions options, const TokenCache* data, SftOrder* order)
    : options_(options),
      data_(data),
      order_(order),
      next_scheduled_(options.first_step),
      pool_(options.threads) {
  for (int i = 0; i < 2 * options_.threads + 1; ++i) ScheduleOne();
}

void SftLoader::ScheduleOne() {
  if (next_scheduled_ >= options_.end_step) return;
  const int64_t step = next_scheduled_++;
  auto promise = std::make_shared<std::promise<absl::StatusOr<SftBatch>>>();
  pending_.push_back(promise->get_future());
  pool_.Schedule([this, step, promise] {
    const std::vector<int64_t> indices = order_->Batch(step);
    const SftShare share = {options_.rank, options_.size, options_.cost};
    absl::StatusOr<SftBatch> batch = absl::InternalError("not made");
    const absl::Status status =
        CatchTorch("preparing a batch", "set batch_size lower", [&]() -> absl::Status {
          batch = MakeSftBatch(*data_, indices, options_.max_sequence_tokens,
                               options_.micro_batch_tokens, share);
          return absl::OkStatus();
        });
    if (!status.ok()) batch = status;
    promise->set_value(std::move(batch));
  });
}

absl::StatusOr<SftBatch> SftLoader::Next() {
  absl::StatusOr<SftBatch> batch = pending_.front().get();
  pending_.pop_front();
  ScheduleOne();
  return batch;
}

}  // namespace tritonrl
