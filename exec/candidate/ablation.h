// Ablation: forward is called again with kernels that write nothing. Where all of them can be left
// out and the result stays right, they are decoration and something else made it.
#ifndef TRITONRL_EXEC_CANDIDATE_ABLATION_H_
#define TRITONRL_EXEC_CANDIDATE_ABLATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "exec/compare/tensor_layout.h"
#include "exec/messages.pb.h"

namespace tritonrl {

// Kernels that are left out one by one; of those after them it is said that they were not tried.
inline constexpr int kMostAblations = 8;

// The text of a kernel in whose call the process ended.
inline constexpr char kProcessEnded[] = "its process ended";

struct AblationSetup {
  int trials = 0;  // whose inputs there are
  // Whether that is a right output for that trial.
  std::function<bool(int trial, const std::vector<Leaf>& output)> is_right;
  // Puts a trial's inputs where the runner will look for them.
  std::function<void(int trial)> provide = [](int) {};
  // Keeps a copy of an output, as the memory it came in is written again; the one before is gone.
  std::function<void(const std::vector<Leaf>& output)> keep;
  // Whether an output is the same as the one kept, to within a share of its size.
  std::function<bool(const std::vector<Leaf>& output)> same_as_kept;
  uint64_t memory_bytes = 0;  // of the memory that the runner hands over in
  absl::Time until;           // no call begins after that, and each is told to end by then
};

// Sends one message to the runner and waits for its answer (formats in docs/protocol.md);
// nothing when its process ended instead.
using AskRunner = std::function<std::optional<std::string>(const std::string& order)>;

struct AblationResult {
  AblationEffect all = ABLATION_NOT_TRIED;  // all kernels left out together
  std::vector<KernelAblation> kernels;      // in the order of their first launch
  bool ended = false;                       // the process ended in an ablated call
  bool ended_in_all = false;                // namely the first, without all kernels
  absl::Status violation;                   // an answer that makes no sense
};

// `named` is the runner's message that names its kernels. Never two calls in a row on inputs of one
// trial (if there are several), so that memory kept from the call before holds another result. A
// result that looks unchanged is tried again before that is believed: with another pattern in fresh
// memory, that may have been right by chance; against the same call with all kernels, for outputs
// so small that the tolerance lets anything pass; and on inputs scaled by a negative number, for
// inputs that leave a kernel nothing to do (relu of positive numbers).
AblationResult Ablate(const AblationSetup& setup, const std::string& named, const AskRunner& ask);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CANDIDATE_ABLATION_H_
