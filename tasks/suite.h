// The built-in mini suite: small tasks drawn from the grammar, committed as KernelBench files.
#ifndef TRITONRL_TASKS_SUITE_H_
#define TRITONRL_TASKS_SUITE_H_

#include <string>
#include <vector>

namespace tritonrl {

struct SuiteFile {
  std::string path;         // "train/level1/01_relu.py"
  std::string contents;     // the reference file
  std::string composition;  // Composition::Key()
};

// 64 training tasks (24 of level 1) and 32 held-out ones (10 of level 1): always the same files.
// No composition occurs twice; a held-out one never occurs in the corpus or the training tasks.
std::vector<SuiteFile> BuildMiniSuite();

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_SUITE_H_
