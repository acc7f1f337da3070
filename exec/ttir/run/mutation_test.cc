// Damaged texts that still verify run within their limits, and touch their arguments only.
#include "exec/ttir/testing/mutation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/run/executor.h"
#include "exec/ttir/testing/corpus.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

constexpr int kMutationsOfEach = 60;
constexpr size_t kLongestText = 12'000;

// Memory of an argument between two guards.
class GuardedMemory {
 public:
  GuardedMemory(size_t bytes, std::mt19937& random)
      : bytes_(bytes), memory_(bytes + 2 * kGuard), shadow_(bytes, 1) {
    std::memset(memory_.data(), kPattern, memory_.size());
    std::fill(shadow_.begin() + static_cast<std::ptrdiff_t>(bytes / 2), shadow_.end(), 0);
    // Small numbers: many are indices, some valid.
    for (size_t i = 0; i < bytes; i += 4) {
      const uint32_t value = random() % 3 == 0 ? static_cast<uint32_t>(random()) : random() % 64;
      std::memcpy(data() + i, &value, 4);
    }
  }
  std::byte* data() { return memory_.data() + kGuard; }
  // Half of it was never written, and is behind the view.
  KernelArgument Argument() {
    KernelArgument argument = KernelArgument::Tensor(data(), static_cast<int64_t>(bytes_));
    argument.shadow = shadow_.data();
    argument.view_bytes = static_cast<int64_t>(bytes_ / 2);
    return argument;
  }
  bool GuardsHold() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (memory_[i] != std::byte{kPattern}) return false;
      if (memory_[kGuard + bytes_ + i] != std::byte{kPattern}) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 4096;
  static constexpr unsigned char kPattern = 0xA5;
  size_t bytes_;
  std::vector<std::byte> memory_;
  std::vector<uint8_t> shadow_;
};

const Function* KernelOf(const Module& module) {
  for (const Function& function : module.functions) {
    if (function.is_public) return &function;
  }
  return nullptr;
}

std::vector<KernelArgument> MakeArguments(const Function& function, std::mt19937& random,
                                          std::vector<GuardedMemory>* memories) {
  constexpr int64_t kNumbers[] = {0, 1, 16, 64, 100, -1, INT32_MAX, INT64_MIN};
  std::vector<KernelArgument> arguments;
  memories->reserve(function.arguments.size());
  for (const Argument& argument : function.arguments) {
    const Type& type = function.TypeOf(argument.value);
    if (type.is_pointer() || type.is_descriptor()) {
      arguments.push_back(
          memories->emplace_back(size_t{1} << (6 + random() % 10), random).Argument());
      // Shape, strides and padding.
      for (int i = 0; type.is_descriptor() && i < 2 * type.rank() + 1; ++i) {
        arguments.push_back(KernelArgument::Integer(kNumbers[random() % std::size(kNumbers)]));
      }
    } else if (type.is_float()) {
      arguments.push_back(KernelArgument::Float(static_cast<double>(random() % 8) - 2));
    } else {
      arguments.push_back(KernelArgument::Integer(kNumbers[random() % std::size(kNumbers)]));
    }
  }
  return arguments;
}

struct Outcomes {
  int launched = 0;
  int finished = 0;
};

void LaunchText(const std::string& text, const std::string& name, std::mt19937& random,
                Outcomes* outcomes) {
  const auto module = ParseTtir(text);
  if (!module.ok()) return;
  const auto kernel = Compile(*module);
  if (!kernel.ok()) return;
  std::vector<GuardedMemory> memories;
  const std::vector<KernelArgument> arguments =
      MakeArguments(*KernelOf(*module), random, &memories);
  LaunchOptions options;
  options.max_steps = 20'000;
  options.max_buffer_bytes = 64 << 20;
  LaunchCounts counts;
  LaunchFindings findings;
  if (random() % 2 == 0) options.counts = &counts;
  if (random() % 2 == 0) options.check = &findings;
  int questions = 0;  // a deadline that does not depend on the machine
  options.expired = [&] { return ++questions > 100; };
  options.print = [](absl::string_view) {};
  const absl::Status status = (*kernel)->Launch({2, 2, 1}, arguments, options);
  ++outcomes->launched;
  outcomes->finished += status.ok() ? 1 : 0;
  const std::string message(status.message());
  EXPECT_EQ(message.find('\n'), std::string::npos) << name << ": " << message;
  EXPECT_LT(message.size(), 1000u) << name;
  EXPECT_LE(findings.list.size(), kMaxFindings) << name;
  for (const Finding& finding : findings.list) {
    EXPECT_EQ(finding.text.find('\n'), std::string::npos) << name << ": " << finding.text;
    EXPECT_LT(finding.text.size(), 1000u) << name;
  }
  for (const GuardedMemory& memory : memories) EXPECT_TRUE(memory.GuardsHold()) << name;
}

TEST(MutationTest, DamagedKernelsTouchTheirArgumentsOnly) {
  std::mt19937 random(31);
  Outcomes outcomes;
  for (const CorpusText& entry : ReadCorpus()) {
    if (entry.text.size() > kLongestText) continue;
    const std::vector<std::string> words = TokensOf(entry.text);
    for (int i = 0; i < kMutationsOfEach; ++i) {
      LaunchText(Mutate(entry.text, words, random), entry.name, random, &outcomes);
      LaunchText(MutateMeaning(entry.text, random), entry.name, random, &outcomes);
    }
  }
  EXPECT_GT(outcomes.launched, 600);
  EXPECT_GT(outcomes.finished, 30);
}

// Whole kernels with memory that is too small or numbers that make no sense.
TEST(MutationTest, KernelsWithWrongArgumentsTouchTheirArgumentsOnly) {
  std::mt19937 random(32);
  Outcomes outcomes;
  for (const CorpusText& entry : ReadCorpus()) {
    for (int i = 0; i < 20; ++i) LaunchText(entry.text, entry.name, random, &outcomes);
  }
  EXPECT_GT(outcomes.launched, 500);
  EXPECT_GT(outcomes.finished, 50);
}

}  // namespace
}  // namespace tritonrl::ttir
