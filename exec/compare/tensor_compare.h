#ifndef TRITONRL_EXEC_COMPARE_TENSOR_COMPARE_H_
#define TRITONRL_EXEC_COMPARE_TENSOR_COMPARE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/compare/compare_elements.h"
#include "exec/compare/tensor_layout.h"
#include "exec/messages.pb.h"

// Compares a candidate's outputs with the expected outputs, or with a saved output. Works on bytes
// and checked layouts only and runs no code of a candidate and no Python.

namespace tritonrl {

// Result of a comparison of all outputs of one call.
struct Comparison {
  bool equal = true;
  std::string message;              // one sentence, if they differ
  OutputMismatch mismatch;          // set if they differ, except for the trial
  std::optional<double> max_error;  // largest absolute error, if a number was compared
  // Of the elements compared with a float64 result: the largest ratio error / tolerance, and the
  // error and the tolerance of that element.
  std::optional<double> worst_share;
  double worst_error = 0, worst_tolerance = 0;
};

// Leaves and the memory that their offsets refer to.
struct Tensors {
  const std::vector<Leaf>& leaves;
  absl::string_view memory;
};

// The float64 result of one leaf and its tolerance. An element is correct if
// |got - exact| <= absolute + relative * |exact| + slack (computed by exec/python/precision.py).
struct ExactLeaf {
  Leaf exact;  // float32
  Leaf slack;  // float32
  double absolute = 0;
  double relative = 0;
};

// Tolerance of one comparison.
struct Tolerance {
  double atol = 1e-2;
  double rtol = 1e-2;
  // The float64 results, one entry for each leaf of `want`, stored in the memory of `want`. atol
  // and rtol apply to a leaf without a value, and to all leaves if this is null.
  const std::vector<std::optional<ExactLeaf>>* exact = nullptr;
};

// Compares the number of leaves; for a single leaf also whether it is inside a container; then each
// leaf's type, device, layout, shape, element type and values. Stops at the first leaf that
// differs. A value is correct if |got - want| <= atol + rtol * |want| (in double precision), if
// both are NaN, or if both are equal (as infinities can be). An infinity where a finite value is
// expected is wrong, and the reverse. A float64 result, if there is one, replaces `want` and has
// its own tolerance; where it or `want` is not finite, `got` may agree with either. A tensor of the
// right shape that was not handed over is a mismatch of kind "type".
Comparison CompareOutputs(const Tensors& want, const Tensors& got, const Tolerance& tolerance);

// Compares the elements of leaf `index`, which has elements, the same shape and the same type on
// both sides.
using CompareElementsOf =
    std::function<absl::StatusOr<Difference>(int index, const Leaf& want, const Leaf& got)>;
// As above, for tensors that are not in this process's memory: `compare` compares their elements.
// Returns the error of `compare`, if any.
absl::StatusOr<Comparison> CompareOutputs(const std::vector<Leaf>& want,
                                          const std::vector<Leaf>& got, const Tolerance& tolerance,
                                          const CompareElementsOf& compare);

// Returns the float64 result for leaf `index` of `want`. Null if there is none, or if one of its
// two tensors does not have as many elements as `want`.
const ExactLeaf* ExactOf(const Tolerance& tolerance, int index, const Leaf& want);

// True if both hold bitwise identical tensors. Ignores other leaves.
bool SameTensors(const Tensors& want, const Tensors& got);

// Two outputs are the same if they differ by at most this share of the largest element. The share
// is wide so that a candidate cannot pass decoration as work by adding 1e-6 to its result.
inline constexpr double kSameOutputShare = 1e-2;

// A private copy of an output, compared with a later one.
class SavedOutput {
 public:
  // Copies leaves and bytes, and drops the previous copy.
  void Keep(const Tensors& output);

  // True if `whole` equals the copy within kSameOutputShare of the largest element of each tensor
  // of `whole`. A tensor with a non-finite element must be equal exactly.
  bool IsSame(const Tensors& whole) const;

 private:
  std::vector<Leaf> leaves_;
  std::string bytes_;
};

// True if the two agree in everything except the elements of tensors (number of leaves, types,
// shapes, plain numbers within kSameOutputShare, other values) and every tensor was handed over.
bool SameStructure(const std::vector<Leaf>& whole, const std::vector<Leaf>& kept);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_COMPARE_TENSOR_COMPARE_H_
