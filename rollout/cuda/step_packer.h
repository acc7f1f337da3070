// Packs a ModelStep into the inputs of its kernels: rows, page tables, attention plans, draws.
// Filled in CPU memory and copied to the GPU at once.
#ifndef TRITONRL_ROLLOUT_CUDA_STEP_PACKER_H_
#define TRITONRL_ROLLOUT_CUDA_STEP_PACKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "rollout/cuda/attention/decode_plan.h"
#include "rollout/cuda/attention/paged_kv_layout.h"
#include "rollout/cuda/attention/prefill_plan.h"
#include "rollout/cuda/sampling/gpu_sampler.h"
#include "rollout/engine/model_runner.h"

namespace tritonrl {

// A step in words of 32 bits, each part by the place of its first word in the GPU's memory (where
// StepPacker::words() are); see StepInputs.
struct PackedStep {
  // Rows: those that decode, filled up to decode->rows(); chunks; rows that fill up.
  int64_t rows = 0, chunk_rows = 0;
  const DecodePlan* decode = nullptr;
  PrefillPlan chunks;
  bool has_chunks = false;
  int64_t slots = 0, positions = 0, page_slots = 0, decode_words = 0, chunk_tokens = 0,
          chunk_words = 0;
  int64_t logit_rows = 0;
  int64_t logit_ids = 0;  // 0: the first rows
  int64_t draws = 0;      // [draw_rows] SamplingRow
  int draw_rows = 0;      // those that fill up among them
  int64_t updates = 0;    // pairs of a place and the word that belongs there
  int update_count = 0;
  int64_t copies = 0;  // pairs of pages
  int copy_count = 0;
  int64_t used = 0;  // words of the block

  // Steps that only decode lie in the same places whenever they have as many rows.
  bool only_decodes() const { return decode != nullptr && !has_chunks; }
};

class StepPacker {
 public:
  struct Limits {
    int slots = 0;           // sequences that run side by side
    int64_t max_length = 0;  // tokens of a sequence
    int64_t max_tokens = 0;  // tokens of a step
    CacheHeads shape;
    PrefillDevice device;
    bool batch_invariant = false;  // see decode_plan.h and prefill_plan.h
  };
  explicit StepPacker(const Limits& limits);

  // What lies in the GPU's memory, in this order: a page table of each slot, each slot's last
  // token, places for as many drafted ones, and the block that is copied there for each step.
  int64_t words() const { return block() + block_words_; }
  int64_t last_tokens() const { return int64_t{limits_.slots} * table_pages_; }
  int64_t block() const { return (last_tokens() + 2 * limits_.slots + 31) / 32 * 32; }
  int64_t block_words() const { return block_words_; }

  // Most rows of a step, and of those with logits.
  int64_t max_rows() const;
  int64_t max_logits() const { return RowsFor(limits_.slots); }
  // Rows of the launch for so many that decode: few different numbers, so that few graphs are
  // captured.
  static int64_t RowsFor(int64_t decoding);

  // Fills `block` [block_words()]. Steps must be packed in the order in which they run.
  PackedStep Pack(const ModelStep& step, int32_t* block);

 private:
  class Block;

  const DecodePlan* PlanFor(int64_t rows);
  void PackDecoding(const std::vector<const SequenceSlice*>& slices, Block* block,
                    PackedStep* packed, std::vector<int32_t>* updates);
  void PackChunks(const std::vector<const SequenceSlice*>& slices, Block* block,
                  PackedStep* packed);
  void UpdateTable(const SequenceSlice& slice, std::vector<int32_t>* updates);
  void UpdateToken(int place, int32_t token, std::vector<int32_t>* updates) const;
  // Where each row's keys go, and what is drawn from which row.
  void PackRows(const ModelStep& step, Block* block, PackedStep* packed);

  const Limits limits_;
  const int64_t table_pages_;
  int64_t block_words_;
  std::map<int64_t, std::unique_ptr<DecodePlan>> plans_;
  std::vector<std::vector<int32_t>> tables_;  // of each slot, as the GPU has them
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_STEP_PACKER_H_
