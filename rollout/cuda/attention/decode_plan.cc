#include "rollout/cuda/attention/decode_plan.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <tuple>

#include "rollout/cuda/attention/paged_kv_layout.h"

namespace tritonrl {
namespace {

constexpr int kTileWords = sizeof(DecodeTile) / sizeof(int32_t);
constexpr int kRowWords = sizeof(DecodeRow) / sizeof(int32_t);

int64_t DivideUp(int64_t n, int64_t by) { return (n + by - 1) / by; }

}  // namespace

DecodeSharing DecodeSharingFor(int query_heads, int key_heads, bool batch_invariant) {
  const int each = query_heads / key_heads;
  DecodeSharing sharing = {.tile_rows =
                               each > kGroupColumns ? 1 : kMaxColumnGroups * kGroupColumns / each};
  if (batch_invariant) sharing.min_sequences = std::numeric_limits<int>::max();
  return sharing;
}

int64_t DecodeSplit::PartTokens(int64_t length, int64_t groups) const {
  const int64_t max_parts = std::max<int64_t>(parts, together / groups);
  const auto wanted = std::bit_ceil(static_cast<uint64_t>(DivideUp(length, max_parts)));
  return std::clamp(static_cast<int64_t>(wanted), least, most);
}

int64_t DecodeSplit::MaxParts(int64_t max_length, int64_t groups) const {
  const int64_t max_parts = std::max<int64_t>(parts, together / groups);
  return std::max(std::min(max_parts, DivideUp(max_length, least)), DivideUp(max_length, most));
}

DecodeSplit DecodeSplitFor(int rows, bool batch_invariant) {
  if (batch_invariant) return {.least = 1024, .most = 1024};
  return {.together = 16, .least = 128, .most = rows <= 16 ? 2048 : 4096};
}

DecodePlan::DecodePlan(int rows, int64_t max_tokens, const DecodeSplit& split,
                       const DecodeSharing& sharing)
    : rows_(rows), split_(split), sharing_(sharing) {
  TORCH_CHECK(rows > 0 && max_tokens > 0 && sharing.tile_rows > 0, "plan of ", rows, " rows, ",
              max_tokens, " tokens, ", sharing.tile_rows, " rows together");
  TORCH_CHECK(split.parts > 0 && split.together > 0 && split.least >= kPageTokens &&
                  split.least <= split.most,
              split.parts, " parts of ", split.least, " to ", split.most, " tokens");
  // A shared prefix can end inside a part, which gives the row one part more.
  const int64_t cut = Shares(rows) ? 1 : 0;
  tiles_ = static_cast<int>(rows * (split.MaxParts(max_tokens, TilesOf(rows)) + cut));
}

int64_t DecodePlan::words() const {
  return int64_t{tiles_} * kTileWords + int64_t{rows_} * kRowWords + 1;
}

int64_t DecodePlan::PartialBytes(int query_heads, int head_dim) const {
  // For each head: head_dim bf16 elements and a logarithm in fp32.
  return int64_t{tiles_} * query_heads * (2 * head_dim + 4);
}

// Consecutive rows of the same sequence.
struct DecodePlan::Sequence {
  int row, rows;
  std::span<const int32_t> lengths;  // of `row` and all rows after it
  int32_t page_begin;

  int64_t settled() const { return lengths[0] - 1; }  // tokens from before the step
  int64_t length() const { return lengths[rows - 1]; }
};

// Consecutive sequences that share their first pages; a single sequence shares none.
struct DecodePlan::Common {
  size_t first, count;  // sequences
  int32_t pages;

  int64_t tokens() const { return int64_t{pages} * kPageTokens; }
};

// The arrays that Fill writes, and its progress.
struct DecodePlan::Filling {
  DecodeTile* tiles;
  DecodeRow* rows;
  int tiles_used = 0;
  int slots_used = 0;
  int64_t groups = 0;  // see DecodeSplit
  int64_t each = 0;    // tokens of a part of the current sequences
};

std::vector<DecodePlan::Sequence> DecodePlan::SequencesOf(std::span<const int32_t> lengths,
                                                          std::span<const int32_t> page_begins) {
  std::vector<Sequence> sequences;
  for (int row = 0; row < lengths.size(); ++row) {
    if (row > 0 && page_begins[row] == page_begins[row - 1]) {
      TORCH_CHECK(lengths[row] == lengths[row - 1] + 1, "a draft token sees ", lengths[row],
                  " tokens, the row in front of it ", lengths[row - 1]);
      ++sequences.back().rows;
    } else {
      sequences.push_back({row, 1, lengths.subspan(row), page_begins[row]});
    }
  }
  return sequences;
}

int64_t DecodePlan::TilesOf(int64_t rows) const { return DivideUp(rows, sharing_.tile_rows); }

bool DecodePlan::Shares(int64_t sequences) const {
  return sharing_.tile_rows > 1 && sequences >= sharing_.min_sequences;
}

// Whether sharing saves at least half of the reads.
bool DecodePlan::Pays(const std::vector<Sequence>& sequences, const Common& common) const {
  int64_t rows = 0, apart = 0;
  for (size_t i = common.first; i < common.first + common.count; ++i) {
    rows += sequences[i].rows;
    apart += TilesOf(sequences[i].rows);
  }
  return 2 * TilesOf(rows) <= apart;
}

std::vector<DecodePlan::Common> DecodePlan::CommonOf(const std::vector<Sequence>& sequences,
                                                     std::span<const int32_t> shared_pages) const {
  const bool may = !shared_pages.empty() && Shares(std::ssize(sequences));
  // The pages that sequence i shares with the sequence before it; 0 if they are too few.
  const auto pages_with = [&](size_t i) -> int64_t {
    if (!may || i >= sequences.size()) return 0;
    const int64_t settled = std::min(sequences[i - 1].settled(), sequences[i].settled());
    const int64_t pages = std::min<int64_t>(shared_pages[sequences[i].row], settled / kPageTokens);
    return pages < sharing_.min_pages ? 0 : pages;
  };
  std::vector<Common> all;
  for (size_t begin = 0; begin < sequences.size();) {
    // A sequence ends the group if it shares with its predecessor less than 7/8 of the pages that
    // the first two share. If it shares more than 8/7 of them, it and its predecessor belong to the
    // next group.
    const int64_t of_two = pages_with(begin + 1);
    int64_t pages = of_two;
    size_t end = begin + 1;
    while (of_two > 0 && 8 * pages_with(end) >= 7 * of_two) {
      if (7 * pages_with(end) > 8 * of_two) {
        --end;
        break;
      }
      pages = std::min(pages, pages_with(end));
      ++end;
    }
    const Common found = {begin, end - begin, static_cast<int32_t>(pages)};
    if (found.count > 1 && Pays(sequences, found)) {
      all.push_back(found);
    } else {
      for (; begin < end; ++begin) all.push_back({begin, 1, 0});
    }
    begin = end;
  }
  return all;
}

void DecodePlan::FillCommon(const std::vector<Sequence>& sequences, const Common& common,
                            Filling* filling) const {
  const Sequence& first = sequences[common.first];
  const Sequence& last = sequences[common.first + common.count - 1];
  const int64_t end = last.row + last.rows, parts = DivideUp(common.tokens(), filling->each);
  for (int64_t row = first.row; row < end;) {
    const int64_t left = end - row, rows = DivideUp(left, TilesOf(left));
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t from = part * filling->each;
      const auto tokens = static_cast<int32_t>(std::min(common.tokens() - from, filling->each));
      filling->tiles[filling->tiles_used++] = {
          .row = static_cast<int32_t>(row),
          .rows = static_cast<int32_t>(rows),
          .first_page = first.page_begin + static_cast<int32_t>(from / kPageTokens),
          .tokens = tokens,
          .settled_pages = tokens / kPageTokens,
          .part = static_cast<int32_t>(part)};
    }
    row += rows;
  }
}

void DecodePlan::FillOwn(const Sequence& sequence, const Common& common, Filling* filling) const {
  const int64_t each = filling->each, begin = common.tokens(), first_part = DivideUp(begin, each);
  const auto parts_of = [&](int row) {
    return std::max<int64_t>(DivideUp(sequence.lengths[row] - begin, each), 1);
  };
  for (int done = 0; done < sequence.rows;) {
    // Tiles have nearly equal numbers of rows. All rows of a tile have the same number of parts.
    const int64_t left = sequence.rows - done, wanted = DivideUp(left, TilesOf(left));
    const int64_t parts = parts_of(done), slots = first_part + parts;
    int rows = 1;
    while (rows < wanted && parts_of(done + rows) == parts) ++rows;
    const int64_t length = sequence.lengths[done + rows - 1];
    TORCH_CHECK(filling->slots_used + slots * rows <= tiles_, "row ", sequence.row + done, " of ",
                length, " tokens is too long");
    for (int i = 0; i < rows; ++i) {
      filling->rows[sequence.row + done + i] = {static_cast<int32_t>(slots), filling->slots_used};
      filling->slots_used += static_cast<int>(slots);
    }
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t from = begin + part * each;
      filling->tiles[filling->tiles_used++] = {
          .row = sequence.row + done,
          .rows = rows,
          .first_page = sequence.page_begin + static_cast<int32_t>(from / kPageTokens),
          .tokens = static_cast<int32_t>(std::min(length - from, each)),
          .fewer = rows > 1 && part == parts - 1 ? 1 : 0,
          .settled_pages =
              static_cast<int32_t>(std::max<int64_t>(sequence.settled() - from, 0) / kPageTokens),
          .part = static_cast<int32_t>(first_part + part)};
    }
    done += rows;
  }
}

void DecodePlan::Fill(std::span<const int32_t> lengths, std::span<const int32_t> page_begins,
                      std::span<const int32_t> shared_pages, int32_t* to) const {
  TORCH_CHECK(lengths.size() <= rows_ && lengths.size() == page_begins.size() &&
                  (shared_pages.empty() || shared_pages.size() == lengths.size()),
              lengths.size(), " rows in a plan of ", rows_);
  const int used = static_cast<int>(lengths.size());
  const std::vector<Sequence> sequences = SequencesOf(lengths, page_begins);
  int32_t* const behind_tiles = to + int64_t{tiles_} * kTileWords;
  Filling filling = {reinterpret_cast<DecodeTile*>(to), reinterpret_cast<DecodeRow*>(behind_tiles)};
  for (const Sequence& sequence : sequences) filling.groups += TilesOf(sequence.rows);
  filling.groups += rows_ - used;
  for (const Common& common : CommonOf(sequences, shared_pages)) {
    const std::span of(&sequences[common.first], common.count);
    // The shared prefix and the rest of each sequence have parts of the same size. The longest
    // sequence, which has the most parts, determines it.
    const Sequence& longest = *std::max_element(
        of.begin(), of.end(),
        [](const Sequence& a, const Sequence& b) { return a.length() < b.length(); });
    filling.each = split_.PartTokens(longest.length(), filling.groups);
    FillCommon(sequences, common, &filling);
    for (const Sequence& sequence : of) FillOwn(sequence, common, &filling);
  }
  for (int row = used; row < rows_; ++row) {
    const int32_t none[] = {0};
    filling.each = split_.least;
    FillOwn({row, 1, none, 0}, {}, &filling);
  }
  // Blocks take the tiles in turn: short tiles come last and fill the gaps, and tiles that read the
  // same pages read them at the same time.
  std::stable_sort(filling.tiles, filling.tiles + filling.tiles_used,
                   [](const DecodeTile& a, const DecodeTile& b) {
                     return std::tie(b.tokens, a.first_page) < std::tie(a.tokens, b.first_page);
                   });
  behind_tiles[int64_t{rows_} * kRowWords] = filling.tiles_used;
}

DecodeArrays DecodePlan::At(const int32_t* words) const {
  const int32_t* const rows = words + int64_t{tiles_} * kTileWords;
  return {.tiles = reinterpret_cast<const DecodeTile*>(words),
          .rows = reinterpret_cast<const DecodeRow*>(rows),
          .used_tiles = rows + int64_t{rows_} * kRowWords};
}

DecodePlan DecodePlanFor(int rows, int64_t max_tokens, int query_heads, int key_heads,
                         bool batch_invariant) {
  return {rows, max_tokens, DecodeSplitFor(rows, batch_invariant),
          DecodeSharingFor(query_heads, key_heads, batch_invariant)};
}

}  // namespace tritonrl
