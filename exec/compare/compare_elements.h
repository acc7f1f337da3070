// The passes over elements of a comparison: what is far from what it ought to be, and how far.
#ifndef TRITONRL_EXEC_COMPARE_COMPARE_ELEMENTS_H_
#define TRITONRL_EXEC_COMPARE_COMPARE_ELEMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/compare/tensor_layout.h"

namespace tritonrl {

// What a pass over all elements of a pair of tensors found.
struct Difference {
  double largest = 0;  // error; infinite where a number is wanted and none is there
  int64_t bad = 0;     // elements that differ
  int64_t first = 0;   // index of the first of them
  // Its values with 9 and with 6 digits, its error and what was allowed.
  std::string want, got, want_short, got_short;
  double error = 0, tolerance = 0;
  bool nan = false;             // NaN where a number is expected
  std::optional<double> share;  // the largest error / tolerance, and what it was made of
  double share_error = 0, share_tolerance = 0;
  bool exactly = false;  // compared with a float64 result
};

constexpr int kAllCloseBlock = 1024;  // elements

// Whether each of the kAllCloseBlock elements of `got` is finite and |got - want| <= atol + rtol *
// |want|, in double precision; `largest` is raised to the largest |got - want|. Always false for
// types other than float32, float64, float16 and bfloat16. False does not say that one is wrong:
// infinities and NaN are left to who looks closer. Vectorised; needs no alignment. Memory that
// changes meanwhile is read once.
bool BlockAllClose(DType type, const char* want, const char* got, double atol, double rtol,
                   double* largest);

// A number of one or, if it is complex, two parts.
std::string ElementText(const std::vector<double>& parts, int digits);

// The elements of a leaf, which lie at `want` and at `got`; rules as at CompareOutputs. Large
// tensors are shared out over threads. Memory that changes meanwhile is read once, but for elements
// that are not near.
Difference CompareElements(const Leaf& leaf, const char* want, const char* got, double atol,
                           double rtol);

// Bytes of a float64 result and of the slack, both kept as float32, and its limits (ExactLeaf).
struct ExactBytes {
  const char* exact;
  const char* slack;
  double absolute, relative;
};

// The same against a float64 result; `want` is what the reference made. Nothing for types that have
// no such result.
std::optional<Difference> CompareWithExact(const Leaf& leaf, const char* want,
                                           const ExactBytes& bytes, const char* got);

// Two plain numbers.
Difference CompareNumbers(double want, double got, double atol, double rtol);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_COMPARE_COMPARE_ELEMENTS_H_
