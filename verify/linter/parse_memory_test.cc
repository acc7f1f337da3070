#include "verify/linter/parse_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "verify/linter/linter.h"
#include "verify/linter/testdata_reader.h"

namespace tritonrl::lint {
namespace {

struct Block {
  unsigned char* data;
  size_t bytes;
  unsigned char mark;

  bool Holds() const {
    for (size_t i = 0; i < bytes; ++i) {
      if (data[i] != mark) return false;
    }
    return true;
  }
};

TEST(ParseMemoryTest, BlocksOfAllSizesKeepWhatIsWritten) {
  std::mt19937 random(1);
  ParseMemory memory;
  std::vector<Block> blocks;
  for (int i = 0; i < 20'000; ++i) {
    const size_t bytes = random() % (random() % 50 == 0 ? 5000 : 200);
    const auto mark = static_cast<unsigned char>(i);
    if (blocks.size() < 100 || random() % 3 == 0) blocks.push_back({nullptr, 0, 0});
    Block& block = blocks.back().data == nullptr ? blocks.back() : blocks[random() % blocks.size()];
    if (block.data == nullptr) {
      block.data = static_cast<unsigned char*>(memory.Allocate(bytes));
    } else {
      ASSERT_TRUE(block.Holds());
      if (random() % 2 == 0) {
        memory.Free(block.data);
        block.data = static_cast<unsigned char*>(memory.Allocate(bytes));
      } else {
        const size_t kept = std::min(bytes, block.bytes);
        block.data = static_cast<unsigned char*>(memory.Resize(block.data, bytes));
        block.bytes = kept;
        ASSERT_TRUE(block.Holds());
      }
    }
    block = {block.data, bytes, mark};
    std::memset(block.data, mark, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % 16, 0u);
    if (i % 500 == 0) {
      for (const Block& block : blocks) ASSERT_TRUE(block.Holds());
    }
  }
  for (const Block& block : blocks) memory.Free(block.data);
}

TEST(ParseMemoryTest, FreedBlocksAreUsedAgain) {
  ParseMemory memory;
  void* first = memory.Allocate(100);
  memory.Free(first);
  EXPECT_EQ(memory.Allocate(98), first);
  EXPECT_NE(memory.Allocate(98), first);
  memory.Free(nullptr);
  EXPECT_NE(memory.Resize(nullptr, 10), nullptr);
}

TEST(ParseMemoryTest, ThreadsLintTheSame) {
  const auto cases = ReadLintCases("certain_cheats.py");
  ASSERT_TRUE(cases.ok()) << cases.status();
  const auto lint = [&](std::vector<std::string>* found) {
    for (const LintCase& c : *cases) {
      for (const LintFinding& finding : Lint(c.source).findings) found->push_back(finding.text);
    }
  };
  std::vector<std::string> alone;
  lint(&alone);
  EXPECT_FALSE(alone.empty());
  std::vector<std::vector<std::string>> found(4);
  std::vector<std::thread> threads;
  for (auto& mine : found) threads.emplace_back(lint, &mine);
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : found) EXPECT_EQ(mine, alone);
}

}  // namespace
}  // namespace tritonrl::lint
