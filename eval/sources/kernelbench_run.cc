#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "eval/sources/input_files.h"
#include "eval/sources/readers.h"

namespace tritonrl {
namespace {

constexpr char kStart[] = "level_";
constexpr char kEnd[] = "_kernel.py";

// Takes `name`, then digits, from the beginning of `text`.
bool TakeNumber(absl::string_view name, absl::string_view* text, int* number) {
  if (!absl::ConsumePrefix(text, name)) return false;
  size_t digits = 0;
  while (digits < text->size() && absl::ascii_isdigit((*text)[digits])) ++digits;
  const bool taken = absl::SimpleAtoi(text->substr(0, digits), number);
  text->remove_prefix(digits);
  return taken;
}

}  // namespace

bool IsKernelBenchRunFile(const std::string& file) {
  const std::string name = BaseName(file);
  return absl::StartsWith(name, kStart) && absl::EndsWith(name, kEnd);
}

absl::StatusOr<ReadInput> ReadKernelBenchRun(const std::string& folder,
                                             const std::vector<std::string>& files) {
  ReadInput input{.layout = "KernelBench run"};
  int64_t left = kMaxInputBytes;
  for (const std::string& file : files) {
    if (!IsKernelBenchRunFile(file)) continue;
    ReadGeneration read{.where = JoinPath(folder, file)};
    const std::string name = BaseName(file);
    absl::string_view rest = name;
    if (!TakeNumber(kStart, &rest, &read.level) || !TakeNumber("_problem_", &rest, &read.problem) ||
        !TakeNumber("_sample_", &rest, &read.generation.sample) || rest != kEnd) {
      return absl::InvalidArgumentError(
          absl::StrCat(read.where,
                       ": wanted the name level_LEVEL_problem_PROBLEM_sample_SAMPLE_kernel.py, "
                       "with a number for "
                       "each; rename the file or remove it"));
    }
    ASSIGN_OR_RETURN(read.generation.code, ReadText(read.where, &left));
    read.generation.source = file;
    input.generations.push_back(std::move(read));
  }
  return input;
}

}  // namespace tritonrl
