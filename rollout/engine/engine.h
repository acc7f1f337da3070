// The interface of a generation engine.
#ifndef TRITONRL_ROLLOUT_ENGINE_ENGINE_H_
#define TRITONRL_ROLLOUT_ENGINE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tritonrl {

// How tokens are drawn. Tokens are drawn from softmax(logits / temperature), cut to the top_k
// largest, then to the smallest set of largest ones that holds top_p of what is left, then
// renormalised.
struct SamplingSettings {
  // 0 takes the most likely token (the lowest id among equals); else at least 1e-6.
  double temperature = 1.0;
  // In (0, 1]; 1 keeps all.
  double top_p = 1.0;
  // At least 0; 0 keeps all.
  int top_k = 0;
  // Most tokens generated, the stop token included; at least 1.
  int max_tokens = 512;
  // A sample ends after any of these; the stop token is its last token.
  std::vector<int32_t> stop_ids;
};

// Names the random draws. Token t of sample i uses the Philox stream (run_seed, step, task, i, t),
// so a sample depends on nothing else that is generated, nor on memory, threads or order.
struct SampleKey {
  uint64_t run_seed = 0;
  uint64_t step = 0;
  uint64_t task = 0;
};

// One prompt and the group of samples wanted for it. The prompt is computed once for the group.
struct GenerateRequest {
  // Chosen by the caller, returned in each sample; unique among the requests not yet finished.
  uint64_t id = 0;
  std::vector<int32_t> prompt;
  // Number of samples, with indices first_index .. first_index + n - 1 (the index is part of the
  // key: asking for samples 4..7 alone gives the same ones as asking for 0..7).
  int n = 1;
  int first_index = 0;
  SamplingSettings sampling;
  SampleKey key;
  // If set, called for each drawn token (the stop token too), in order within a sample and before
  // the sample comes out of Next. Runs on the engine's thread: it must return at once and must not
  // call the engine.
  std::function<void(int index, int32_t token, float log_prob)> on_token;
};

enum class FinishReason {
  kStop,       // Ended with one of stop_ids.
  kLength,     // max_tokens were generated.
  kCancelled,  // Cancel() was called; the tokens generated until then are there.
  kFailed,     // The model's logits gave no distribution; the tokens until then are there.
};

// "stop", "length", "cancelled", "failed".
const char* FinishReasonName(FinishReason reason);

// Consecutive tokens of a sample that were drawn from the same weights.
struct WeightVersionSpan {
  uint64_t version = 0;
  int64_t tokens = 0;
};

struct Sample {
  uint64_t request_id = 0;
  int index = 0;
  // Generated tokens without the prompt, with the stop token if finish_reason is kStop.
  std::vector<int32_t> tokens;
  // One for each token: log softmax(logits / temperature)[token] in fp32 over the WHOLE vocabulary,
  // that is, before top_k and top_p; with temperature 0 at temperature 1. The learner's
  // Transformer::Forward(..., temperature) computes the same quantity.
  std::vector<float> log_probs;
  FinishReason finish_reason = FinishReason::kStop;
  // Versions of the weights that its tokens were drawn from, in order. One, unless the weights were
  // updated while it was generated (PauseForWeightUpdate); empty without tokens.
  std::vector<WeightVersionSpan> versions;
};

// Internal, with a sentence that says which and why, for a sample that ended by kFailed; else OK.
absl::Status FailureOf(const Sample& sample);

// What a person is told of logits that do not give a distribution (a NaN, or an infinity).
extern const char kLogitsNotFinite[];

// Totals since the engine was made.
struct EngineStats {
  int64_t prompt_tokens = 0;      // Computed, each group's prompt once.
  int64_t generated_tokens = 0;   // In samples.
  int64_t decode_steps = 0;       // Batched forward passes.
  int64_t finished_samples = 0;   // Including cancelled ones.
  double busy_seconds = 0;        // Time in which the engine had something to generate.
  int64_t preemptions = 0;        // Samples preempted for lack of KV-cache pages.
  int64_t recomputed_tokens = 0;  // Recomputed after a preemption or a weight update.
  int64_t shared_tokens = 0;      // Prompt tokens shared within a group instead of recomputed.
  int64_t peak_pages = 0;         // Peak number of KV-cache pages in use.
  int64_t num_pages = 0;
  double sample_seconds = 0;    // Each moment counted as often as samples ran in it.
  int64_t failed_samples = 0;   // FinishReason::kFailed
  int64_t draft_tokens = 0;     // Draft tokens verified by the model (speculative decoding).
  int64_t accepted_tokens = 0;  // Draft tokens that were accepted.
  int64_t cached_tokens = 0;    // Prompt tokens found in the prefix cache.
  double sleep_seconds = 0;     // Releasing the KV cache's memory for weight updates.
  double wake_seconds = 0;      // Allocating it again.
};

// Generates samples in the background. All methods may be called from any thread. Each accepted
// sample comes out of Next() exactly once, whatever happens to it, unless the engine itself fails.
class Engine {
 public:
  // Cancels what is running and joins the engine's thread.
  virtual ~Engine() = default;

  // Takes a request and returns at once. InvalidArgument: a setting out of range, a prompt that is
  // empty, holds ids outside the vocabulary, or is too long for the engine or its memory together
  // with max_tokens, or an id that is in use. ResourceExhausted: too many samples are outstanding;
  // take some with Next first. FailedPrecondition: a weight update is in progress.
  virtual absl::Status Submit(GenerateRequest request) = 0;

  // The next finished sample, in the order in which samples end. DeadlineExceeded: none ended until
  // `deadline`. OutOfRange: none is outstanding, so none will come. Any other code: the engine
  // failed (for example ran out of memory) and every later call gives the same error.
  virtual absl::StatusOr<Sample> Next(absl::Time deadline) = 0;

  // Ends a request early: its unfinished samples come out as kCancelled within one decode step, or
  // after a weight update that has made them pause. Unknown or finished ids are ignored.
  virtual void Cancel(uint64_t request_id) = 0;

  // The same for one sample of a request.
  virtual void CancelSample(uint64_t request_id, int index) = 0;

  // Samples accepted and not yet returned by Next.
  virtual int64_t Outstanding() const = 0;

  // The weights are shared with the learner, which may change them only between these two calls.
  // Begin waits until the engine touches the weights no more; FailedPrecondition if samples are
  // still being generated (every sample is strictly from one version). After End, tokens are drawn
  // from `version`. An engine with EngineConfig's enable_sleep_mode has freed its cache's
  // memory when Begin returns, and has allocated it again when End returns; if others kept the
  // memory, the engine has failed.
  virtual absl::Status BeginWeightUpdate() = 0;
  virtual void EndWeightUpdate(uint64_t version) = 0;

  // In place of Begin: samples in generation pause after at most the steps in flight, and continue
  // from their tokens once End is called (partial rollouts). A token's
  // log-probability stays that under which it was drawn. FailedPrecondition from a batch-invariant
  // engine with unfinished samples.
  enum class KvPolicy {
    kInvalidate,  // the KV cache of unfinished samples is recomputed with the new weights
    kKeep,        // later tokens attend to KV entries of older weights; the engine does not sleep
  };
  virtual absl::Status PauseForWeightUpdate(KvPolicy kv_policy) = 0;

  virtual EngineStats Stats() const = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_ENGINE_ENGINE_H_
