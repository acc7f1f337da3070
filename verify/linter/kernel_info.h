// Effects of a Triton kernel on its arguments, by its source: through which arguments it writes,
// and whether the stored values were computed from loaded ones.
#ifndef TRITONRL_VERIFY_LINTER_KERNEL_INFO_H_
#define TRITONRL_VERIFY_LINTER_KERNEL_INFO_H_

#include <set>
#include <string>
#include <vector>

namespace tritonrl::lint {

struct KernelInfo {
  std::string name;
  int line = 0;
  std::vector<std::string> parameters;
  bool variadic = false;       // *args among the parameters
  std::set<int> written;       // parameters through which something is stored
  std::set<int> loaded;        // parameters through which something is loaded
  bool stores = false;         // there is a store or an atomic at all
  bool stores_loaded = false;  // some stored value depends on loaded data
  bool computes = false;       // some stored value is more than a copy to the same place
  bool gave_up = false;        // too long to be followed to its end
};

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_KERNEL_INFO_H_
