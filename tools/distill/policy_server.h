// Serves a model folder by //rollout:serve in a child process, as an endpoint of its own.
#ifndef TRITONRL_TOOLS_DISTILL_POLICY_SERVER_H_
#define TRITONRL_TOOLS_DISTILL_POLICY_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/subprocess.h"

namespace tritonrl {

class PolicyServer {
 public:
  // Starts the server on a free port and returns once it listens. `flags` are further flags of
  // serve, separated by spaces, such as "--max_num_seqs=128 --device=cuda". FailedPrecondition: it
  // ended instead, for the reason on stderr; DeadlineExceeded: it was not ready in time.
  static absl::StatusOr<std::unique_ptr<PolicyServer>> Start(
      const std::string& folder, const std::string& flags,
      absl::Duration start_timeout = absl::Minutes(30));

  const std::string& url() const { return url_; }      // "http://127.0.0.1:PORT/v1"
  const std::string& model() const { return model_; }  // its name in requests

 private:
  PolicyServer(Subprocess process, std::string model)
      : process_(std::move(process)), model_(std::move(model)) {}
  absl::Status AwaitAddress(absl::Time deadline);

  Subprocess process_;  // its destructor ends the server
  const std::string model_;
  std::string url_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_DISTILL_POLICY_SERVER_H_
