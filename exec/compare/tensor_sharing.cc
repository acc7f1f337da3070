#include "exec/compare/tensor_sharing.h"

#include "absl/strings/str_cat.h"

namespace tritonrl {

std::string FindSharedOutputs(const std::vector<Leaf>& outputs, const std::vector<Leaf>& inputs) {
  const auto share = [](const Leaf& a, const Leaf& b) {
    if (!a.address.has_value() || !b.address.has_value() || a.elements == 0 || b.elements == 0) {
      return false;
    }
    if (*a.address == *b.address) return true;
    if (!a.dense || !b.dense) return false;
    const Leaf& low = *a.address < *b.address ? a : b;
    const Leaf& high = *a.address < *b.address ? b : a;
    return *high.address - *low.address < static_cast<uint64_t>(low.bytes());
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (share(outputs[i], outputs[j])) {
        return absl::StrCat("outputs ", j, " and ", i, " lie in the same memory");
      }
    }
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (share(outputs[i], inputs[j])) {
        return absl::StrCat("output ", i, " lies in the memory of input ", j);
      }
    }
  }
  return "";
}

}  // namespace tritonrl
