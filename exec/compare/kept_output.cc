#include "exec/compare/kept_output.h"

#include <cmath>
#include <limits>

#include "absl/strings/string_view.h"

namespace tritonrl {
namespace {

// Largest absolute element; infinite if one is not finite.
double Largest(const Leaf& leaf, absl::string_view memory) {
  const std::string zeros(leaf.bytes(), '\0');
  Leaf zero = leaf;
  zero.offset = 0;
  const double all = std::numeric_limits<double>::max();
  const std::vector<Leaf> want = {zero}, got = {leaf};
  const Comparison found = CompareOutputs({want, zeros}, {got, memory}, {.atol = all, .rtol = 0});
  if (!found.equal || !found.max_error.has_value()) return std::numeric_limits<double>::infinity();
  return *found.max_error;
}

}  // namespace

bool AlikeButElements(const std::vector<Leaf>& whole, const std::vector<Leaf>& kept) {
  const auto alike = [](int, const Leaf&, const Leaf&) { return Difference(); };
  const auto found = CompareOutputs(whole, kept, {.atol = 0, .rtol = kSameShare}, alike);
  return found.ok() && found->equal;
}

void KeptOutput::Keep(const Tensors& output) {
  leaves_ = output.leaves;
  bytes_.clear();
  for (Leaf& leaf : leaves_) {
    if (!leaf.offset.has_value()) continue;
    const absl::string_view bytes = output.memory.substr(*leaf.offset, leaf.bytes());
    leaf.offset = bytes_.size();
    bytes_.append(bytes.data(), bytes.size());
  }
}

bool KeptOutput::IsSame(const Tensors& whole) const {
  if (!AlikeButElements(whole.leaves, leaves_)) return false;
  if (SameTensors(whole, {leaves_, bytes_})) return true;
  for (size_t i = 0; i < whole.leaves.size(); ++i) {
    const std::vector<Leaf> a = {whole.leaves[i]}, b = {leaves_[i]};
    if (a[0].kind != Leaf::Kind::kTensor || a[0].elements == 0) continue;
    double atol = 0;
    const double largest = Largest(a[0], whole.memory);
    if (std::isfinite(largest)) atol = kSameShare * largest;
    if (!CompareOutputs({a, whole.memory}, {b, bytes_}, {.atol = atol, .rtol = 0}).equal) {
      return false;
    }
  }
  return true;
}

}  // namespace tritonrl
