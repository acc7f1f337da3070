#include "model/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/utf8.h"
#include "model/tokenizer/bpe.h"

namespace tritonrl {

namespace {

using Pair = std::pair<int32_t, int32_t>;

// Counts of all pairs, updated as merges rewrite the words.
class PairTable {
 public:
  explicit PairTable(std::vector<CountedWord> words) : words_(std::move(words)) {
    for (int i = 0; i < static_cast<int>(words_.size()); ++i) Count(i, +1);
    changed_.clear();
    for (const auto& [pair, count] : counts_) queue_.push({count, pair});
  }

  // Returns the pair to merge next and its count; count 0 if no pair is left.
  std::pair<Pair, int64_t> Best() {
    while (!queue_.empty()) {
      const Entry top = queue_.top();
      const int64_t count = counts_[top.pair];
      if (count == top.count) return {top.pair, count};
      queue_.pop();
      if (count > 0) queue_.push({count, top.pair});
    }
    return {Pair(0, 0), 0};
  }

  void Merge(const Pair& pair, int32_t new_id) {
    changed_.clear();
    const absl::flat_hash_set<int> where = std::move(words_with_[pair]);
    words_with_.erase(pair);
    for (int word : where) {
      Count(word, -1);
      Rewrite(pair, new_id, &words_[word].symbols);
      Count(word, +1);
    }
    for (const Pair& changed : changed_) {
      if (const int64_t count = counts_[changed]; count > 0) queue_.push({count, changed});
    }
  }

 private:
  struct Entry {
    int64_t count;
    Pair pair;
    bool operator<(const Entry& other) const {
      return std::tie(count, other.pair) < std::tie(other.count, pair);
    }
  };

  void Count(int word, int sign) {
    const CountedWord& w = words_[word];
    for (size_t i = 0; i + 1 < w.symbols.size(); ++i) {
      const Pair pair(w.symbols[i], w.symbols[i + 1]);
      counts_[pair] += sign * w.count;
      changed_.insert(pair);
      // A word remains listed under pairs that it no longer holds; to look at it again does no
      // harm.
      if (sign > 0) words_with_[pair].insert(word);
    }
  }

  static void Rewrite(const Pair& pair, int32_t new_id, std::vector<int32_t>* symbols) {
    size_t out = 0;
    for (size_t i = 0; i < symbols->size(); ++i) {
      if (i + 1 < symbols->size() && (*symbols)[i] == pair.first &&
          (*symbols)[i + 1] == pair.second) {
        (*symbols)[out++] = new_id;
        ++i;
      } else {
        (*symbols)[out++] = (*symbols)[i];
      }
    }
    symbols->resize(out);
  }

  std::vector<CountedWord> words_;
  absl::flat_hash_map<Pair, int64_t> counts_;
  absl::flat_hash_map<Pair, absl::flat_hash_set<int>> words_with_;
  absl::flat_hash_set<Pair> changed_;
  std::priority_queue<Entry> queue_;
};

}  // namespace

std::vector<Pair> LearnMerges(std::vector<CountedWord> words, int32_t first_new_id, int max_merges,
                              int64_t min_count) {
  PairTable table(std::move(words));
  std::vector<Pair> merges;
  while (static_cast<int>(merges.size()) < max_merges) {
    const auto [pair, count] = table.Best();
    if (count < std::max<int64_t>(min_count, 1)) break;
    table.Merge(pair, first_new_id + static_cast<int32_t>(merges.size()));
    merges.push_back(pair);
  }
  return merges;
}

const char kQwenSplitPattern[] =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";

namespace {

// Returns the bytes in the order of their characters in the alphabet, which is the order of GPT-2's
// and Qwen's ids.
std::vector<uint8_t> BytesInIdOrder() {
  std::vector<uint8_t> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<uint8_t>(byte));
  std::sort(bytes.begin(), bytes.end(),
            [](uint8_t a, uint8_t b) { return ByteToChar(a) < ByteToChar(b); });
  return bytes;
}

nlohmann::ordered_json PreTokenizerJson(const std::string& pattern) {
  return {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Split"},
             {"pattern", {{"Regex", pattern}}},
             {"behavior", "Isolated"},
             {"invert", false}},
            {{"type", "ByteLevel"},
             {"add_prefix_space", false},
             {"trim_offsets", false},
             {"use_regex", false}}}}};
}

nlohmann::ordered_json ByteLevelJson() {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", false},
          {"use_regex", false}};
}

nlohmann::ordered_json AddedTokenJson(const std::string& content, int id, bool special) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

}  // namespace

absl::StatusOr<BpeTrainer> BpeTrainer::Create(const BpeTrainerOptions& options) {
  BpeTrainer trainer(options);
  const size_t added = options.special_tokens.size() + options.other_added_tokens.size();
  if (options.vocab_size < static_cast<int>(256 + added)) {
    return absl::InvalidArgumentError(absl::StrCat("vocabulary of ", options.vocab_size,
                                                   " has no room for 256 bytes and ", added,
                                                   " added tokens"));
  }
  ASSIGN_OR_RETURN(trainer.normalizer_, Normalizer::FromJson({{"type", "NFC"}}));
  ASSIGN_OR_RETURN(trainer.pre_tokenizer_,
                   PreTokenizer::FromJson(PreTokenizerJson(options.split_pattern)));
  std::vector<std::string> patterns = options.special_tokens;
  patterns.insert(patterns.end(), options.other_added_tokens.begin(),
                  options.other_added_tokens.end());
  trainer.added_tokens_ = AddedTokenFinder(std::vector<AddedToken>(patterns.size()), patterns);
  return trainer;
}

void BpeTrainer::AddText(absl::string_view text) {
  const std::string repaired = RepairUtf8(text);
  for (const TextPart& part : added_tokens_.Split(repaired, true)) {
    if (part.id >= 0) continue;
    const std::string normalized = normalizer_.Normalize(part.text);
    for (absl::string_view piece : pre_tokenizer_.Split(normalized).views) {
      ++piece_counts_[piece];
      ++num_pieces_;
    }
  }
}

absl::StatusOr<std::string> BpeTrainer::Train() const {
  if (piece_counts_.empty()) return absl::InvalidArgumentError("the corpus holds no text");
  const std::vector<uint8_t> bytes = BytesInIdOrder();
  int32_t id_of_byte[256];
  std::vector<std::string> tokens;
  for (uint8_t byte : bytes) {
    id_of_byte[byte] = static_cast<int32_t>(tokens.size());
    tokens.push_back(EncodeBytes(std::string(1, static_cast<char>(byte))));
  }
  std::vector<CountedWord> words;
  for (const auto& [piece, count] : piece_counts_) {
    CountedWord word{.symbols = {}, .count = count};
    for (char byte : piece) word.symbols.push_back(id_of_byte[static_cast<uint8_t>(byte)]);
    words.push_back(std::move(word));
  }
  const int added =
      static_cast<int>(options_.special_tokens.size() + options_.other_added_tokens.size());
  const auto merges =
      LearnMerges(std::move(words), 256, options_.vocab_size - 256 - added, options_.min_count);
  for (const auto& [left, right] : merges) tokens.push_back(tokens[left] + tokens[right]);
  return Json(tokens, merges).dump(1);
}

nlohmann::ordered_json BpeTrainer::Json(
    const std::vector<std::string>& tokens,
    const std::vector<std::pair<int32_t, int32_t>>& merges) const {
  nlohmann::ordered_json vocab = nlohmann::ordered_json::object();
  for (size_t id = 0; id < tokens.size(); ++id) vocab[tokens[id]] = id;
  nlohmann::ordered_json pairs = nlohmann::ordered_json::array();
  for (const auto& [left, right] : merges) pairs.push_back({tokens[left], tokens[right]});
  nlohmann::ordered_json added = nlohmann::ordered_json::array();
  int next_id = static_cast<int>(tokens.size());
  for (const std::string& token : options_.special_tokens) {
    added.push_back(AddedTokenJson(token, next_id++, true));
  }
  for (const std::string& token : options_.other_added_tokens) {
    added.push_back(AddedTokenJson(token, next_id++, false));
  }
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer", PreTokenizerJson(options_.split_pattern)},
          {"post_processor", ByteLevelJson()},
          {"decoder", ByteLevelJson()},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", vocab},
            {"merges", pairs}}}};
}

std::string TokenizerConfigJson(const std::string& eos_token, const std::string& pad_token) {
  const nlohmann::ordered_json json = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                       {"eos_token", eos_token},
                                       {"pad_token", pad_token},
                                       {"clean_up_tokenization_spaces", false}};
  return json.dump(1) + "\n";
}

}  // namespace tritonrl
