#ifndef TRITONRL_ROLLOUT_SPECULATIVE_NGRAM_PROPOSER_H_
#define TRITONRL_ROLLOUT_SPECULATIVE_NGRAM_PROPOSER_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tritonrl {

// N-gram proposer for speculative decoding without a draft model: proposes the tokens that followed
// an earlier occurrence of the last few tokens, in the prompt or in any sample of the group
// (Saxena, "Prompt Lookup Decoding", 2023; here over the whole group, whose samples answer one
// prompt). Memory: about 90 bytes a token.
class NgramProposer {
 public:
  // Proposes at most `num_speculative_tokens` draft tokens at a time.
  NgramProposer(std::span<const int32_t> prompt, int samples, int num_speculative_tokens);

  // The sample's next token.
  void Append(int sample, int32_t token);

  // Draft tokens for the sample; empty without a match, or after recent drafts were rejected.
  std::vector<int32_t> Propose(int sample) const;
  // Whether there may be a match after one more token.
  bool MayProposeNext(int sample) const;

  // `accepted` of `drafted` draft tokens were accepted: adapts the length of the next draft.
  void RecordAccepted(int sample, int drafted, int accepted);

 private:
  // N-gram lengths looked up, longest first; the last one, one token shorter, predicts a match.
  static constexpr std::array<int, 3> kOrders = {8, 3, 2};
  static constexpr size_t kProposalOrders = 2;
  static constexpr int kRest = 8;  // tokens without a draft after one that was rejected entirely

  struct Occurrence {
    int32_t stream = 0, next = 0;  // the token that followed
  };
  struct Sample {
    int max_tokens = 4;  // of a draft
    int rest = 0;
  };

  // Of the last kOrders[order] tokens of a stream; they must be there.
  static uint64_t Key(const std::vector<int32_t>& stream, int order);

  const int num_speculative_tokens_;
  // The prompt, then each sample's tokens behind the prompt's last ones.
  std::vector<std::vector<int32_t>> streams_;
  std::array<absl::flat_hash_map<uint64_t, Occurrence>, kOrders.size()> places_;  // the latest
  std::vector<Sample> samples_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SPECULATIVE_NGRAM_PROPOSER_H_
