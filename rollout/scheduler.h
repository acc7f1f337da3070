#ifndef TRITONRL_ROLLOUT_SCHEDULER_H_
#define TRITONRL_ROLLOUT_SCHEDULER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "rollout/block_pool.h"
#include "rollout/prefix_cache.h"

namespace tritonrl {

// Decides what each step of generation computes, in which pages. Plain bookkeeping without a model:
// it knows lengths, and tokens only to find beginnings that were computed before.
//
// Samples are served in the order of their groups' arrival, and by their index within a group. A
// group's prompt is computed once, in chunks, and at its end all samples draw their first token.
// A sample that runs shares the prompt's whole pages and copies the last, partly filled one when it
// first writes there. When no page is free, what the youngest hold is taken: prompts of groups of
// which no sample runs, then the youngest running sample (preemption: it waits again and is
// recomputed from its tokens), and last the partly filled pages that prompts keep for samples to
// come. A running sample that gets no page although nothing younger runs sits a step out. So the
// oldest always goes on, and every sample ends.
//
// While samples wait, prompts beside samples that decode come in small chunks
// (weights_bound_tokens): arithmetic of theirs then fills steps that reading the weights bounds,
// and samples that began at different times do not all want memory at once.
class Scheduler {
 public:
  struct Options {
    int num_pages = 0;
    int page_size = 16;  // positions
    int max_running = 64;
    // Most tokens of a step; at least max_running. Samples that decode come first, chunks take the
    // rest.
    int max_step_tokens = 1024;
    // Prompts and samples stay in memory that nobody needs, for prompts that begin like them.
    bool keep_prefixes = false;
    // A step of so many tokens takes hardly longer than one of few (see ModelRunner). While samples
    // wait for memory or a place, chunks beside samples that decode fill steps up to so many
    // tokens, and have at least a quarter of that. 0: chunks are always as large as max_step_tokens
    // allows.
    int weights_bound_tokens = 0;
    // For runners that are batch-invariant: what a sample has decoded is never computed again as a
    // chunk, nor read by others. A sample runs only once the pages that it can grow to are left for
    // it, so that none gives way to another, and only prompts are kept for others. Forget must not
    // be called under samples.
    bool reserve_whole_samples = false;
    // Chunks of prompts begin at multiples of so many positions, and end there or with the prompt;
    // a multiple of page_size, or 1. max_step_tokens is at least max_running and so many.
    int chunk_multiple = 1;
  };

  // Consecutive tokens of one sequence.
  struct Slice {
    int64_t group = 0;
    int sample = -1;    // -1: the group's prompt
    int slot = -1;      // in [0, max_running), the sample's own while it runs; -1 for a prompt
    int64_t first = 0;  // position of the first token, counted from the prompt's beginning
    int64_t count = 0;
    // Pages of positions [0, first + count); valid until the next call.
    std::span<const int32_t> pages;
    // So many of the step's draws, in order, are from the logits after the last token.
    int draws = 0;
    // The last so many tokens are guesses; then draws are one more, each from the logits after each
    // of the last `draws` tokens.
    int guesses = 0;
  };
  struct Draw {
    int64_t group = 0;
    int sample = 0;
    int slot = -1;      // as above; -1: the sample does not run yet, or guesses
    int64_t index = 0;  // among the sample's generated tokens
    // So many draws follow each of which holds only if the one before it holds and gave the token
    // that was guessed.
    int guesses = 0;
  };
  // Copies come before slices. No page is copied to twice, nor both copied to and from. A page that
  // is free after a step may be used by the next one even if the first has not been run yet.
  struct Step {
    std::vector<PageCopy> copies;
    std::vector<Slice> slices;
    std::vector<Draw> draws;
  };

  // Samples in the order in which they are served.
  struct Name {
    int64_t group = 0;
    int sample = 0;
    bool operator<(const Name& other) const {
      return group != other.group ? group < other.group : sample < other.sample;
    }
  };

  // Totals.
  struct Stats {
    int64_t preemptions = 0;
    int64_t prompt_tokens = 0;      // computed for the first time
    int64_t recomputed_tokens = 0;  // computed again, of prompts and samples
    int64_t shared_tokens = 0;      // of prompts, taken over by samples instead of computed
    int64_t guessed_tokens = 0;     // passed through the model behind a sample's last token
    int64_t cached_tokens = 0;      // of prompts, found in what earlier groups had computed
  };

  explicit Scheduler(const Options& options);

  // Whether a sample of this size fits when it has all pages to itself.
  bool Fits(int64_t prompt_length, int64_t max_tokens) const;

  // Adds a group of `samples` samples at the end of the queue: it must fit. Numbers rise. `prompt`:
  // its tokens, which stay where they are until the group has ended; only for keep_prefixes.
  void Add(int64_t group, int64_t prompt_length, int64_t max_tokens, int samples,
           std::span<const int32_t> prompt = {});

  // What the next step computes; its draws are under way from now on. The next token of a sample
  // whose draw is under way may be part of it: the token drawn last for its slot. Without slices if
  // there is nothing to do before a draw is collected (or a group added).
  Step Schedule();

  // In the next step, a running sample that decodes and has no draw under way may pass so many
  // guessed tokens through the model behind its last one: as many as max_running leaves rows for
  // beside the running samples and as fit into memory that is free.
  void Guess(int64_t group, int sample, int count);

  // A draw without guesses has come out, and the sample goes on if it has not been finished. Draws
  // of samples that have are ignored.
  void Collected(const Draw& draw);

  // The same for a draw with guesses and those that follow it: `held` of them, at least one, hold.
  void CollectedGuesses(const Draw& draw, int held);

  // The sample has ended, wherever it is: its pages are free. `generated`: its tokens, only for
  // keep_prefixes.
  void Finish(int64_t group, int sample, std::span<const int32_t> generated = {});

  // All that has been computed is computed again where it is still needed. No draw may be under
  // way.
  void Forget();
  // Prompts to come find nothing that was computed until now.
  void ForgetPrefixes();

  const std::vector<Name>& running() const { return running_; }
  int num_running() const { return static_cast<int>(running_.size()); }
  int64_t num_waiting() const { return static_cast<int64_t>(waiting_.size()); }
  const BlockPool& pool() const { return pool_; }
  const Stats& stats() const { return stats_; }

  // How often each page is in a table, counted anew; for tests.
  std::vector<int> CountHolders() const;

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
    int64_t drawn = 0;  // tokens drawn, and draws under way
    int under_way = 0;
    int may_guess = 0;      // in the next step
    bool guessing = false;  // of the draws under way not all may hold
  };
  struct Group {
    int64_t prompt_length = 0;
    int64_t max_tokens = 0;
    std::span<const int32_t> prompt_tokens;  // empty: not known
    Table prompt;
    bool ready = false;   // the whole prompt is in pages, from an earlier step
    bool shared = false;  // a sample has taken the prompt over
    int running = 0;
    int not_ended = 0;
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
  int64_t SoonTaken(const Group& group, const Sample& sample) const;
  // Pages that giving up a group's prompt frees, if none of its samples runs.
  int64_t IdlePages(const Group& group) const;
  int64_t PagesOfIdleGroups() const;

  // What a step may still take.
  struct Budget {
    int64_t tokens = 0;   // of chunks and guesses
    int64_t chunks = 0;   // of chunks
    int64_t guesses = 0;  // rows with logits
    int64_t ChunkRoom() const { return std::min(tokens, chunks); }
  };
  // For the next step, with what decodes taken off.
  Budget NextBudget();
  // Most tokens of chunks beside so many samples that decode.
  int64_t ChunkTokens(int64_t decoding) const;
  // Puts running_[i] into the step.
  void Place(size_t i, Budget* budget, Step* step);
  void PlacePrompt(size_t i, Group* group, Budget* budget, Step* step);
  // Takes what earlier groups have left of a prompt's beginning.
  void FindPrefix(int64_t number, Group* group);
  void KeepSample(const Group& group, const Sample& sample, std::span<const int32_t> generated);
  // Adds guesses to a slice of one token.
  void PlaceGuesses(const Group& group, int may_guess, Sample* sample, Budget* budget,
                    Slice* slice);
  void TakePromptOver(Group* group, Sample* sample);
  void EndStep(const Step& step);

  // Of `room` positions those up to the last at which a chunk may end, where `missing` are left of
  // the prompt.
  int64_t WholeChunks(int64_t missing, int64_t room) const;
  // Gives `table` pages that only it holds for positions [computed, computed + count), or as many
  // of them as there is memory for; returns how many. `i` as in Place.
  int64_t MakeRoom(size_t i, Table* table, int64_t count, Step* step);
  // As many of `count` further positions as there is free memory for, and pages for them.
  int64_t MakeFreeRoom(Table* table, int64_t count);
  // The table's next position lies in a page that others hold too.
  bool WritesToSharedPage(const Table& table) const;
  // Takes pages from what is younger than running_[i]; false if there is nothing left.
  bool Reclaim(size_t i, const Step& step);
  // The youngest running sample waits, without pages.
  void SetAside();
  bool DropIdlePrompt(int64_t except);
  bool DropTail(int64_t requester, const Step& step);
  bool HoldsTail(const Group& group) const;
  void ReleaseTail(int64_t number, Group* group);
  void ReleaseAll(Table* table);
  // Counts what is computed for the first time and again.
  void Advance(Table* table, int64_t count, int64_t* first_time);

  const Options options_;
  BlockPool pool_;
  std::optional<PrefixCache> prefixes_;
  std::map<int64_t, Group> groups_;
  std::set<int64_t> holding_;  // groups whose prompt has pages
  std::set<Name> waiting_;
  std::vector<Name> running_;    // sorted
  std::vector<int> free_slots_;  // taken from the back
  Stats stats_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SCHEDULER_H_
