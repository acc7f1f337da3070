// The single-threaded core of BatchedEngine: requests, steps in flight, speculative decoding.

#ifndef TRITONRL_ROLLOUT_ENGINE_ENGINE_CORE_H_
#define TRITONRL_ROLLOUT_ENGINE_ENGINE_CORE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "rollout/engine/engine.h"
#include "rollout/engine/engine_config.h"
#include "rollout/engine/model_runner.h"
#include "rollout/engine/sampler.h"
#include "rollout/scheduler/scheduler.h"
#include "rollout/speculative/speculation.h"

namespace tritonrl {

// Runs requests step by step. It launches as many steps ahead as the runner allows: a sample whose
// draw is in flight is already scheduled for its next token, which is dropped if the draw ends the
// sample. Only the engine's thread may call it, except Validate.
class EngineCore {
 public:
  // Cancels one sample of a request, or all of them.
  struct Cancellation {
    uint64_t request = 0;
    std::optional<int> index;
  };
  struct Ended {
    std::vector<Sample> samples;
    std::vector<uint64_t> requests;  // whose samples have all ended
  };

  // `runner` must outlive the core; it defines all sizes.
  EngineCore(ModelRunner* runner, const EngineConfig& config);

  // InvalidArgument that names the cause if the engine cannot run `request`. Any thread may call
  // it.
  absl::Status Validate(const GenerateRequest& request) const;

  void StartGroup(GenerateRequest request);
  void Cancel(const Cancellation& cancellation);
  bool has_groups() const { return !groups_.empty(); }

  // Launches a step, and collects one if no more can be launched. When no group is left, no step is
  // in flight. Returns the runner's errors.
  absl::Status Step();
  absl::Status CollectAll();
  // Records that the last Step() took `seconds`.
  void RecordStepTime(double seconds);

  // The version of the weights that the steps in flight read.
  void set_weights_version(uint64_t version) { weights_version_ = version; }
  // Invalidates the KV cache. No step may be in flight.
  void Invalidate() { scheduler_.Invalidate(); }
  void InvalidatePrefixCache() { scheduler_.InvalidatePrefixCache(); }

  // The samples and requests that have ended since the last call.
  Ended TakeEnded() { return std::exchange(ended_, {}); }
  // Adds the work since the last call, which took `seconds`, to `stats`.
  void UpdateStats(double seconds, EngineStats* stats);

 private:
  struct Group {
    GenerateRequest request;
    std::vector<Sample> samples;
    std::vector<bool> ended;
    int unfinished = 0;
    std::unique_ptr<NgramProposer> proposer;       // null: no speculative decoding
    std::vector<std::vector<int32_t>> unverified;  // by sample: its last token and the draft tokens
    // For on_prompt_log_probs, until it is called; entry i is for prompt[i + 1].
    std::shared_ptr<GenerateRequest::PromptLogProbs> prompt_log_probs;
    bool prompt_failed = false;  // the logits of a token of the prompt gave no distribution
  };
  // Tokens [first, first + count) of a group's prompt whose log-probabilities a step computes.
  struct PromptPart {
    int64_t group = 0;
    int64_t first = 0;
    int64_t count = 0;
  };
  struct LaunchedStep {
    std::vector<Scheduler::Draw> draws;
    std::vector<PromptPart> prompt_parts;
  };

  // Checks the fields for log-probabilities, and the ids of logit_bias.
  absl::Status ValidateExtras(const GenerateRequest& request) const;
  absl::Status Launch(Scheduler::Step step);
  // Adds the targets of a slice with all_logits to a step that is launched.
  void AddPromptTargets(const Scheduler::ScheduledSlice& scheduled, ModelStep* launched,
                        LaunchedStep* record) const;
  // Tokens of a scheduled slice; empty if the draw of its token is in flight: the runner then reads
  // the token from the slot.
  std::span<const int32_t> TokensOf(const Scheduler::ScheduledSlice& scheduled) const;
  absl::Status CollectOldest();
  // Keeps the log-probabilities of prompts that the step collected last has computed.
  void StorePromptLogProbs(const std::vector<PromptPart>& parts);
  // Appends a token; ends the sample if it is the last.
  void AppendToken(const Scheduler::Draw& draw, const TokenDraw& token);
  // Appends the accepted tokens of a verified draft.
  void AppendVerified(const Scheduler::Draw& draw, std::span<const TokenDraw> tokens);
  // Whether any sample may get draft tokens once no step is in flight.
  bool MayHaveDraftTokens() const;
  // Proposes draft tokens for the running samples. No step may be in flight.
  void ProposeDraftTokens();
  bool HasEnded(const Scheduler::Draw& draw) const;
  void End(int64_t group, int index, FinishReason reason);

  const EngineConfig config_;
  ModelRunner* const runner_;
  Scheduler scheduler_;
  std::map<int64_t, Group> groups_;
  std::map<uint64_t, int64_t> group_of_request_;
  std::deque<LaunchedStep> in_flight_;  // oldest first
  int host_groups_ = 0;                 // unfinished groups whose draws_on_host()
  int64_t next_group_ = 0;
  Ended ended_;
  uint64_t weights_version_ = 0;
  int64_t step_tokens_ = 0;  // generated since the last UpdateStats
  int64_t launched_ = 0;
  int64_t accepted_tokens_ = 0;
  // Step launched last: its number of samples if all of them decode, else 0; and whether it has
  // draft tokens.
  int decoding_ = 0;
  bool speculated_ = false;
  SpeculationGate gate_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_ENGINE_ENGINE_CORE_H_
