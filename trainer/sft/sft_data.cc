#include "trainer/sft/sft_data.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/random.h"
#include "base/status.h"
#include "model/torch_runtime.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

namespace {

// Copies the string field `name` of `json` into `value`.
absl::Status TakeString(const nlohmann::json& json, const char* name, std::string* value) {
  const auto it = json.find(name);
  if (it == json.end()) {
    return absl::InvalidArgumentError(absl::StrCat("the field \"", name, "\" is missing"));
  }
  if (!it->is_string()) {
    return absl::InvalidArgumentError(absl::StrCat("the field \"", name, "\" is no string"));
  }
  *value = it->get<std::string>();
  return absl::OkStatus();
}

absl::StatusOr<SftExample> ParseExample(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("this line is no JSON");
  if (!json.is_object()) return absl::InvalidArgumentError("this line is no JSON object");
  SftExample example;
  RETURN_IF_ERROR(TakeString(json, "prompt", &example.prompt));
  RETURN_IF_ERROR(TakeString(json, "response", &example.response));
  if (example.prompt.empty()) return absl::InvalidArgumentError("the prompt is empty");
  return example;
}

}  // namespace

JsonlData::~JsonlData() {
  for (const int fd : descriptors_) close(fd);
}

absl::StatusOr<std::unique_ptr<JsonlData>> JsonlData::Open(const std::vector<std::string>& paths) {
  std::unique_ptr<JsonlData> data(new JsonlData());
  data->paths_ = paths;
  for (size_t i = 0; i < paths.size(); ++i) {
    const int fd = open(paths[i].c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, "open", paths[i]);
    data->descriptors_.push_back(fd);
    RETURN_IF_ERROR(data->Scan(static_cast<int>(i)));
  }
  if (data->lines_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no example in ", absl::StrJoin(paths, ", ")));
  }
  return data;
}

absl::Status JsonlData::Scan(int file) {
  constexpr int64_t kMaxBytes = std::numeric_limits<int32_t>::max();
  ASSIGN_OR_RETURN(const auto reader, LineReader::Open(paths_[file], kMaxBytes));
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<tritonrl::Line> line, reader->Next());
    if (!line.has_value()) return absl::OkStatus();
    if (line->too_long) {
      return absl::InvalidArgumentError(
          absl::StrCat(paths_[file], ":", line->number, ": the line is longer than 2 GiB"));
    }
    if (absl::StripAsciiWhitespace(line->text).empty()) continue;
    lines_.push_back({line->offset, static_cast<int32_t>(line->text.size()), file, line->number});
  }
}

absl::StatusOr<SftExample> JsonlData::Read(int64_t i) const {
  const Line& line = lines_[i];
  std::string text(line.bytes, '\0');
  RETURN_IF_ERROR(ReadAt(descriptors_[line.file], line.offset, line.bytes, text.data(),
                         absl::StrCat(paths_[line.file], ":", line.number)));
  absl::StatusOr<SftExample> example = ParseExample(text);
  if (!example.ok()) {
    return AddContext(example.status(), absl::StrCat(paths_[line.file], ":", line.number));
  }
  return example;
}

namespace {

// Random streams of the run's seed.
constexpr uint64_t kPermutationStream = 0x7065726dULL;
constexpr uint64_t kWindowStream = 0x77696e64ULL;

struct Sequence {
  std::vector<int32_t> tokens;  // prompt, response, end token
  int64_t prompt_length = 0;

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
};

Sequence Tokenise(const SftExample& example, const Tokenizer& tokenizer, int32_t end_token) {
  Sequence sequence = {.tokens = tokenizer.Encode(example.prompt)};
  sequence.prompt_length = sequence.length();
  const std::vector<int32_t> response = tokenizer.Encode(example.response);
  sequence.tokens.insert(sequence.tokens.end(), response.begin(), response.end());
  if (response.empty() || response.back() != end_token) sequence.tokens.push_back(end_token);
  return sequence;
}

// Packs the sequences of one micro-batch, whose tokens it moves out of `sequences`.
SftMicroBatch Pack(const std::vector<int>& pack, std::vector<Sequence>* sequences) {
  std::vector<std::vector<int32_t>> chosen;
  std::vector<int64_t> first_target;
  for (const int i : pack) {
    chosen.push_back(std::move((*sequences)[i].tokens));
    first_target.push_back((*sequences)[i].prompt_length);
  }
  SftMicroBatch micro;
  micro.batch = PackSequences(chosen, at::kCPU);
  micro.targets = NextTokenTargets(micro.batch, first_target);
  return micro;
}

}  // namespace

SftOrder::SftOrder(const JsonlData* data, const SftConfig& config)
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

absl::StatusOr<SftBatch> MakeSftBatch(const JsonlData& data, const std::vector<int64_t>& indices,
                                      const Tokenizer& tokenizer, int32_t end_token,
                                      int64_t max_sequence_tokens, int64_t micro_batch_tokens,
                                      const SftShare& share) {
  SftBatch batch;
  std::vector<Sequence> sequences;
  std::vector<int64_t> lengths;
  for (const int64_t index : indices) {
    ASSIGN_OR_RETURN(const SftExample example, data.Read(index));
    Sequence sequence = Tokenise(example, tokenizer, end_token);
    if (sequence.length() > max_sequence_tokens || sequence.prompt_length == 0) {
      batch.dropped += share.rank == 0 ? 1 : 0;
      continue;
    }
    lengths.push_back(sequence.length());
    sequences.push_back(std::move(sequence));
  }
  const std::vector<int> owners = BalanceOverRanks(lengths, share.size, share.cost);
  size_t kept = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (owners[i] != share.rank) continue;
    batch.tokens += lengths[i];
    batch.response_tokens += lengths[i] - sequences[i].prompt_length;
    lengths[kept] = lengths[i];
    if (kept != i) sequences[kept] = std::move(sequences[i]);
    ++kept;
  }
  sequences.resize(kept);
  lengths.resize(kept);
  for (const std::vector<int>& pack : PackByTokens(lengths, micro_batch_tokens)) {
    batch.micro_batches.push_back(Pack(pack, &sequences));
  }
  return batch;
}

SftLoader::SftLoader(SftLoaderOptions options, const JsonlData* data, SftOrder* order,
                     const Tokenizer* tokenizer)
    : options_(options),
      data_(data),
      order_(order),
      tokenizer_(tokenizer),
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
          batch = MakeSftBatch(*data_, indices, *tokenizer_, options_.end_token,
                               options_.max_sequence_tokens, options_.micro_batch_tokens, share);
          return batch.status();
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
