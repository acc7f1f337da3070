#ifndef TRITONRL_TASKS_DATASET_H_
#define TRITONRL_TASKS_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

// The generated SFT corpus, and the built-in mini suite: small tasks drawn from the grammar,
// committed as KernelBench files.

namespace tritonrl {

// How often the generated responses are wrong. The rates are probabilities in [0, 1].
struct CorpusSettings {
  uint64_t seed = 0;
  // Wrong formula for tanh, gelu, softplus, hardswish, clamp and leaky_relu. Each has two wrong
  // forms, so that above .67 each wrong form is likelier than the right one.
  double hard_rate = 0.8;
  // Wrong formula for any other operator.
  double easy_rate = 0.05;
  // One structural mistake or shortcut in a response (lost mask, wrong grid, work left to torch).
  double structural_rate = 0.3;
};

// A fresh task and one response to it.
struct CorpusExample {
  std::string prompt;       // BuildPrompt(kMini) of the reference
  std::string response;     // <think> plan </think> and one code block
  std::string reference;    // the task's source in the KernelBench format
  std::string composition;  // key of family, operators and constants, without the shape
  int level = 0;            // 1: a single operator, 2: several
  int kernels = 0;          // 1: fused (or a single operator)
  // Names of the mistakes made, e.g. "form:gelu:1", "struct:no_mask"; empty: the response is right.
  std::vector<std::string> mistakes;
};

// Example number `index` of the endless corpus of `settings`: a pure function of its arguments.
// Its composition is never held out (IsHeldOut in tasks/composition.h).
CorpusExample MakeCorpusExample(const CorpusSettings& settings, uint64_t index);

// One JSON object without a line break: prompt, response, composition, level, kernels, mistakes
// and, if asked for, reference.
std::string CorpusExampleToJson(const CorpusExample& example, bool with_reference);

// Streams the examples [first, first + count) to `path` as JSON Lines. The file appears under its
// name only when it is complete. Errors: a rate outside [0, 1], a path that cannot be written.
absl::Status WriteCorpus(const CorpusSettings& settings, uint64_t first, uint64_t count,
                         bool with_references, const std::string& path);

struct SuiteFile {
  std::string path;         // "train/level1/01_relu.py"
  std::string contents;     // the reference file
  std::string composition;  // Composition::Key()
};

// 64 training tasks (24 of level 1) and 32 held-out ones (10 of level 1): always the same files.
// No composition occurs twice; a held-out one never occurs in the corpus or the training tasks.
std::vector<SuiteFile> BuildMiniSuite();

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_DATASET_H_
