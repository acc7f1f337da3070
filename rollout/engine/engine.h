// Interface of a generation engine: requests, samples and weight updates.
#ifndef TRITONRL_ROLLOUT_ENGINE_ENGINE_H_
#define TRITONRL_ROLLOUT_ENGINE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tritonrl {

// Settings of a sample's token draws. In this order, which is that of vLLM: logit_bias,
// repetition_penalty, frequency_penalty and presence_penalty change the logits; a token is drawn
// from softmax(logits / temperature), cut to the tokens of at least min_p times the largest
// probability, then to the top_k most likely tokens, then to the smallest set of most likely tokens
// that holds the share top_p of the remaining probability, then renormalised.
struct SamplingSettings {
  // 0 selects the most likely token (among equals the lowest id); other values are at least 1e-6.
  double temperature = 1.0;
  // In (0, 1]; 1 keeps all tokens.
  double top_p = 1.0;
  // At least 0; 0 keeps all tokens.
  int top_k = 0;
  // Maximum number of generated tokens, including the stop token; at least 1.
  int max_tokens = 512;
  // A sample ends after any of these tokens, which is then its last token.
  std::vector<int32_t> stop_ids;

  // In [0, 1]; 0 keeps all tokens. No effect at temperature 0.
  double min_p = 0;
  // Each in [-2, 2]: logit -= presence_penalty if the sample has generated the token, and
  // logit -= frequency_penalty for each time it has. The prompt does not count.
  double presence_penalty = 0;
  double frequency_penalty = 0;
  // In [0.01, 100]: the logit of each token of the prompt and of the sample so far is divided by it
  // if it is positive, and multiplied by it if it is negative.
  double repetition_penalty = 1;
  // (token, number in [-100, 100] that is added to its logit), at most kMaxLogitBias, no token
  // twice.
  static constexpr size_t kMaxLogitBias = 1024;
  std::vector<std::pair<int32_t, float>> logit_bias;

  // Whether draws use logits other than the model's.
  bool changes_logits() const {
    return presence_penalty != 0 || frequency_penalty != 0 || repetition_penalty != 1 ||
           !logit_bias.empty();
  }
  // Whether draws need more than temperature, top_k and top_p. Runners then draw on the host, and
  // the engine proposes no draft tokens.
  bool draws_on_host() const { return changes_logits() || min_p > 0; }
};

// A token and its log-probability log softmax(logits)[token] over the whole vocabulary: of the
// model's own logits, before biases, penalties, temperature and cuts.
struct TokenLogProb {
  int32_t token = -1;
  float log_prob = 0;
};

// The log-probabilities of one position.
struct TokenLogProbs {
  TokenLogProb token;             // the token at the position
  int32_t rank = 0;               // 1: no token is more likely
  std::vector<TokenLogProb> top;  // the most likely tokens, most likely first, then by id
};

// Most alternatives that a request may ask for.
inline constexpr int kMaxTopLogProbs = 20;

// Key of a request's random numbers. Token t of sample i uses the Philox stream (run_seed, step,
// task, i, t), so a sample does not depend on other samples, memory, threads or order.
struct SampleKey {
  uint64_t run_seed = 0;
  uint64_t step = 0;
  uint64_t task = 0;
};

// A prompt and the group of samples to generate for it. The prompt is prefilled once for the group.
struct GenerateRequest {
  // Chosen by the caller, returned in each sample; unique among the requests not yet finished.
  uint64_t id = 0;
  std::vector<int32_t> prompt;
  // Number of samples, with indices first_index .. first_index + n - 1 (the index is part of the
  // key: a request for samples 4..7 gives the same samples as a request for 0..7).
  int n = 1;
  int first_index = 0;
  SamplingSettings sampling;
  SampleKey key;
  // If set, the engine calls it for each drawn token, including the stop token, in order within a
  // sample and before Next returns the sample. It runs on the engine's thread: it must return at
  // once and must not call the engine.
  std::function<void(int index, int32_t token, float log_prob)> on_token;

  // If set, the engine calls it right before on_token, with the token's log-probabilities and
  // `top_log_probs` alternatives, at most kMaxTopLogProbs. The same rules apply to it.
  std::function<void(int index, std::shared_ptr<const TokenLogProbs>)> on_log_probs;
  int top_log_probs = 0;

  // If set, the engine calls it once, before any token, with the log-probabilities of the prompt's
  // tokens after the first (entry i is for prompt[i + 1]). The prompt is then computed as a whole:
  // the prefix cache is not read. Only with it sampling.max_tokens may be 0: the samples are then
  // empty, and prompt.size() alone is limited by the engine's maximum length.
  using PromptLogProbs = std::vector<TokenLogProbs>;
  std::function<void(std::shared_ptr<const PromptLogProbs>)> on_prompt_log_probs;
  int top_prompt_log_probs = 0;
};

enum class FinishReason {
  kStop,       // Ended with one of stop_ids.
  kLength,     // max_tokens were generated.
  kCancelled,  // Cancel() was called; the sample holds the tokens drawn before.
  kFailed,     // The logits gave no distribution; the sample holds the tokens drawn before.
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
  // that is, of the model's own logits before biases and penalties, and before min_p, top_k and
  // top_p; with temperature 0 at temperature 1. The learner's
  // Transformer::Forward(..., temperature) computes the same quantity.
  std::vector<float> log_probs;
  FinishReason finish_reason = FinishReason::kStop;
  // Weight versions that the tokens were drawn from, in order: one, unless the weights were updated
  // during generation (PauseForWeightUpdate); none without tokens.
  std::vector<WeightVersionSpan> versions;
};

// Internal, with the sample's index and the cause, if the sample ended by kFailed; else OK.
absl::Status FailureOf(const Sample& sample);

// Error message for logits that give no distribution (a NaN or an infinity).
extern const char kLogitsNotFinite[];

// Totals since the engine was made.
struct EngineStats {
  int64_t prompt_tokens = 0;      // Prefilled, each group's prompt once.
  int64_t generated_tokens = 0;   // In samples.
  int64_t decode_steps = 0;       // Batched forward passes.
  int64_t finished_samples = 0;   // Including cancelled ones.
  double busy_seconds = 0;        // Time in which the engine had something to generate.
  int64_t preemptions = 0;        // Samples preempted for lack of KV-cache pages.
  int64_t recomputed_tokens = 0;  // Recomputed after a preemption or a weight update.
  int64_t shared_tokens = 0;      // Prompt tokens shared within a group instead of recomputed.
  int64_t peak_pages = 0;         // Peak number of KV-cache pages in use.
  int64_t num_pages = 0;
  double sample_seconds = 0;    // Step times multiplied by running samples.
  int64_t failed_samples = 0;   // FinishReason::kFailed
  int64_t draft_tokens = 0;     // Draft tokens verified by the model (speculative decoding).
  int64_t accepted_tokens = 0;  // Draft tokens that were accepted.
  int64_t cached_tokens = 0;    // Prompt tokens found in the prefix cache.
  double sleep_seconds = 0;     // Spent on freeing the KV cache for weight updates.
  double wake_seconds = 0;      // Spent on allocating it again.
};

// Generates samples in the background. All methods may be called from any thread. Next() returns
// each accepted sample exactly once, also a cancelled or failed one, unless the engine itself
// fails.
class Engine {
 public:
  // Cancels all samples and joins the engine's thread.
  virtual ~Engine() = default;

  // Queues a request and returns at once. InvalidArgument: a setting is out of range; the prompt is
  // empty or has ids outside the vocabulary; prompt and max_tokens together exceed the engine's
  // maximum length or its memory; or the id is in use. ResourceExhausted: too many samples are
  // outstanding; call Next first. FailedPrecondition: a weight update is in progress.
  virtual absl::Status Submit(GenerateRequest request) = 0;

  // The next finished sample, in the order in which samples end. DeadlineExceeded: none ended until
  // `deadline`. OutOfRange: none is outstanding, so none will come. Any other code: the engine
  // failed (for example ran out of memory) and every later call gives the same error.
  virtual absl::StatusOr<Sample> Next(absl::Time deadline) = 0;

  // Ends a request early: Next returns its unfinished samples as kCancelled within one decode step,
  // or after the weight update that has paused them. Unknown or finished ids are ignored.
  virtual void Cancel(uint64_t request_id) = 0;

  // The same for one sample of a request.
  virtual void CancelSample(uint64_t request_id, int index) = 0;

  // Samples accepted and not yet returned by Next.
  virtual int64_t Outstanding() const = 0;

  // The learner shares the weights and may change them only between these two calls. Begin returns
  // once the engine no longer reads them; FailedPrecondition if samples are unfinished, so that
  // every sample is drawn from one version. After End, tokens are drawn from `version`. With
  // EngineConfig's enable_sleep_mode, Begin frees the KV cache's memory and End allocates it again;
  // if the memory is still in use elsewhere, the engine fails.
  virtual absl::Status BeginWeightUpdate() = 0;
  virtual void EndWeightUpdate(uint64_t version) = 0;

  // Alternative to Begin: unfinished samples pause once the steps in flight have run, and continue
  // from their tokens after End (partial rollouts). A token keeps the log-probability under which
  // it was drawn. FailedPrecondition from a batch-invariant engine with unfinished samples.
  enum class KvPolicy {
    kInvalidate,  // the KV cache of unfinished samples is recomputed with the new weights
    kKeep,        // later tokens attend to KV entries of older weights; the engine does not sleep
  };
  virtual absl::Status PauseForWeightUpdate(KvPolicy kv_policy) = 0;

  virtual EngineStats Stats() const = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_ENGINE_ENGINE_H_
