// The calls of a candidate whose tensors stay on the GPU: its reference's process fills a window
// with inputs, and looks at outputs in another one. The executor has both windows too.
#ifndef TRITONRL_EXEC_CLIENT_RUN_CALL_WINDOWS_H_
#define TRITONRL_EXEC_CLIENT_RUN_CALL_WINDOWS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/candidate/call_judge.h"
#include "exec/compare/input_sensitivity.h"
#include "exec/compare/tensor_compare.h"
#include "exec/device/window.h"
#include "exec/messages.pb.h"
#include "exec/reference/reference_runner.h"

namespace tritonrl {

// An output is in its window until the next call ends, so those of live calls are compared at once,
// and their results kept (NoteLive). Not thread-safe.
class CallWindows {
 public:
  // Has the reference's process open windows. The references must outlive the result. No order
  // takes longer than `call_limit`, or than until `deadline`. Errors of ReferenceSession::Ask.
  static absl::StatusOr<std::unique_ptr<CallWindows>> Open(const ExecRequest& request,
                                                           const ReferenceResult& reference_result,
                                                           absl::Duration call_limit,
                                                           absl::Time deadline);
  ~CallWindows();
  CallWindows(const CallWindows&) = delete;
  CallWindows& operator=(const CallWindows&) = delete;

  // Both windows, without functions. Shared with the executor's session.
  const std::shared_ptr<device::Exchange>& exchange() const { return exchange_; }

  // Has the inputs of a trial lie in their window.
  absl::Status Provide(int trial);

  // Compares the output of call `call` (CallsOf), which is live and on the inputs of `trial`,
  // unless an earlier one was wrong.
  absl::Status NoteLive(size_t call, int trial, const std::vector<Leaf>& output);
  // Compares outputs; `live` tells whether the current one is that of a live call.
  OutputAccess Access(std::function<bool()> live);

  // Keeps a copy of the output that is in the window; the copy before is gone.
  absl::Status Keep(const std::vector<Leaf>& output);
  // Whether the output in the window is the same as the one kept (SavedOutput).
  bool IsSameAsKept(const std::vector<Leaf>& output);

  // The first error of any of these: of the reference's process, not of the candidate. After it
  // nothing is asked any more.
  const absl::Status& lost() const { return lost_; }

 private:
  CallWindows(const ExecRequest& request, const ReferenceResult& reference_result,
              absl::Duration call_limit, absl::Time deadline)
      : request_(request),
        reference_result_(reference_result),
        call_limit_(call_limit),
        deadline_(deadline) {}

  absl::Status OpenWindows();
  absl::StatusOr<nlohmann::json> Ask(const nlohmann::json& order, const char* answer,
                                     std::vector<int>* fds = nullptr);
  absl::StatusOr<Comparison> Compare(size_t call, const std::vector<Leaf>& output);
  absl::StatusOr<InputSensitivity> Follow(size_t call, int leaf, const Leaf& got);

  const ExecRequest& request_;
  const ReferenceResult& reference_result_;
  const absl::Duration call_limit_;
  const absl::Time deadline_;
  std::shared_ptr<device::Exchange> exchange_;
  int64_t session_ = 0;
  int provided_ = -1;                      // the trial whose inputs lie in their window
  std::map<size_t, Comparison> compared_;  // of live calls
  std::map<std::pair<size_t, int>, InputSensitivity> followed_;  // by call and leaf
  bool any_wrong_ = false;
  std::vector<Leaf> kept_;
  absl::Status lost_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLIENT_RUN_CALL_WINDOWS_H_
