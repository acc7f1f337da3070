// A slice of one sequence: the unit that the scheduler plans, the engine launches and a model runs.

#ifndef TRITONRL_MODEL_SEQUENCE_SLICE_H_
#define TRITONRL_MODEL_SEQUENCE_SLICE_H_

#include <cstdint>
#include <span>

namespace tritonrl {

// Consecutive tokens of one sequence at positions [first, first + count): a chunk of a prompt, or
// the token that was drawn last and any draft tokens after it. A view: the caller owns tokens and
// pages.
struct SequenceSlice {
  // The `count` tokens. If empty, `count` is 1 and the token is the one drawn last for `slot` in an
  // earlier step, which only model runners know.
  std::span<const int32_t> tokens;
  int slot = -1;  // the sequence's batch slot, in [0, max_num_seqs); -1 for a prompt
  int64_t first = 0;
  int64_t count = 0;
  // KV pages of positions [0, first + count). Positions before `first` are already computed.
  std::span<const int32_t> pages;
  // Number of the step's draws from this slice's logits. Without draft tokens all draws use the
  // last token's logits; with draft tokens each of the last `draws` tokens has one draw.
  int draws = 0;
  // The last `num_draft_tokens` tokens are draft tokens. If this is not 0, `slot` is set and
  // `count` = `draws` = `num_draft_tokens` + 1.
  int num_draft_tokens = 0;
  // The logits of all `count` tokens are needed: the slice is a chunk of a prompt whose
  // log-probabilities are wanted.
  bool all_logits = false;

  // Number of tokens at the end of the slice whose logits are needed.
  int64_t logit_rows() const {
    if (all_logits) return count;
    return num_draft_tokens > 0 ? draws : (draws > 0 ? 1 : 0);
  }
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_SEQUENCE_SLICE_H_
