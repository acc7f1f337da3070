#include "base/random.h"

#include <cmath>
#include <numbers>

namespace tritonrl {
namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection that mixes all bits.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t MixKeys(std::initializer_list<uint64_t> keys) {
  uint64_t mixed = 0x7472746f6e726cu + keys.size();
  for (uint64_t key : keys) mixed = Mix(mixed ^ Mix(key));
  return mixed;
}

std::array<uint32_t, 4> Philox::Block(std::array<uint32_t, 4> counter,
                                      std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
    uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
    uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
  }
  return counter;
}

uint32_t Philox::Next() {
  if (used_ == 4) {
    words_ = Block({static_cast<uint32_t>(block_), static_cast<uint32_t>(block_ >> 32),
                    static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                   {static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32)});
    ++block_;
    used_ = 0;
  }
  return words_[used_++];
}

uint64_t Philox::Next64() {
  uint64_t high = Next();
  return (high << 32) | Next();
}

double Philox::Uniform() { return static_cast<double>(Next64() >> 11) * 0x1.0p-53; }

uint64_t Philox::Below(uint64_t n) {
  // Draws from `limit` (a multiple of n) on are rejected: they would make small values more likely.
  const uint64_t limit = UINT64_MAX - UINT64_MAX % n;
  uint64_t draw = Next64();
  while (draw >= limit) draw = Next64();
  return draw % n;
}

void Philox::SkipBlocks(uint64_t blocks) {
  block_ += blocks;
  used_ = 4;
}

double Philox::Normal() {
  const double u = 1.0 - Uniform();  // in (0, 1], so that the logarithm is finite
  const double v = Uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace tritonrl
