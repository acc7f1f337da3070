// Which version of KernelBench a set of tasks is.
#ifndef TRITONRL_EVAL_SOURCES_VERSION_H_
#define TRITONRL_EVAL_SOURCES_VERSION_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tasks/loader.h"

namespace tritonrl {

struct KernelBenchVersion {
  // "KernelBench v0", "KernelBench v0.1", "KernelBench main from 2026-01-19 on" (or "... to DATE",
  // if a later change is missing), "KernelBench v0.1 or main" (the problems that differ are not
  // there), "mixture of KernelBench v0 and later versions", each perhaps with ", N of M tasks
  // changed"; "KernelBench, every task changed"; "unknown".
  std::string name;
  // Sentences: how many tasks have the text of which version, and what the problems do that differ
  // from version to version or have the same output for all inputs.
  std::vector<std::string> evidence;
  // SHA-256 of the tasks' ids and texts, independent of their order, as hex digits.
  std::string digest;
};

// Compares the texts of the tasks with those of the versions (levels 1 and 2), by level and by the
// number at the start of the file's name. Nothing is executed. docs/evaluation.md has the versions
// and what follows from them.
KernelBenchVersion DetectVersion(absl::Span<const Task> tasks);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_SOURCES_VERSION_H_
