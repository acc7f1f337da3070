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

// Compares what a candidate handed over with what is expected. It works on bytes and checked
// layouts alone; no code of a candidate or of Python takes part.
//
// A saved copy of an output that a later output is compared with.

namespace tritonrl {

struct Comparison {
  bool equal = true;
  std::string message;              // one sentence when they differ
  OutputMismatch mismatch;          // filled in when they differ, without the trial
  std::optional<double> max_error;  // largest absolute error seen, if a number was compared
  // Of elements compared with float64: the largest share of the tolerance that an error took.
  std::optional<double> worst_share;
  double worst_error = 0, worst_tolerance = 0;  // there
};

// Leaves and the memory that their offsets point into.
struct Tensors {
  const std::vector<Leaf>& leaves;
  absl::string_view memory;
};

// The float64 result of one leaf, and how far a right one may be from it, element by element:
// |got - exact| <= absolute + relative * |exact| + slack (exec/python/precision.py makes them).
struct ExactLeaf {
  Leaf exact;  // float32
  Leaf slack;  // float32
  double absolute = 0;
  double relative = 0;
};

struct Tolerance {
  double atol = 1e-2;
  double rtol = 1e-2;
  // By leaf of `want`, whose memory they are in; null, or nothing for a leaf: atol and rtol count.
  const std::vector<std::optional<ExactLeaf>>* exact = nullptr;
};

// Compares leaf by leaf: their number, for one whether it stands in a container, then of each its
// type, device, layout, shape, element type and values. A value is right if |got - want| <= atol +
// rtol * |want| (in double precision), if both are NaN, or if they are equal (which lets infinities
// agree); an infinity where a finite value is expected, or the other way round, is wrong. Where
// there is a float64 result it takes the place of `want` with its own tolerance; an element that is
// not finite in either may be as it is there. The first leaf that differs ends it. A tensor of the
// right shape that was not handed over is a mismatch of kind "type".
Comparison CompareOutputs(const Tensors& want, const Tensors& got, const Tolerance& tolerance);

// The passes over elements of CompareOutputs, for tensors that lie elsewhere: of leaf `index`, both
// of the same shape and type and with some elements.
using CompareElementsOf =
    std::function<absl::StatusOr<Difference>(int index, const Leaf& want, const Leaf& got)>;
absl::StatusOr<Comparison> CompareOutputs(const std::vector<Leaf>& want,
                                          const std::vector<Leaf>& got, const Tolerance& tolerance,
                                          const CompareElementsOf& compare);

// The float64 result that leaf `index` of `want` is to be compared with, null without one. Both its
// tensors are whole.
const ExactLeaf* ExactOf(const Tolerance& tolerance, int index, const Leaf& want);

// True when both hold bit for bit the same tensors; other leaves are not looked at.
bool SameTensors(const Tensors& want, const Tensors& got);

// Outputs are the same if they differ by at most this share of the largest element. An addition of
// 1e-6 to hide behind is no work.
inline constexpr double kSameOutputShare = 1e-2;

class SavedOutput {
 public:
  // Copies leaves and bytes.
  void Keep(const Tensors& output);

  // Whether `whole` is the same to within kSameOutputShare of its largest element, where that is
  // finite.
  bool IsSame(const Tensors& whole) const;

 private:
  std::vector<Leaf> leaves_;
  std::string bytes_;
};

// False when the two differ in anything but the elements of tensors: number of leaves, types,
// shapes, plain numbers (by more than that share), other values, or a tensor that is not handed
// over.
bool SameStructure(const std::vector<Leaf>& whole, const std::vector<Leaf>& kept);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_COMPARE_TENSOR_COMPARE_H_
