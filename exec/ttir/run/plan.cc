#include "exec/ttir/run/plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

namespace tritonrl::ttir {

namespace {

struct Interval {
  int32_t first = std::numeric_limits<int32_t>::max();
  int32_t last = -1;
};

// A step with codes of its own: a loop, a branch, a reduction.
struct Range {
  int32_t begin = 0;
  int32_t end = 0;
  bool is_graph = false;
  std::vector<int32_t> code_ends;
  std::vector<int32_t> touched;
};

template <typename Visit>
void ForBuffers(const Step& step, Visit visit) {
  for (const int32_t buffer : step.in) {
    if (buffer >= 0) visit(buffer);
  }
  for (const int32_t buffer : step.out) {
    if (buffer >= 0) visit(buffer);
  }
}

// Finds from where to where each buffer holds a value, in the order of the steps.
class Lifetimes {
 public:
  explicit Lifetimes(size_t buffers) : intervals_(buffers) {}

  std::vector<Interval> Find(const Code& code) {
    std::vector<int32_t> touched;
    Walk(code, &touched);
    for (const Range& range : ranges_) Extend(range);
    return std::move(intervals_);
  }

 private:
  void Touch(const Step& step, std::vector<int32_t>* touched) {
    ForBuffers(step, [&](int32_t buffer) {
      Interval& interval = intervals_[buffer];
      interval.first = std::min(interval.first, position_);
      interval.last = std::max(interval.last, position_);
      touched->push_back(buffer);
    });
  }

  void Walk(const Code& code, std::vector<int32_t>* touched) {
    for (const Step& step : code.steps) {
      ++position_;
      Touch(step, touched);
      if (step.codes.empty()) continue;
      Range range;
      range.begin = position_;
      range.is_graph = step.is_graph;
      for (const Code& inner : step.codes) {
        Walk(inner, &range.touched);
        range.code_ends.push_back(++position_);
      }
      // Before the inner codes and behind them: the step may read what they leave.
      ++position_;
      Touch(step, touched);
      range.end = position_;
      std::sort(range.touched.begin(), range.touched.end());
      range.touched.erase(std::unique(range.touched.begin(), range.touched.end()),
                          range.touched.end());
      touched->insert(touched->end(), range.touched.begin(), range.touched.end());
      ranges_.push_back(std::move(range));
    }
  }

  // A value that comes into a loop, or leaves it, must survive all of it. In a graph of blocks
  // this is so for values of more than one block.
  void Extend(const Range& range) {
    for (const int32_t buffer : range.touched) {
      Interval& interval = intervals_[buffer];
      bool whole = interval.first < range.begin || interval.last > range.end;
      if (!whole && range.is_graph) {
        const auto code_of = [&](int32_t position) {
          return std::lower_bound(range.code_ends.begin(), range.code_ends.end(), position) -
                 range.code_ends.begin();
        };
        whole = code_of(interval.first) != code_of(interval.last);
      }
      if (!whole) continue;
      interval.first = std::min(interval.first, range.begin);
      interval.last = std::max(interval.last, range.end);
    }
  }

  std::vector<Interval> intervals_;
  std::vector<Range> ranges_;  // inner ones first
  int32_t position_ = 0;
};

// Buffers' numbers become offsets, and steps get their costs.
void Resolve(const std::vector<Buffer>& buffers, const std::vector<int32_t>& offsets, Code* code) {
  constexpr int64_t kBytesPerUnit = 16;
  for (Step& step : code->steps) {
    ForBuffers(step, [&](int32_t buffer) { step.cost += buffers[buffer].bytes / kBytesPerUnit; });
    for (int32_t& buffer : step.in) buffer = buffer >= 0 ? offsets[buffer] : buffer;
    for (int32_t& buffer : step.out) buffer = buffer >= 0 ? offsets[buffer] : buffer;
    for (Code& inner : step.codes) Resolve(buffers, offsets, &inner);
  }
}

// Gives out places by size; places that became free go to the next buffer of their size, the last
// one first, as it is still in the cache.
class Places {
 public:
  explicit Places(int64_t begin) : end_((begin + 63) / 64 * 64) {}

  int64_t Take(int64_t bytes) {
    std::vector<int64_t>& free = free_[SizeClass(bytes)];
    if (!free.empty()) {
      const int64_t place = free.back();
      free.pop_back();
      return place;
    }
    const int64_t place = end_;
    end_ += (int64_t{1} << SizeClass(bytes)) + (bytes >= kGapsFrom ? kPlaceGap : 0);
    return place;
  }
  void Free(int64_t place, int64_t bytes) { free_[SizeClass(bytes)].push_back(place); }
  int64_t end() const { return end_; }

 private:
  static int SizeClass(int64_t bytes) {
    return std::bit_width(static_cast<uint64_t>(std::max<int64_t>(bytes, 64)) - 1);
  }

  int64_t end_;
  std::array<std::vector<int64_t>, 65> free_;
};

}  // namespace

Plan PlanBuffers(const std::vector<Buffer>& buffers, Code* prologue, Code* body) {
  const std::vector<Interval> intervals = Lifetimes(buffers.size()).Find(*body);
  std::vector<int64_t> places(buffers.size());
  int64_t small_end = 0;
  std::vector<int32_t> order;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].bytes > kSmallBytes) {
      // A loop may have taken over the place of one that nothing touches.
      const bool touched = buffers[i].depth == 0 || intervals[i].last >= 0;
      if (touched) order.push_back(static_cast<int32_t>(i));
      continue;
    }
    places[i] = small_end;
    small_end += (buffers[i].bytes + 7) / 8 * 8;
  }
  Places larger(small_end);
  // Those of the prologue first: their place is never free again.
  const auto first_of = [&](int32_t b) { return buffers[b].depth == 0 ? -1 : intervals[b].first; };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::pair(first_of(a), a) < std::pair(first_of(b), b);
  });
  std::vector<std::pair<int32_t, int32_t>> ends;  // a heap of (last use, buffer), earliest first
  const auto later = [](const auto& a, const auto& b) { return a > b; };
  for (const int32_t buffer : order) {
    while (!ends.empty() && ends.front().first < first_of(buffer)) {
      std::pop_heap(ends.begin(), ends.end(), later);
      const int32_t freed = ends.back().second;
      ends.pop_back();
      larger.Free(places[freed], buffers[freed].bytes);
    }
    places[buffer] = larger.Take(buffers[buffer].bytes);
    if (buffers[buffer].depth == 0) continue;
    ends.emplace_back(intervals[buffer].last, buffer);
    std::push_heap(ends.begin(), ends.end(), later);
  }
  Plan plan;
  plan.arena_bytes = std::max<int64_t>(larger.end(), 64);
  if (plan.arena_bytes > kMaxArenaBytes) return plan;
  plan.offsets.assign(places.begin(), places.end());
  Resolve(buffers, plan.offsets, prologue);
  Resolve(buffers, plan.offsets, body);
  return plan;
}

void RenameBuffer(int32_t from, int32_t to, Code* code) {
  for (Step& step : code->steps) {
    std::replace(step.in.begin(), step.in.end(), from, to);
    std::replace(step.out.begin(), step.out.end(), from, to);
    for (Code& inner : step.codes) RenameBuffer(from, to, &inner);
  }
}

bool Touches(const Step& step, int32_t buffer) {
  bool found = false;
  ForBuffers(step, [&](int32_t other) { found = found || other == buffer; });
  for (const Code& inner : step.codes) found = found || Touches(inner, buffer);
  return found;
}

bool Touches(const Code& code, int32_t buffer) {
  return std::any_of(code.steps.begin(), code.steps.end(),
                     [&](const Step& step) { return Touches(step, buffer); });
}

}  // namespace tritonrl::ttir
