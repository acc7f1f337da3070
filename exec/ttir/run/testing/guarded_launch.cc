#include "exec/ttir/run/testing/guarded_launch.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/run/executor.h"

namespace tritonrl::ttir {
namespace {

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

absl::Status CheckSentence(absl::string_view text) {
  if (text.size() < 1000 && !absl::StrContains(text, '\n')) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("no sentence: ", text));
}

}  // namespace

absl::Status LaunchGuarded(const std::string& text, std::mt19937& random,
                           GuardedLaunches* launches) {
  const auto module = ParseTtir(text);
  if (!module.ok()) return absl::OkStatus();
  const auto kernel = Compile(*module);
  if (!kernel.ok()) return absl::OkStatus();
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
  ++launches->launched;
  launches->finished += status.ok() ? 1 : 0;
  RETURN_IF_ERROR(CheckSentence(status.message()));
  if (findings.list.size() > kMaxFindings) return absl::InternalError("too many findings");
  for (const Finding& finding : findings.list) RETURN_IF_ERROR(CheckSentence(finding.text));
  for (const GuardedMemory& memory : memories) {
    if (!memory.GuardsHold()) return absl::InternalError("a write beside an argument");
  }
  return absl::OkStatus();
}

}  // namespace tritonrl::ttir
