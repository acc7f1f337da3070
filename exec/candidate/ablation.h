// Ablation: forward is called again with kernels that write nothing. Where all of them can be left
// out and the result stays right, they are decoration and something else made it.
#ifndef TRITONRL_EXEC_CANDIDATE_ABLATION_H_
#define TRITONRL_EXEC_CANDIDATE_ABLATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/compare/tensor_layout.h"
#include "exec/messages.pb.h"

namespace tritonrl {

// Kernels that are left out one by one; of those after them it is said that they were not tried.
inline constexpr int kMostAblations = 8;

// One call of forward.
struct AblatedCall {
  int trial = 0;  // on whose inputs, times `scale`
  double scale = 1;
  bool all = false;           // no kernel writes anything
  std::optional<int> kernel;  // this one writes nothing, by its place in the list
  bool pattern = false;       // another pattern in fresh memory
};

// What came of it: the output, and how many launches were left out.
struct AblatedOutput {
  std::vector<Leaf> leaves;
  int64_t left_out = 0;
};

struct AblationSetup {
  int trials = 0;  // whose inputs there are
  // Makes one call. DeadlineExceeded: it did not end in time; other errors: it failed.
  std::function<absl::StatusOr<AblatedOutput>(const AblatedCall& call)> call;
  // Whether that is a right output for that trial.
  std::function<bool(int trial, const std::vector<Leaf>& output)> is_right;
  // Keeps a copy of an output, as the memory it came in is written again; the one before is gone.
  std::function<void(const std::vector<Leaf>& output)> keep;
  // Whether an output is the same as the one kept, to within a share of its size.
  std::function<bool(const std::vector<Leaf>& output)> same_as_kept;
  absl::Time until;  // no call begins after that
};

struct AblationResult {
  AblationEffect all = ABLATION_NOT_TRIED;  // all kernels left out together
  std::vector<KernelAblation> kernels;      // as they were given
};

// `kernels` are names and lines, in the order of their first launch. Never two calls in a row on
// inputs of one trial (if there are several), so that memory kept from the call before holds
// another result. A result that looks unchanged is tried again before that is believed: with
// another pattern in fresh memory, that may have been right by chance; against the same call with
// all kernels, for outputs so small that the tolerance lets anything pass; and on inputs scaled by
// a negative number, for inputs that leave a kernel nothing to do (relu of positive numbers).
AblationResult Ablate(const AblationSetup& setup, std::vector<KernelAblation> kernels);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CANDIDATE_ABLATION_H_
