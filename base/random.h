// Counter-based random numbers: a draw depends only on key, stream and position, not on time or
// thread.
#ifndef TRITONRL_BASE_RANDOM_H_
#define TRITONRL_BASE_RANDOM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tritonrl {

// Hashes several keys (run seed, step, task, sample, ...) to one 64-bit key; their order matters.
// Must not change between versions: checkpoints and journals rely on the values.
uint64_t MixKeys(std::initializer_list<uint64_t> keys);

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// Words 0-1 of the counter are the block number, words 2-3 hold `stream`.
class Philox {
 public:
  explicit Philox(uint64_t key, uint64_t stream = 0) : key_(key), stream_(stream) {}

  uint32_t Next();             // 32 uniform bits
  uint64_t Next64();           // 64 uniform bits
  double Uniform();            // [0, 1), 53 bits
  uint64_t Below(uint64_t n);  // [0, n) without bias; n must be at least 1
  double Normal();             // mean 0, variance 1 (Box-Muller); uses four words

  // Discards the rest of the current block and skips `blocks` blocks. In a stream that is read by
  // Normal() only, SkipBlocks(n) skips n numbers.
  void SkipBlocks(uint64_t blocks);

  // Shuffles uniformly (Fisher-Yates).
  template <typename T>
  void Shuffle(std::vector<T>* values) {
    for (size_t i = values->size(); i > 1; --i) std::swap((*values)[i - 1], (*values)[Below(i)]);
  }

  // The 10-round block function, public for the known-answer test.
  static std::array<uint32_t, 4> Block(std::array<uint32_t, 4> counter,
                                       std::array<uint32_t, 2> key);

 private:
  uint64_t key_;
  uint64_t stream_;
  uint64_t block_ = 0;
  int used_ = 4;  // elements of `words_` already returned
  std::array<uint32_t, 4> words_ = {};
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_RANDOM_H_
