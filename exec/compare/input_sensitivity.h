// Input-sensitivity check: whether an output depends on the inputs, or could be a constant within a
// wide tolerance (the mean of many uniform numbers is 0.5 to within 1e-2 for any inputs).
//
// The check compares variations, not values. Let d be the change of an expected element from the
// first trial to a later one, and g the change of the candidate's element. Over all sampled
// elements and later trials
//   S_dd = sum d^2,  S_dg = sum d g,  S_gg = sum g^2.
// The variation that the output does not follow is
//   U = sum (g - d)^2 = S_dd - 2 S_dg + S_gg,
// and an output is no better than a constant if U > S_dd / 10 (less an allowance for rounding):
//   right                    g = d                    U = 0
//   biased by b              g = d                    U = 0, for any b that the trials share; the
//                                                     products of a matmul that cuts its operands
//                                                     to tf32 are all too small
//   scaled by 1 - e          g = (1 - e) d            U = e^2 S_dd
//   a constant, a mean of    g = 0                    U = S_dd: exactly, however few the elements
//   outputs, the first trial's output
//   a constant plus noise    g independent of d       U = S_dd + S_gg
//   sign flipped             g = -d                   U = 4 S_dd
//   the mean of a share s    S_dg = S_dd, S_gg = S_dd / s   U = (1 / s - 1) S_dd
//   of the numbers
//   right, then a constant   g = c - want of trial 1  U = S_dd / 2
//
// Rounding of the output's own elements changes U too. An element w that is rounded with unit
// roundoff u is off by at most u |w|, with a variance of (u w)^2 / 3 if it is uniform there. That
// adds R = u^2 sum (w_1^2 + w_t^2) / 3 to U in expectation. 2 R is allowed, and 4 R below 16 terms,
// where chance is larger: an output in half precision that varies by its rounding alone exceeds
// that in less than one run of a hundred, and a constant is found where the standard deviation of
// the expected values is above 2 u |w| (of a scalar, 5 u |w|).
#ifndef TRITONRL_EXEC_COMPARE_INPUT_SENSITIVITY_H_
#define TRITONRL_EXEC_COMPARE_INPUT_SENSITIVITY_H_

#include <cstdint>
#include <vector>

#include "exec/compare/tensor_layout.h"

namespace tritonrl {

// Largest number of elements sampled of a tensor, in equal steps.
inline constexpr int64_t kSensitivitySamples = 65536;

// Sums over sampled elements of one output, over all trials but the first.
struct InputSensitivity {
  int64_t elements = 0;
  double variation = 0;      // S_dd
  double covariance = 0;     // S_dg
  double own_variation = 0;  // S_gg
  double rounding = 0;       // R

  void Add(const InputSensitivity& more);

  // Root mean squares. Two independent values differ by twice the variance in the mean square, so
  // the first estimates the standard deviation of an expected element between trials.
  double VariationPerElement() const;
  double ErrorPerElement() const;  // of what the output does not follow: U / 2

  // True if the expected values vary by more than rounding, and the output does not follow at least
  // nine tenths of that variation.
  bool IsNoBetterThanConstant() const;
};

// The sampled elements of one output; empty for types without SupportsSensitivityCheck.
std::vector<double> SampleElements(const Leaf& leaf, const char* bytes);

// Sampled elements of one output in the first trial.
struct FirstElements {
  std::vector<double> want, got;
};

// Returns the sums of one output and one later trial: `want` and `got` are the expected and the
// candidate's elements. Elements that are not finite do not count; types without
// SupportsSensitivityCheck, and another number of elements than in `first`, give zeros.
InputSensitivity MeasureInputSensitivity(const Leaf& leaf, const FirstElements& first,
                                         const char* want, const char* got);

// Distance between sampled elements in a tensor of `elements` elements.
int64_t SensitivitySampleStep(int64_t elements);

// Relative error that rounding may cause in outputs of this type; at least that of half precision.
double SensitivityRoundingShare(DType type);

// True for real floating-point types; others are not checked.
bool SupportsSensitivityCheck(DType type);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_COMPARE_INPUT_SENSITIVITY_H_
