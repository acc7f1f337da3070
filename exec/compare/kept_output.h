// An output that outlives the memory it came in, for a later one to be compared with.
#ifndef TRITONRL_EXEC_COMPARE_KEPT_OUTPUT_H_
#define TRITONRL_EXEC_COMPARE_KEPT_OUTPUT_H_

#include <string>
#include <vector>

#include "exec/compare/tensor_compare.h"

namespace tritonrl {

// Outputs are the same if they differ by at most this share of the largest element. An addition of
// 1e-6 to hide behind is no work.
inline constexpr double kSameShare = 1e-2;

class KeptOutput {
 public:
  // Copies leaves and bytes.
  void Keep(const Tensors& output);

  // Whether `whole` is the same to within kSameShare of its largest element, where that is finite.
  bool IsSame(const Tensors& whole) const;

 private:
  std::vector<Leaf> leaves_;
  std::string bytes_;
};

// False when the two differ in anything but the elements of tensors: number of leaves, types,
// shapes, plain numbers (by more than that share), other values, or a tensor that is not handed
// over.
bool AlikeButElements(const std::vector<Leaf>& whole, const std::vector<Leaf>& kept);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_COMPARE_KEPT_OUTPUT_H_
