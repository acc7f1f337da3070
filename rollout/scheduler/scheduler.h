// Continuous-batching scheduler: decides which tokens each step computes, and in which KV pages.

#ifndef TRITONRL_ROLLOUT_SCHEDULER_SCHEDULER_H_
#define TRITONRL_ROLLOUT_SCHEDULER_SCHEDULER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "model/sequence_slice.h"
#include "rollout/scheduler/page_allocator.h"

namespace tritonrl {

// The scheduler knows the lengths of sequences, and their tokens only for prefix caching. It runs
// no model.
//
// Samples run first come, first served: by arrival of their group, then by index. A group's prompt
// is prefilled once, in chunks; all samples draw their first token at its end. Samples share the
// prompt's full pages and copy the partly filled last page on their first write.
//
// When no page is free, the scheduler reclaims pages, youngest first: from prompts of groups
// without running samples; then from the youngest running sample, which is preempted (it returns to
// the queue and is recomputed later); then partly filled pages of prompts. A running sample that
// still gets no page stalls for the step. The oldest sample always progresses, so every sample
// ends.
//
// While samples wait, prefill beside decoding is limited to a budget (prefill_budget): chunked
// prefill then uses the idle compute of memory-bound decode steps, and samples that start at
// different times do not reach their largest size together.
class Scheduler {
 public:
  struct Options {
    int num_pages = 0;
    int page_size = 16;  // positions
    int max_num_seqs = 64;
    // Maximum number of tokens in a step; at least max_num_seqs. Decodes first, then prefill
    // chunks.
    int max_num_batched_tokens = 1024;
    // Prefix caching: pages of finished prompts and samples stay cached until they are evicted.
    bool enable_prefix_caching = false;
    // A step of this many tokens takes hardly longer than a step of few tokens (see ModelRunner).
    // While samples wait for memory or a batch slot, prefill chunks fill a step with decodes up to
    // this number of tokens, and have at least a quarter of it. 0: only max_num_batched_tokens
    // limits chunks.
    int prefill_budget = 0;
    // For batch-invariant runners: decoded tokens are never recomputed in a prefill chunk, nor read
    // by other samples. A sample starts only when the pages for its maximum length are free, so no
    // sample is preempted, and only prompts are cached. Invalidate must not be called while samples
    // run.
    bool reserve_max_tokens = false;
    // Prefill chunks begin at multiples of this number of positions, and end there or with the
    // prompt. A multiple of page_size, or 1. max_num_batched_tokens is at least as large.
    int chunk_alignment = 1;
    // Maximum number of tokens of a step in slices with all_logits; at least chunk_alignment.
    int64_t max_prompt_logits = int64_t{1} << 30;
  };

  struct ScheduledSlice {
    int64_t group = 0;
    int sample = -1;  // -1: the group's prompt
    // Its `tokens` are not set. Its pages are valid until the next call. A running sample keeps its
    // slot.
    SequenceSlice slice;
  };
  struct Draw {
    int64_t group = 0;
    int sample = 0;
    int slot = -1;      // keeps the token; -1: the sample does not run, or has draft tokens
    int64_t index = 0;  // among the sample's generated tokens
    // The next `num_draft_tokens` draws verify draft tokens: each counts only if the draw before it
    // counts and gave the draft token.
    int num_draft_tokens = 0;
  };
  // The copies run before the slices. No page is written twice by copies, or both read and written.
  // The next step may reuse a page that this step frees, although this step has not run yet.
  struct Step {
    std::vector<PageCopy> copies;
    std::vector<ScheduledSlice> slices;
    std::vector<Draw> draws;
  };

  // Samples in the order in which they are served.
  struct SampleId {
    int64_t group = 0;
    int sample = 0;
    bool operator<(const SampleId& other) const {
      return group != other.group ? group < other.group : sample < other.sample;
    }
  };

  // Totals.
  struct Stats {
    int64_t preemptions = 0;
    int64_t prompt_tokens = 0;      // computed for the first time
    int64_t recomputed_tokens = 0;  // of prompts and samples
    int64_t shared_tokens = 0;      // of prompts, shared by samples instead of computed
    int64_t draft_tokens = 0;       // verified by the model
    int64_t cached_tokens = 0;      // of prompts, found in the prefix cache
  };

  explicit Scheduler(const Options& options);

  // Whether a sample of this size fits if it has all pages to itself.
  bool Fits(int64_t prompt_length, int64_t max_tokens) const;

  // Adds a group of `samples` samples at the end of the queue. The samples must fit, and `group`
  // must be larger than all earlier numbers. `prompt`: its tokens, used for prefix caching only;
  // the caller keeps them valid until the group ends. prompt_logits: the first pass over the prompt
  // has the logits of all its tokens (all_logits), so that it takes no pages of the prefix cache.
  void Add(int64_t group, int64_t prompt_length, int64_t max_tokens, int samples,
           std::span<const int32_t> prompt = {}, bool prompt_logits = false);

  // Plans the next step; its draws are in flight from now on. The step may contain a sample whose
  // draw is in flight: the runner then reads its token from its slot. The step has no slices if
  // nothing can run before a draw is collected or a group is added.
  Step Schedule();

  // Lets the next step verify up to `count` draft tokens of a running sample that has no draw in
  // flight: as many as there are free batch slots and free pages.
  void SetDraftTokens(int64_t group, int sample, int count);

  // Records a collected draw without draft tokens. Draws of finished samples are ignored.
  void UpdateFromDraw(const Draw& draw);

  // Records a verified draft: its first `num_accepted` draws count, at least one.
  void AcceptDraftTokens(const Draw& draw, int num_accepted);

  // Ends a running or waiting sample and frees its pages. `generated`: its tokens, used for prefix
  // caching only.
  void Finish(int64_t group, int sample, std::span<const int32_t> generated = {});

  // Invalidates the KV cache: unfinished sequences are recomputed. No draw may be in flight.
  void Invalidate();
  // Empties the prefix cache; unfinished groups are not cached later either.
  void InvalidatePrefixCache();

  const std::vector<SampleId>& running() const { return running_; }
  int num_running() const { return static_cast<int>(running_.size()); }
  int64_t num_waiting() const { return static_cast<int64_t>(waiting_.size()); }
  const BlockPool& pool() const { return pages_.pool(); }
  const Stats& stats() const { return stats_; }

  // The number of page tables that hold each page, counted from the tables; for tests.
  std::vector<int> CountRefs() const;

 private:
  enum class Phase { kWaiting, kRunning, kEnded };
  struct Sample {
    Phase phase = Phase::kWaiting;
    int slot = -1;
    PageTable table;    // no pages: does not share the prompt yet
    int64_t drawn = 0;  // tokens drawn, and draws in flight
    int in_flight = 0;
    int max_draft_tokens = 0;  // in the next step
    bool verifying = false;    // the draws in flight verify draft tokens
  };
  struct Group {
    SharedPrompt prompt;
    int64_t max_tokens = 0;
    bool prompt_logits = false;  // the logits of all its tokens are wanted
    bool shared = false;         // a sample has shared the prompt
    int unfinished = 0;
    int without_pages = 0;  // unfinished samples without pages
    std::vector<Sample> samples;
  };

  // Remaining capacity of a step.
  struct Budget {
    int64_t tokens = 0;            // for chunks and draft tokens
    int64_t chunks = 0;            // tokens for chunks
    int64_t num_draft_tokens = 0;  // logit rows for draft tokens
    int64_t prompt_logits = 0;     // tokens for slices with all_logits
    int64_t ChunkRoom() const { return std::min(tokens, chunks); }
  };

  // Tokens of a sample that are not in its pages yet.
  int64_t Missing(const Group& group, const Sample& sample) const;
  bool Decodes(const Group& group, const Sample& sample) const;

  // Moves waiting samples to free slots while they fit.
  void Admit();
  // Pages that a running sample needs soon, or until its end with reserve_max_tokens.
  int64_t PagesNeededSoon(const Group& group, const Sample& sample) const;
  // Preempts the youngest running sample.
  void Preempt();

  // The budget of the next step beside its decodes.
  Budget NextBudget();
  // Maximum number of prompt tokens beside `decoding` samples that decode.
  int64_t ChunkTokens(int64_t decoding) const;
  // Adds a slice of running_[i] to the step.
  void ScheduleSample(size_t i, Budget* budget, Step* step);
  // Adds a chunk of the prompt of the group of running_[i].
  void SchedulePrompt(size_t i, Group* group, Budget* budget, Step* step);
  // Adds draft tokens to a slice of one token.
  void ScheduleDraftTokens(const Group& group, int max_draft_tokens, Sample* sample, Budget* budget,
                           SequenceSlice* slice);
  // Size of the largest aligned chunk of at most `room` tokens; `missing` tokens are left of the
  // prompt.
  int64_t AlignedChunk(int64_t missing, int64_t room) const;
  // PageAllocator::Allocate for running_[i]; takes pages from younger sequences if necessary.
  int64_t AllocatePages(size_t i, PageTable* table, int64_t count, Step* step);
  // Frees pages for running_[i]; false if no younger sequence has any.
  bool Reclaim(size_t i, const Step& step);
  void SharePrompt(int64_t number, Group* group, Sample* sample);
  // Adds `count` computed positions; those computed for the first time are added to *first_time.
  void Advance(PageTable* table, int64_t count, int64_t* first_time);
  void EndStep(const Step& step);

  const Options options_;
  PageAllocator pages_;
  std::map<int64_t, Group> groups_;
  std::set<SampleId> waiting_;
  std::vector<SampleId> running_;  // sorted
  std::vector<int> free_slots_;    // taken from the back
  Stats stats_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SCHEDULER_SCHEDULER_H_
