// The generated SFT corpus, and the built-in mini suite: small tasks drawn from the grammar of
// tasks/composition.h, committed as KernelBench files.
#ifndef TRITONRL_TASKS_DATASET_H_
#define TRITONRL_TASKS_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tritonrl {

// Seed and mistake rates of the corpus. The rates are probabilities in [0, 1].
struct CorpusSettings {
  uint64_t seed = 0;
  // Probability of a wrong formula for each use of a hard operator (tanh, gelu, softplus,
  // hardswish, clamp, leaky_relu). These have two wrong forms, so that above 0.67 each wrong form
  // is more likely than the right one.
  double hard_rate = 0.8;
  // Probability of a wrong formula for each use of another operator.
  double easy_rate = 0.05;
  // Probability of one structural mistake or shortcut in a response (missing mask, wrong grid, work
  // left to torch).
  double structural_rate = 0.3;
};

// A task and one response to it.
struct CorpusExample {
  std::string prompt;       // MiniPrompt of the reference
  std::string response;     // <think> plan </think> and one code block
  std::string reference;    // the task's source in the KernelBench format
  std::string composition;  // Composition::Key()
  int level = 0;            // 1: a single operator, 2: several
  int kernels = 0;          // 1: fused, or a single operator
  // Names of the response's mistakes, e.g. "form:gelu:1", "struct:no_mask"; empty: it is correct.
  std::vector<std::string> mistakes;
};

// Returns example number `index` of the corpus of `settings`, which has no end. A pure function.
// The composition is never held out (IsHeldOut in tasks/composition.h).
CorpusExample MakeCorpusExample(const CorpusSettings& settings, uint64_t index);

// Returns one JSON object without a line break: prompt, response, composition, level, kernels,
// mistakes and, if `with_reference`, reference.
std::string CorpusExampleToJson(const CorpusExample& example, bool with_reference);

// Writes the examples [first, first + count) to `path` as JSON Lines, with constant memory. The
// file appears under its name only when it is complete. Errors: InvalidArgument for a rate outside
// [0, 1], and those of writing the file.
absl::Status WriteCorpus(const CorpusSettings& settings, uint64_t first, uint64_t count,
                         bool with_references, const std::string& path);

struct SuiteFile {
  std::string path;         // "train/level1/01_relu.py"
  std::string contents;     // the reference file
  std::string composition;  // Composition::Key()
};

// Returns 64 training tasks (24 of level 1) and 32 held-out tasks (10 of level 1), always the same.
// No composition occurs twice; those of held-out tasks never occur in the corpus.
std::vector<SuiteFile> BuildMiniSuite();

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_DATASET_H_
