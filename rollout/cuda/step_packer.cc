#include "rollout/cuda/step_packer.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

namespace tritonrl {
namespace {

// Maximum number of samples of an engine (BatchedEngine). A step that has the last chunks of all
// their prompts has a draw for each sample.
constexpr int64_t kMaxSamples = 1 << 16;

// Parts begin at multiples of this number of words: 128 bytes.
constexpr int64_t kAlign = 32;

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Rows of a step with chunks, rounded up to few sizes, so that GEMMs are autotuned for few of them.
int64_t RowsWithChunks(int64_t rows) { return RoundUp(rows, rows <= 1024 ? 64 : 256); }

// Rows of a slice whose logits the step computes. Those of all_logits are computed after it
// (CudaTransformer::RowLogits).
int64_t LogitRows(SequenceSlice slice) {
  slice.all_logits = false;
  return slice.logit_rows();
}

int32_t SharedPages(const SequenceSlice& a, const SequenceSlice& b) {
  const auto differ = std::mismatch(a.pages.begin(), a.pages.end(), b.pages.begin(), b.pages.end());
  return static_cast<int32_t>(differ.first - a.pages.begin());
}

int64_t RowsOf(const std::vector<const SequenceSlice*>& slices) {
  int64_t rows = 0;
  for (const SequenceSlice* slice : slices) rows += slice->count;
  return rows;
}

}  // namespace

// Allocates the block's parts one after another.
class StepPacker::Block {
 public:
  Block(int32_t* to, int64_t size, int64_t place) : to_(to), size_(size), place_(place) {}

  // Returns the next `count` words, set to zero; *place receives their index in the GPU's words.
  int32_t* Take(int64_t count, int64_t* place) {
    used_ = RoundUp(used_, kAlign);
    TORCH_CHECK(used_ + count <= size_, "the tables of a step of generation do not fit");
    int32_t* words = to_ + used_;
    std::memset(words, 0, count * sizeof(int32_t));
    *place = place_ + used_;
    used_ += count;
    return words;
  }
  int64_t Put(std::span<const int32_t> words) {
    int64_t place = 0;
    std::copy(words.begin(), words.end(), Take(static_cast<int64_t>(words.size()), &place));
    return place;
  }
  int64_t used() const { return used_; }

 private:
  int32_t* const to_;
  const int64_t size_, place_;
  int64_t used_ = 0;
};

StepPacker::StepPacker(const Limits& limits)
    : limits_(limits), table_pages_(PagesFor(limits.max_length)), tables_(limits.slots) {
  for (std::vector<int32_t>& table : tables_) table.reserve(table_pages_);
  const int64_t slots = limits_.slots, rows = max_rows();
  int64_t plan_words = 0;
  for (int64_t n = 1; n <= slots; ++n) {
    if (RowsFor(n) == n) plan_words = std::max(plan_words, PlanFor(n)->words());
  }
  plan_words = std::max(plan_words, PlanFor(RowsFor(slots))->words());
  const int64_t chunk_words = (rows / 64 + slots + 1) * limits_.shape.query_heads * 8 + 16 * slots +
                              limits_.device.multiprocessors + 256;
  // Each chunk's pages are a part. Updates and copies are two words each.
  const int64_t chunk_pages = slots * RoundUp(table_pages_, kAlign);
  const int64_t updates = 2 * slots * (table_pages_ + 2), copies = 2 * slots;
  const int64_t draws = int64_t{sizeof(SamplingRow)} / 4 * (kMaxSamples + max_logits());
  const int64_t of_rows = 3 * rows;  // positions, page slots, tokens
  const int64_t of_slots = 2 * max_logits();
  block_words_ = of_rows + of_slots + plan_words + chunk_words + chunk_pages + updates + copies +
                 draws + 16 * kAlign;
}

bool StepPacker::Decodes(const SequenceSlice& slice) {
  return slice.slot >= 0 && (slice.count == 1 || slice.num_draft_tokens > 0);
}

int64_t StepPacker::RowsFor(int64_t decoding) {
  if (decoding <= 4) return decoding;
  return RoundUp(decoding, decoding <= 64 ? 4 : (decoding <= 256 ? 8 : 32));
}

int64_t StepPacker::max_rows() const {
  return RowsWithChunks(limits_.max_tokens + RowsFor(limits_.slots));
}

const DecodePlan* StepPacker::PlanFor(int64_t rows) {
  std::unique_ptr<DecodePlan>& plan = plans_[rows];
  if (plan == nullptr) {
    plan = std::make_unique<DecodePlan>(
        DecodePlanFor(static_cast<int>(rows), limits_.max_length, limits_.shape.query_heads,
                      limits_.shape.key_heads, limits_.batch_invariant));
  }
  return plan.get();
}

void StepPacker::UpdateTable(const SequenceSlice& slice, std::vector<int32_t>* updates) {
  std::vector<int32_t>& table = tables_[slice.slot];
  const int32_t begin = static_cast<int32_t>(slice.slot * table_pages_);
  const size_t known = std::min(table.size(), slice.pages.size());
  for (size_t i = 0; i < slice.pages.size(); ++i) {
    if (i < known && table[i] == slice.pages[i]) continue;
    updates->push_back(begin + static_cast<int32_t>(i));
    updates->push_back(slice.pages[i]);
  }
  table.assign(slice.pages.begin(), slice.pages.end());
}

void StepPacker::UpdateToken(int place, int32_t token, std::vector<int32_t>* updates) const {
  updates->push_back(static_cast<int32_t>(last_tokens()) + place);
  updates->push_back(token);
}

void StepPacker::PackDecoding(const std::vector<const SequenceSlice*>& slices, Block* block,
                              PackedStep* packed, std::vector<int32_t>* updates) {
  if (slices.empty()) return;
  packed->decode = PlanFor(RowsFor(RowsOf(slices)));
  const int64_t rows = packed->decode->rows();
  int32_t* slots = block->Take(rows, &packed->slots);
  std::fill_n(slots, rows, -1);
  std::vector<int32_t> lengths, page_begins, shared_pages;
  int draft_slot = limits_.slots;
  const SequenceSlice* in_front = nullptr;
  const bool share = packed->decode->Shares(std::ssize(slices));
  for (const SequenceSlice* slice : slices) {
    UpdateTable(*slice, updates);
    if (!slice->tokens.empty()) UpdateToken(slice->slot, slice->tokens.front(), updates);
    if (share) {
      const int32_t shared = in_front == nullptr ? 0 : SharedPages(*in_front, *slice);
      shared_pages.insert(shared_pages.end(), slice->count, shared);
    }
    in_front = slice;
    for (int64_t k = 0; k < slice->count; ++k) {
      // A draft token attends to the draft tokens before it: all keys of the step are in the cache
      // before attention.
      lengths.push_back(static_cast<int32_t>(slice->first + k + 1));
      page_begins.push_back(static_cast<int32_t>(slice->slot * table_pages_));
      if (k > 0) UpdateToken(draft_slot, slice->tokens[k], updates);
      *slots++ = k == 0 ? slice->slot : draft_slot++;
    }
  }
  int32_t* words = block->Take(packed->decode->words(), &packed->decode_words);
  packed->decode->Fill(lengths, page_begins, shared_pages, words);
}

void StepPacker::PackChunks(const std::vector<const SequenceSlice*>& slices, Block* block,
                            PackedStep* packed) {
  if (slices.empty()) return;
  const int64_t decoding = packed->decode == nullptr ? 0 : packed->decode->rows();
  std::vector<PrefillChunk> chunks;
  int32_t* tokens = block->Take(packed->rows - decoding, &packed->chunk_tokens);
  for (const SequenceSlice* slice : slices) {
    chunks.push_back({.first_row = static_cast<int32_t>(decoding + packed->chunk_rows),
                      .rows = static_cast<int32_t>(slice->count),
                      .length = static_cast<int32_t>(slice->first + slice->count),
                      .page_begin = static_cast<int32_t>(block->Put(slice->pages))});
    std::copy(slice->tokens.begin(), slice->tokens.end(), tokens + packed->chunk_rows);
    packed->chunk_rows += slice->count;
  }
  packed->chunks = PlanPrefill(limits_.shape, limits_.device, chunks,
                               static_cast<int32_t>(this->words()), limits_.batch_invariant);
  packed->chunk_words = block->Put(packed->chunks.words);
}

void StepPacker::PackRows(const ModelStep& step, Block* block, PackedStep* packed) {
  int32_t* positions = block->Take(packed->rows, &packed->positions);
  int32_t* page_slots = block->Take(packed->rows, &packed->page_slots);
  std::fill_n(page_slots, packed->rows, kNoPageSlot);
  // A decode-only step has a draw for every row, perhaps an unused one, because graphs need fixed
  // addresses.
  const bool chunks = packed->has_chunks;
  packed->draw_rows = std::max<int>(static_cast<int>(step.draws.size()),
                                    chunks ? 0 : static_cast<int>(packed->rows));
  auto* draws = reinterpret_cast<SamplingRow*>(block->Take(
      packed->draw_rows * static_cast<int64_t>(sizeof(SamplingRow) / 4), &packed->draws));
  std::fill_n(draws, packed->draw_rows, SamplingRow());

  std::vector<int32_t> logit_ids;
  int64_t decode_row = 0, chunk_row = packed->decode == nullptr ? 0 : packed->decode->rows();
  size_t draw = 0;
  for (const SequenceSlice& slice : step.slices) {
    int64_t& row = Decodes(slice) ? decode_row : chunk_row;
    for (int64_t i = 0; i < slice.count; ++i) {
      const int64_t position = slice.first + i;
      positions[row + i] = static_cast<int32_t>(position);
      page_slots[row + i] = PageSlot(slice.pages[position / kPageTokens], position);
    }
    row += slice.count;
    const int64_t first_logits = chunks ? static_cast<int64_t>(logit_ids.size()) : row;
    for (int64_t r = row - LogitRows(slice); r < row; ++r) {
      logit_ids.push_back(static_cast<int32_t>(r));
    }
    for (int i = 0; i < slice.draws; ++i, ++draw) {
      const StepDraw& from = step.draws[draw];
      const int64_t behind = slice.num_draft_tokens > 0 ? i : 0;
      draws[draw] = {.key = from.stream,
                     .temperature = from.sampling->temperature,
                     .top_p = from.sampling->top_p,
                     .position = static_cast<int32_t>(from.position),
                     .top_k = from.sampling->top_k,
                     .logits_row = static_cast<int32_t>(chunks ? first_logits + behind
                                                               : row - LogitRows(slice) + behind),
                     .slot = from.slot};
    }
  }
  packed->logit_rows = packed->rows;
  if (!chunks) return;
  // Padded to few different numbers of rows, because the head's GEMM is autotuned for each.
  logit_ids.resize(RowsFor(static_cast<int64_t>(logit_ids.size())), 0);
  packed->logit_rows = static_cast<int64_t>(logit_ids.size());
  packed->logit_ids = block->Put(logit_ids);
}

PackedStep StepPacker::Pack(const ModelStep& step, int32_t* to) {
  std::vector<const SequenceSlice*> decoding, chunks;
  for (const SequenceSlice& slice : step.slices) {
    (Decodes(slice) ? decoding : chunks).push_back(&slice);
  }
  PackedStep packed;
  const int64_t first_chunk = RowsFor(RowsOf(decoding));
  packed.rows = chunks.empty() ? first_chunk : RowsWithChunks(first_chunk + RowsOf(chunks));
  Block block(to, block_words_, this->block());
  std::vector<int32_t> updates;
  PackDecoding(decoding, &block, &packed, &updates);
  packed.has_chunks = !chunks.empty();
  PackRows(step, &block, &packed);
  PackChunks(chunks, &block, &packed);
  packed.update_count = static_cast<int>(updates.size() / 2);
  packed.updates = block.Put(updates);
  packed.copy_count = static_cast<int>(step.copies.size());
  int32_t* copies = block.Take(2 * packed.copy_count, &packed.copies);
  for (const PageCopy& copy : step.copies) {
    *copies++ = copy.from;
    *copies++ = copy.to;
  }
  packed.used = block.used();
  return packed;
}

}  // namespace tritonrl
