#ifndef TRITONRL_ROLLOUT_MODEL_RUNNER_H_
#define TRITONRL_ROLLOUT_MODEL_RUNNER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl {

// What the engine needs of a model: logits for tokens in cache slots. Called by one thread.
class ModelRunner {
 public:
  virtual ~ModelRunner() = default;

  virtual int64_t vocab_size() const = 0;
  virtual int num_slots() const = 0;
  // Most tokens in a slot.
  virtual int64_t max_length() const = 0;

  // Computes a prompt once into positions [0, prompt.size()) of all `slots`. Writes the logits
  // [vocab_size] after its last token.
  virtual absl::Status Prefill(const std::vector<int32_t>& prompt,
                               const std::vector<int64_t>& slots, std::vector<float>* logits) = 0;

  // Copies positions [0, length) from one slot to another.
  virtual absl::Status CopyPrompt(int64_t from, int64_t to, int64_t length) = 0;

  // Appends tokens[i] at positions[i] of slots[i] (slots distinct). Returns the logits after each,
  // row-major [tokens.size(), vocab_size], valid until the next call.
  virtual absl::StatusOr<std::span<const float>> Decode(const std::vector<int64_t>& tokens,
                                                        const std::vector<int64_t>& slots,
                                                        const std::vector<int64_t>& positions) = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_MODEL_RUNNER_H_
