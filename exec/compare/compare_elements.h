// Element-wise comparison of two tensors: which elements are outside the tolerance, and by how
// much.
#ifndef TRITONRL_EXEC_COMPARE_COMPARE_ELEMENTS_H_
#define TRITONRL_EXEC_COMPARE_COMPARE_ELEMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/compare/tensor_layout.h"

namespace tritonrl {

// Result of a comparison of all elements of two tensors.
struct Difference {
  double largest = 0;  // largest absolute error; infinite for NaN or infinity on one side only
  int64_t bad = 0;     // number of elements that differ
  int64_t first = 0;   // index of the first bad element
  // The first bad element: values with 9 and with 6 digits, error and tolerance.
  std::string want, got, want_short, got_short;
  double error = 0, tolerance = 0;
  bool nan = false;             // some element is NaN where a number is expected
  std::optional<double> share;  // largest error / tolerance, with that error and tolerance
  double share_error = 0, share_tolerance = 0;
  bool exactly = false;  // the comparison was with a float64 result
};

constexpr int kAllCloseBlock = 1024;  // elements

// True if for each of the kAllCloseBlock elements |got - want| is finite and at most atol + rtol *
// |want|, in double precision; raises `largest` to the largest |got - want| then. False does not
// prove a mismatch: it is also returned for infinities, NaN, and types other than float32, float64,
// float16 and bfloat16, which the caller must compare one by one. Vectorised; needs no alignment.
// Reads each byte once, so the memory may change concurrently.
bool BlockAllClose(DType type, const char* want, const char* got, double atol, double rtol,
                   double* largest);

// Text of a number with one part, or two if it is complex.
std::string ElementText(const std::vector<double>& parts, int digits);

// Compares the elements of a leaf, stored at `want` and at `got`, by the rules of CompareOutputs.
// Several threads share a large tensor. The memory may change concurrently: elements are read once,
// those of a block that is not all close twice.
Difference CompareElements(const Leaf& leaf, const char* want, const char* got, double atol,
                           double rtol);

// An ExactLeaf in memory: the float64 result and its slack, both stored as float32, and the limits.
struct ExactBytes {
  const char* exact;
  const char* slack;
  double absolute, relative;
};

// As CompareElements, against a float64 result; `want` is the reference's own result. Nullopt for
// types other than float16, bfloat16 and float32, which have no float64 result.
std::optional<Difference> CompareWithExact(const Leaf& leaf, const char* want,
                                           const ExactBytes& bytes, const char* got);

// Compares two plain numbers.
Difference CompareNumbers(double want, double got, double atol, double rtol);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_COMPARE_COMPARE_ELEMENTS_H_
