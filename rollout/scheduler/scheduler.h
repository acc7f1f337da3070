#ifndef TRITONRL_ROLLOUT_SCHEDULER_SCHEDULER_H_
#define TRITONRL_ROLLOUT_SCHEDULER_SCHEDULER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "model/sequence_slice.h"
#include "rollout/scheduler/block_pool.h"

namespace tritonrl {

// Continuous-batching scheduler: decides which tokens each step computes, and in which KV-cache
// pages. It knows sequence lengths only, and tokens only for prefix caching; it runs no model.
//
// Samples run first come, first served: by arrival of their group, then by index. A group's prompt
// is prefilled once, in chunks; all samples draw their first token at its end. Samples share the
// prompt's full pages and copy the last, partly filled page on their first write. When no page is
// free, pages are reclaimed from the youngest: prompts of groups without running samples, then the
// youngest running sample (it is preempted: it returns to the queue and is recomputed), then the
// partly filled prompt pages. A running sample that still gets no page stalls for this step. The
// oldest sample always progresses, so every sample ends.
//
// While samples wait, prefill beside decoding is limited to a budget (prefill_budget): chunked
// prefill then uses the idle compute of memory-bound decode steps, and samples that start at
// different times do not need memory all at once.
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
    // A step of so many tokens takes hardly longer than one of few (see ModelRunner). While samples
    // wait for memory or a place, chunks beside samples that decode fill steps up to so many
    // tokens, and have at least a quarter of that. 0: chunks are always as large as
    // max_num_batched_tokens allows.
    int prefill_budget = 0;
    // For runners that are batch-invariant: what a sample has decoded is never recomputed as a
    // chunk, nor read by others. A sample runs only once the pages that it can grow to are left for
    // it, so that none gives way to another, and only prompts are kept for others. Invalidate must
    // not be called under samples.
    bool reserve_max_tokens = false;
    // Chunks of prompts begin at multiples of so many positions, and end there or with the prompt;
    // a multiple of page_size, or 1. max_num_batched_tokens is at least max_num_seqs and so many.
    int chunk_alignment = 1;
  };

  struct ScheduledSlice {
    int64_t group = 0;
    int sample = -1;  // -1: the group's prompt
    // Without tokens. Its pages are valid until the next call; its slot is the sample's while it
    // runs.
    SequenceSlice slice;
  };
  struct Draw {
    int64_t group = 0;
    int sample = 0;
    int slot = -1;      // as above; -1: the sample does not run yet, or draft tokens
    int64_t index = 0;  // among the sample's generated tokens
    // So many draws follow each of which holds only if the one before it holds and gave the token
    // that was drafted.
    int num_draft_tokens = 0;
  };
  // Copies come before slices. No page is copied to twice, nor both copied to and from. A page that
  // is free after a step may be used by the next one even if the first has not been run yet.
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
    int64_t shared_tokens = 0;      // of prompts, taken over by samples instead of computed
    int64_t draft_tokens = 0;       // passed through the model behind a sample's last token
    int64_t cached_tokens = 0;      // of prompts, found in what earlier groups had computed
  };

  explicit Scheduler(const Options& options);

  // Whether a sample of this size fits when it has all pages to itself.
  bool Fits(int64_t prompt_length, int64_t max_tokens) const;

  // Adds a group of `samples` samples at the end of the queue: it must fit. Numbers rise. `prompt`:
  // its tokens, which stay where they are until the group has ended; only for
  // enable_prefix_caching.
  void Add(int64_t group, int64_t prompt_length, int64_t max_tokens, int samples,
           std::span<const int32_t> prompt = {});

  // What the next step computes; its draws are in flight from now on. The next token of a sample
  // whose draw is in flight may be part of it: the token drawn last for its slot. Without slices if
  // there is nothing to do before a draw is collected (or a group added).
  Step Schedule();

  // In the next step, verify up to `count` draft tokens of a running sample that decodes and has no
  // draw in flight: as many as there are free batch slots and free pages.
  void SetDraftTokens(int64_t group, int sample, int count);

  // Records a collected draw without draft tokens. Draws of finished samples are ignored.
  void UpdateFromDraw(const Draw& draw);

  // The same for a verified draft: `num_accepted` of its draws, at least one, are accepted.
  void AcceptDraftTokens(const Draw& draw, int num_accepted);

  // The sample has ended, wherever it is: its pages are free. `generated`: its tokens, only for
  // enable_prefix_caching.
  void Finish(int64_t group, int sample, std::span<const int32_t> generated = {});

  // Invalidates the KV cache: unfinished sequences are recomputed. No draw may be in flight.
  void Invalidate();
  // Empties the prefix cache.
  void InvalidatePrefixCache();

  const std::vector<SampleId>& running() const { return running_; }
  int num_running() const { return static_cast<int>(running_.size()); }
  int64_t num_waiting() const { return static_cast<int64_t>(waiting_.size()); }
  const BlockPool& pool() const { return pool_; }
  const Stats& stats() const { return stats_; }

  // How often each page is in a table, counted anew; for tests.
  std::vector<int> CountRefs() const;

 private:
  struct Table {
    std::vector<int32_t> pages;
    int64_t computed = 0;  // positions that are in the pages once the scheduled steps have run
    int64_t reached = 0;   // most that `computed` has been
  };
  enum class Phase { kWaiting, kRunning, kEnded };
  struct Sample {
    Phase phase = Phase::kWaiting;
    int slot = -1;
    Table table;        // no pages: nothing taken over from the prompt yet
    int64_t drawn = 0;  // tokens drawn, and draws in flight
    int in_flight = 0;
    int max_draft_tokens = 0;  // in the next step
    bool verifying = false;    // of the draws in flight not all may hold
  };
  struct Group {
    int64_t prompt_length = 0;
    int64_t max_tokens = 0;
    std::span<const int32_t> prompt_tokens;  // empty: not known
    Table prompt;
    bool ready = false;   // the whole prompt is in pages, from an earlier step
    bool shared = false;  // a sample has taken the prompt over
    int running = 0;
    int unfinished = 0;
    int without_pages = 0;  // of those not ended
    std::vector<Sample> samples;
  };

  int64_t Pages(int64_t positions) const {
    return (positions + options_.page_size - 1) / options_.page_size;
  }
  // Tokens of a sample that are not in its pages yet.
  int64_t Missing(const Group& group, const Sample& sample) const;
  bool Decodes(const Group& group, const Sample& sample) const;

  // Lets waiting samples run.
  void Admit();
  // Pages that a running sample will take soon, or until its end if all are reserved.
  int64_t PagesNeededSoon(const Group& group, const Sample& sample) const;
  // Pages that giving up a group's prompt frees, if none of its samples runs.
  int64_t IdlePages(const Group& group) const;
  int64_t PagesOfIdleGroups() const;

  // What a step may still take.
  struct Budget {
    int64_t tokens = 0;            // of chunks and draft tokens
    int64_t chunks = 0;            // of chunks
    int64_t num_draft_tokens = 0;  // rows with logits
    int64_t ChunkRoom() const { return std::min(tokens, chunks); }
  };
  // For the next step, with what decodes taken off.
  Budget NextBudget();
  // Most tokens of chunks beside so many samples that decode.
  int64_t ChunkTokens(int64_t decoding) const;
  // Puts running_[i] into the step.
  void ScheduleSample(size_t i, Budget* budget, Step* step);
  void SchedulePrompt(size_t i, Group* group, Budget* budget, Step* step);
  // Takes what earlier groups have left of a prompt's beginning.
  void MatchPrefix(int64_t number, Group* group);
  void CacheSample(const Group& group, const Sample& sample, std::span<const int32_t> generated);
  // Adds draft tokens to a slice of one token.
  void ScheduleDraftTokens(const Group& group, int max_draft_tokens, Sample* sample, Budget* budget,
                           SequenceSlice* slice);
  void SharePrompt(Group* group, Sample* sample);
  void EndStep(const Step& step);

  // Of `room` positions those up to the last at which a chunk may end, where `missing` are left of
  // the prompt.
  int64_t AlignedChunk(int64_t missing, int64_t room) const;
  // Gives `table` pages that only it holds for positions [computed, computed + count), or as many
  // of them as there is memory for; returns how many. `i` as in ScheduleSample.
  int64_t AllocatePages(size_t i, Table* table, int64_t count, Step* step);
  // As many of `count` further positions as there is free memory for, and pages for them.
  int64_t AllocateFreePages(Table* table, int64_t count);
  // The table's next position lies in a page that others hold too.
  bool WritesToSharedPage(const Table& table) const;
  // Takes pages from what is younger than running_[i]; false if there is nothing left.
  bool Reclaim(size_t i, const Step& step);
  // Preempts the youngest running sample: it returns to the queue without pages.
  void Preempt();
  bool EvictIdlePrompt(int64_t except);
  bool EvictPartialPage(int64_t requester, const Step& step);
  bool HasPartialPage(const Group& group) const;
  void ReleasePartialPage(int64_t number, Group* group);
  void ReleaseAll(Table* table);
  // Counts what is computed for the first time and again.
  void Advance(Table* table, int64_t count, int64_t* first_time);

  const Options options_;
  BlockPool pool_;
  std::optional<PrefixCache> prefix_cache_;
  std::map<int64_t, Group> groups_;
  std::set<int64_t> groups_with_pages_;  // groups whose prompt has pages
  std::set<SampleId> waiting_;
  std::vector<SampleId> running_;  // sorted
  std::vector<int> free_slots_;    // taken from the back
  Stats stats_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SCHEDULER_SCHEDULER_H_
