#ifndef TRITONRL_MODEL_TOKENIZER_BPE_MERGES_H_
#define TRITONRL_MODEL_TOKENIZER_BPE_MERGES_H_

#include <cstdint>
#include <utility>
#include <vector>

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

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_BPE_MERGES_H_
