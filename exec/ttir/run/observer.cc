#include "exec/ttir/run/observer.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

namespace tritonrl::ttir {

namespace {

// Intervals of sectors in any order are counted by bits as long as they lie within so many words
// (2 MiB of memory), else they are sorted.
constexpr int64_t kNearWords = 1024;

// Bits [from, to] of a word.
uint64_t BitsBetween(int64_t from, int64_t to) {
  return (~uint64_t{0} << from) & (~uint64_t{0} >> (63 - to));
}

// Calls visit(word, bits) for the words of sectors [first, last].
template <typename Visit>
void ForWords(int64_t first, int64_t last, Visit visit) {
  for (int64_t word = first / 64; word <= last / 64; ++word) {
    const int64_t from = std::max<int64_t>(first - word * 64, 0);
    const int64_t to = std::min<int64_t>(last - word * 64, 63);
    visit(word, BitsBetween(from, to));
  }
}

}  // namespace

bool SectorSet::Allocate(int64_t sectors) {
  words_.reset(
      static_cast<uint64_t*>(std::calloc(static_cast<size_t>(sectors / 64 + 1), sizeof(uint64_t))));
  return words_ != nullptr;
}

int64_t SectorSet::AddWord(int64_t word, uint64_t bits) {
  std::atomic_ref<uint64_t> at(words_.get()[word]);
  if ((at.load(std::memory_order_relaxed) & bits) == bits) return 0;
  return std::popcount(bits & ~at.fetch_or(bits, std::memory_order_relaxed));
}

int64_t SectorSet::Add(int64_t first, int64_t last) {
  int64_t added = 0;
  ForWords(first, last, [&](int64_t word, uint64_t bits) { added += AddWord(word, bits); });
  return added;
}

const MemoryRegion& Observer::RegionOf(int64_t pointer) {
  const int64_t argument = pointer >> kAddressBits;
  if (region_ == nullptr || argument != region_argument_ ||
      !region_->Holds(pointer & kAddressMask, 1)) {
    region_ = launch_.memory.Find(pointer);
    region_argument_ = argument;
  }
  return *region_;
}

void Observer::AddSectors(int64_t first, int64_t last) {
  if (!intervals_.empty()) {
    Interval& before = intervals_.back();
    if (first >= before.first && first <= before.last + 1) {
      before.last = std::max(before.last, last);
      return;
    }
    sorted_ = sorted_ && first > before.last;
  }
  intervals_.push_back({first, last});
}

void Observer::AddRow(int64_t pointer, int64_t bytes) {
  const MemoryRegion& region = RegionOf(pointer);
  const int64_t address = pointer & kAddressMask;
  if (touched_ != nullptr) {
    active_bytes_ += bytes;
    AddSectors(region.SectorOf(address), region.SectorOf(address + bytes - 1));
  }
  if (kind_ != AccessKind::kLoad && region.shadow != nullptr) {
    std::memset(region.shadow + (address - region.begin), tag_, static_cast<size_t>(bytes));
  }
}

void Observer::AddElements(const int64_t* pointers, const uint8_t* mask, int64_t count, int bytes) {
  for (int64_t i = 0; i < count; ++i) {
    if (mask == nullptr || mask[i] != 0) AddRow(pointers[i], bytes);
  }
}

int64_t Observer::CountSorted(SectorSet& touched) {
  if (!sorted_) {
    std::sort(intervals_.begin(), intervals_.end(),
              [](const Interval& a, const Interval& b) { return a.first < b.first; });
  }
  int64_t distinct = 0;
  int64_t end = 0;  // behind the sectors that were counted
  for (const Interval& interval : intervals_) {
    const int64_t first = std::max(interval.first, end);
    if (first > interval.last) continue;
    distinct += interval.last - first + 1;
    counts_.unique_bytes += static_cast<double>(touched.Add(first, interval.last) * kSectorBytes);
    end = interval.last + 1;
  }
  return distinct;
}

int64_t Observer::CountNear(SectorSet& touched, int64_t first_word, int64_t words) {
  if (bits_.size() < static_cast<size_t>(words)) bits_.resize(static_cast<size_t>(words));
  for (const Interval& interval : intervals_) {
    ForWords(interval.first, interval.last, [&](int64_t word, uint64_t bits) {
      bits_[static_cast<size_t>(word - first_word)] |= bits;
    });
  }
  int64_t distinct = 0;
  int64_t added = 0;
  for (int64_t i = 0; i < words; ++i) {
    uint64_t& bits = bits_[static_cast<size_t>(i)];
    if (bits == 0) continue;
    distinct += std::popcount(bits);
    added += touched.AddWord(first_word + i, bits);
    bits = 0;
  }
  counts_.unique_bytes += static_cast<double>(added * kSectorBytes);
  return distinct;
}

void Observer::End(int64_t repeat) {
  if (touched_ == nullptr) return;
  const double bytes = static_cast<double>(active_bytes_) * static_cast<double>(repeat);
  (kind_ == AccessKind::kLoad    ? counts_.load_bytes
   : kind_ == AccessKind::kStore ? counts_.store_bytes
                                 : counts_.atomic_bytes) += bytes;
  if (intervals_.empty()) return;
  SectorSet& touched = kind_ == AccessKind::kLoad ? touched_->loaded : touched_->stored;
  int64_t distinct = 0;
  bool near = false;
  if (!sorted_) {
    int64_t first = intervals_[0].first;
    int64_t last = intervals_[0].last;
    for (const Interval& interval : intervals_) {
      first = std::min(first, interval.first);
      last = std::max(last, interval.last);
    }
    const int64_t words = last / 64 - first / 64 + 1;
    near = words <= kNearWords;
    if (near) distinct = CountNear(touched, first / 64, words);
  }
  if (!near) distinct = CountSorted(touched);
  counts_.sector_bytes += static_cast<double>(distinct * kSectorBytes);
}

void AddWork(const Code& code, Program& program) { program.counting->AddWork(code.work); }

}  // namespace tritonrl::ttir
