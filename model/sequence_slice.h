// A slice of one sequence: the unit that the scheduler plans, the engine launches and a model runs.

#ifndef TRITONRL_MODEL_SEQUENCE_SLICE_H_
#define TRITONRL_MODEL_SEQUENCE_SLICE_H_

#include <cstdint>
#include <span>

namespace tritonrl {

// Consecutive tokens of one sequence at positions [first, first + count): a chunk of a prompt, or
// the token that was drawn last, with draft tokens after it if there are any. A view: the caller
// keeps tokens and pages.
struct SequenceSlice {
  // `count` tokens. Empty: `count` is 1 and the token is the one drawn last for `slot` in an
  // earlier step; only model runners know it.
  std::span<const int32_t> tokens;
  int slot = -1;  // the sequence's batch slot, in [0, max_num_seqs); -1 for a prompt
  int64_t first = 0;
  int64_t count = 0;
  // KV pages of positions [0, first + count). Positions before `first` are computed already.
  std::span<const int32_t> pages;
  // Number of the step's draws that use this slice's logits: all of them those of the last token,
  // or with draft tokens one draw for each of the last `draws` tokens.
  int draws = 0;
  // The last `num_draft_tokens` tokens are draft tokens. If it is not 0, `slot` is set and
  // `count` = `draws` = `num_draft_tokens` + 1.
  int num_draft_tokens = 0;

  // Number of the last tokens whose logits are needed.
  int logit_rows() const { return num_draft_tokens > 0 ? draws : (draws > 0 ? 1 : 0); }
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_SEQUENCE_SLICE_H_
