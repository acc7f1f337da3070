#include "bench/model/peer.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "base/subprocess.h"
#include "model/testing/test_util.h"

namespace tritonrl {

absl::Status RunPeer(const PeerOptions& run) {
  if (run.recompute.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string config, ModelConfigPath(run.shape));
  ASSIGN_OR_RETURN(const PythonEnv python, FindPythonEnv());
  ASSIGN_OR_RETURN(const std::string script, Runfile(run.script));
  SubprocessOptions options;
  options.argv = {python.interpreter};
  options.argv.insert(options.argv.end(), run.launcher.begin(), run.launcher.end());
  for (const std::string& argument :
       {script, absl::StrCat("--config=", config), absl::StrCat("--lengths=", run.lengths),
        absl::StrCat("--recompute=", run.recompute), absl::StrCat("--steps=", run.steps)}) {
    options.argv.push_back(argument);
  }
  options.env = python.Environment();
  ASSIGN_OR_RETURN(Subprocess peer, Subprocess::Start(options));
  const std::optional<ExitStatus> ended = peer.Wait(run.timeout);
  if (!ended.has_value()) {
    return absl::DeadlineExceededError(
        absl::StrCat("the peer was not done in ", absl::FormatDuration(run.timeout)));
  }
  if (!ended->ok()) return absl::InternalError(absl::StrCat("the peer: ", ended->ToString()));
  return absl::OkStatus();
}

}  // namespace tritonrl
