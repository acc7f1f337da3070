// Packs a ModelStep into the inputs of its kernels: rows, page tables, attention plans, draws. They
// form one block, which is filled in CPU memory and copied to the GPU in one copy.
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

// A packed step in 32-bit words. A part is given by the index of its first word in the GPU's array
// of StepPacker::words() words; see StepInputs.
struct PackedStep {
  // rows: the decode rows, padded to decode->rows(), then the rows of chunks, then padding.
  int64_t rows = 0, chunk_rows = 0;
  const DecodePlan* decode = nullptr;
  PrefillPlan chunks;
  bool has_chunks = false;
  int64_t slots = 0, positions = 0, page_slots = 0, decode_words = 0, chunk_tokens = 0,
          chunk_words = 0;
  int64_t logit_rows = 0;
  int64_t logit_ids = 0;  // 0: the first logit_rows rows have logits
  int64_t draws = 0;      // [draw_rows] SamplingRow
  int draw_rows = 0;      // with padding
  int64_t updates = 0;    // pairs (index of a word on the GPU, its new value)
  int update_count = 0;
  int64_t copies = 0;  // pairs of pages (from, to)
  int copy_count = 0;
  int64_t used = 0;  // used words of the block

  // All decode-only steps with the same number of rows have the parts that a CUDA graph reads at
  // the same indices.
  bool only_decodes() const { return decode != nullptr && !has_chunks; }
};

// Packs steps one after another. Keeps a copy of the GPU's page tables, so that a step carries only
// their changes.
class StepPacker {
 public:
  struct Limits {
    int slots = 0;           // maximum number of running sequences
    int64_t max_length = 0;  // tokens of a sequence
    int64_t max_tokens = 0;  // tokens of a step
    CacheHeads shape;
    PrefillDevice device;
    bool batch_invariant = false;  // see decode_plan.h and prefill_plan.h
  };
  explicit StepPacker(const Limits& limits);

  // Number of words on the GPU. In this order: a page table for each slot, each slot's last token,
  // one word for a draft token per slot, and the block that is copied for each step.
  int64_t words() const { return block() + block_words_; }
  int64_t last_tokens() const { return int64_t{limits_.slots} * table_pages_; }
  int64_t block() const { return (last_tokens() + 2 * limits_.slots + 31) / 32 * 32; }
  int64_t block_words() const { return block_words_; }

  // Maximum number of rows of a step, and of rows with logits.
  int64_t max_rows() const;
  int64_t max_logits() const { return RowsFor(limits_.slots); }
  // The number of rows to which `decoding` decode rows are padded. It has few different values, so
  // that few graphs are captured.
  static int64_t RowsFor(int64_t decoding);

  // Whether the slice is one token, perhaps with draft tokens. Each of them becomes a row of its
  // own, as if it were another sequence. The other slices are chunks, whose rows follow the decode
  // rows in the order of slices.
  static bool Decodes(const SequenceSlice& slice);

  // Fills `block` [block_words()]. Steps must be packed in the order in which they run, because
  // each updates the page tables of the step before.
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
  // Packs each row's position and page slot, and the draws with their rows of logits.
  void PackRows(const ModelStep& step, Block* block, PackedStep* packed);

  const Limits limits_;
  const int64_t table_pages_;
  int64_t block_words_;
  std::map<int64_t, std::unique_ptr<DecodePlan>> plans_;
  std::vector<std::vector<int32_t>> tables_;  // each slot's page table as on the GPU
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_STEP_PACKER_H_
