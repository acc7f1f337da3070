#ifndef TRITONRL_MODEL_TOKENIZER_BPE_TRAINER_H_
#define TRITONRL_MODEL_TOKENIZER_BPE_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/added_tokens.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// A piece of text as symbols, with the number of times it occurs.
struct CountedWord {
  std::vector<int32_t> symbols;
  int64_t count = 0;
};

// Learns up to `max_merges` merges: each joins the most frequent pair of neighbours (the lowest
// pair of ids among equals) into symbol first_new_id, first_new_id + 1, ... Stops early when no
// pair occurs min_count times.
std::vector<std::pair<int32_t, int32_t>> LearnMerges(std::vector<CountedWord> words,
                                                     int32_t first_new_id, int max_merges,
                                                     int64_t min_count);

// Qwen's split: contractions, words with one leading non-letter, single digits, punctuation, line
// ends, spaces.
extern const char kQwenSplitPattern[];

struct BpeTrainerOptions {
  // Ids in all: 256 bytes, merges and added tokens. Fewer if the corpus runs dry.
  int vocab_size = 768;
  // A pair seen less often is not merged.
  int64_t min_count = 2;
  std::string split_pattern = kQwenSplitPattern;
  // Get the ids after the merges, in this order. Special ones are left out by
  // Decode(skip_special=true); as in Qwen3, <think> and </think> are not special in that sense.
  std::vector<std::string> special_tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  std::vector<std::string> other_added_tokens = {"<think>", "</think>"};
};

// Learns a byte-level BPE vocabulary (Sennrich et al., "Neural machine translation of rare words
// with subword units", ACL 2016): merges the most frequent pair again and again; among equally
// frequent pairs the one of the lowest ids. The result depends only on the counts of the pieces,
// not on the order of the texts, and is what the `tokenizers` library learns.
class BpeTrainer {
 public:
  // InvalidArgument for a vocabulary that has no room for bytes and added tokens, or a malformed
  // pattern.
  static absl::StatusOr<BpeTrainer> Create(const BpeTrainerOptions& options);

  // Counts the pieces of `text`; added tokens in it are left out. Invalid UTF-8 is repaired first.
  void AddText(absl::string_view text);

  // The text of tokenizer.json. InvalidArgument if no text was added.
  absl::StatusOr<std::string> Train() const;

  // Pieces counted so far, with repetitions.
  int64_t num_pieces() const { return num_pieces_; }

 private:
  explicit BpeTrainer(const BpeTrainerOptions& options) : options_(options) {}
  nlohmann::ordered_json Json(const std::vector<std::string>& tokens,
                              const std::vector<std::pair<int32_t, int32_t>>& merges) const;

  BpeTrainerOptions options_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  AddedTokenFinder added_tokens_;
  // Ordered, so that nothing depends on hashing.
  absl::btree_map<std::string, int64_t> piece_counts_;
  int64_t num_pieces_ = 0;
};

// tokenizer_config.json for `transformers`: AutoTokenizer then loads the folder. `eos_token` ends a
// turn, `pad_token` fills batches.
std::string TokenizerConfigJson(const std::string& eos_token, const std::string& pad_token);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_BPE_TRAINER_H_
