// Input-sensitivity check: whether an output depends on the inputs, or is a constant within a wide
// tolerance (the mean of many uniform numbers is 0.5 to within 1e-2, whatever the numbers).
#ifndef TRITONRL_EXEC_COMPARE_INPUT_SENSITIVITY_H_
#define TRITONRL_EXEC_COMPARE_INPUT_SENSITIVITY_H_

#include <cstdint>

#include "exec/compare/tensor_layout.h"

namespace tritonrl {

// Elements of a tensor that are looked at, in equal steps.
inline constexpr int64_t kSensitivitySamples = 65536;

// Sums over elements of an output in several trials with other inputs each.
struct InputSensitivity {
  int64_t elements = 0;
  // Half the squares of (wanted - wanted in the first trial): what they vary by from trial to
  // trial.
  double variation = 0;
  // The squares of (got - wanted), each error less what rounding to half precision may make of it.
  double error = 0;

  void Add(const InputSensitivity& more);

  double VariationPerElement() const;  // root mean squares
  double ErrorPerElement() const;

  // True where what is wanted varies noticeably and the errors take more than a tenth of it: a
  // constant would be as good, or so few of the inputs go in that it is little better.
  bool IsNoBetterThanConstant() const;
};

// The sums of one output, whose elements lie at `first` as wanted in the first trial, and at `want`
// and `got` in another. Nothing for elements that are not floating point numbers, and without those
// that are not finite.
InputSensitivity MeasureInputSensitivity(const Leaf& leaf, const char* first, const char* want,
                                         const char* got);

// The distance between elements that are looked at.
int64_t SensitivitySampleStep(int64_t elements);

// The share of a number that rounding may take, in outputs of that type: at least that of half
// precision.
double SensitivityRoundingShare(DType type);

// True for types that are followed.
bool SupportsSensitivityCheck(DType type);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_COMPARE_INPUT_SENSITIVITY_H_
