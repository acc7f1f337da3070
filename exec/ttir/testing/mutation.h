// Damaged texts of Triton IR.
#ifndef TRITONRL_EXEC_TTIR_TESTING_MUTATION_H_
#define TRITONRL_EXEC_TTIR_TESTING_MUTATION_H_

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tritonrl::ttir {

// Longer texts of the corpus are not damaged: they say nothing new and take long.
inline constexpr size_t kLongestDamaged = 12'000;

std::vector<std::string> TokensOf(const std::string& text);

// Changes a few tokens in the text itself, so that what is around them stays as MLIR printed it.
// Some of the changes put in one of the words.
std::string Mutate(const std::string& text, const std::vector<std::string>& words,
                   std::mt19937& random);

// Changes numbers, operands, operations and predicates into others of their kind: many of the texts
// still verify.
std::string MutateMeaning(const std::string& text, std::mt19937& random);

// What the parser's status must be, whatever the text: OK, or InvalidArgument with one sentence.
// Internal otherwise.
absl::Status CheckParsed(const absl::Status& parsed);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_TESTING_MUTATION_H_
