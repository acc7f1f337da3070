// Input-sensitivity check: whether an output depends on the inputs, or could be a constant within a
// wide tolerance (the mean of many uniform numbers is 0.5 to within 1e-2 for any inputs).
#ifndef TRITONRL_EXEC_COMPARE_INPUT_SENSITIVITY_H_
#define TRITONRL_EXEC_COMPARE_INPUT_SENSITIVITY_H_

#include <cstdint>

#include "exec/compare/tensor_layout.h"

namespace tritonrl {

// Largest number of elements sampled of a tensor, in equal steps.
inline constexpr int64_t kSensitivitySamples = 65536;

// Sums over sampled elements of one output, over several trials with different inputs.
struct InputSensitivity {
  int64_t elements = 0;
  // Sum of (expected - expected in the first trial)^2 / 2, an estimate of the variance between
  // trials (two independent values differ by twice the variance in the mean square).
  double variation = 0;
  // Sum of squared errors |got - expected|, each reduced by the rounding allowance
  // (SensitivityRoundingShare), but not below 0.
  double error = 0;

  void Add(const InputSensitivity& more);

  double VariationPerElement() const;  // root mean square
  double ErrorPerElement() const;      // root mean square

  // True if the expected values vary by more than rounding and the sum of squared errors exceeds a
  // tenth of the variation: then a constant would be as good, or the output uses so few of the
  // inputs that it is little better.
  bool IsNoBetterThanConstant() const;
};

// Returns the sums of one output and one trial. `first` holds the expected elements of the first
// trial; `want` and `got` hold the expected and the candidate's elements of this trial. Elements
// that are not finite do not count; other types than those of SupportsSensitivityCheck give zeros.
InputSensitivity MeasureInputSensitivity(const Leaf& leaf, const char* first, const char* want,
                                         const char* got);

// Distance between sampled elements in a tensor of `elements` elements.
int64_t SensitivitySampleStep(int64_t elements);

// Relative error that rounding may cause in outputs of this type; at least that of half precision.
double SensitivityRoundingShare(DType type);

// True for real floating-point types; others are not checked.
bool SupportsSensitivityCheck(DType type);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_COMPARE_INPUT_SENSITIVITY_H_
