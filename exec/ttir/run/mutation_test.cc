// Damaged texts that still verify run within their limits, and touch their arguments only.
#include "exec/ttir/testing/mutation.h"

#include <random>
#include <string>
#include <vector>

#include "exec/ttir/run/testing/guarded_launch.h"
#include "exec/ttir/testing/corpus.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

constexpr int kMutationsOfEach = 60;

TEST(MutationTest, DamagedKernelsTouchTheirArgumentsOnly) {
  std::mt19937 random(31);
  GuardedLaunches outcomes;
  for (const CorpusText& entry : ReadCorpus()) {
    if (entry.text.size() > kLongestDamaged) continue;
    const std::vector<std::string> words = TokensOf(entry.text);
    for (int i = 0; i < kMutationsOfEach; ++i) {
      for (const std::string& text :
           {Mutate(entry.text, words, random), MutateMeaning(entry.text, random)}) {
        const absl::Status kept = LaunchGuarded(text, random, &outcomes);
        EXPECT_TRUE(kept.ok()) << entry.name << ": " << kept;
      }
    }
  }
  EXPECT_GT(outcomes.launched, 600);
  EXPECT_GT(outcomes.finished, 30);
}

// Whole kernels with memory that is too small or numbers that make no sense.
TEST(MutationTest, KernelsWithWrongArgumentsTouchTheirArgumentsOnly) {
  std::mt19937 random(32);
  GuardedLaunches outcomes;
  for (const CorpusText& entry : ReadCorpus()) {
    for (int i = 0; i < 20; ++i) {
      const absl::Status kept = LaunchGuarded(entry.text, random, &outcomes);
      EXPECT_TRUE(kept.ok()) << entry.name << ": " << kept;
    }
  }
  EXPECT_GT(outcomes.launched, 500);
  EXPECT_GT(outcomes.finished, 50);
}

}  // namespace
}  // namespace tritonrl::ttir
