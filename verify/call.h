// A call of //verify:verify, apart from where its flags come from: what it asks for, whether that
// makes sense, and what is made from it.
#ifndef TRITONRL_VERIFY_CALL_H_
#define TRITONRL_VERIFY_CALL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exec/device_backend.h"
#include "tasks/task.h"
#include "verify/judge.h"
#include "verify/verifier.h"

namespace tritonrl {

// Each member is the flag of the same name in verify_main.cc, which says what it means.
struct VerifyCall {
  // What: one pair, many cases, or tasks themselves.
  std::string reference, candidate;
  std::string in, out;
  bool preflight = false;
  std::string tasks;
  std::string html;
  bool json = false;
  // Where.
  std::string backend, sandbox, device_model;
  std::string servers, token_file;
  int workers = 0;
  double time_limit = 0, memory_gb = 0;
  // How.
  uint64_t seed = 0;
  int trials = 5;
  double tolerance = 0;
  std::string mode;
  bool functionality = true, ablation = true, gpu_profile = true, timing = true;
  std::string judge_url, judge_model, judge_key_variable, judge_cache;
  int judge_parallel = 1;
};

// InvalidArgument: one sentence that names the flag at fault.
absl::Status CheckCall(const VerifyCall& call);

// What is to be checked, read before workers are started: mistakes in the call are told first.
struct CallInputs {
  std::string reference, candidate;  // of one pair
  std::vector<Task> tasks;           // of a preflight
};
// Errors name the flag and the file. Tasks that cannot be read are named on stderr.
absl::StatusOr<CallInputs> ReadInputs(const VerifyCall& call);

// Null when no judge is asked for.
absl::StatusOr<std::unique_ptr<Judge>> MakeCallJudge(const VerifyCall& call);

// Connects to servers or starts workers here. InvalidArgument, Unauthenticated, PermissionDenied or
// NotFound for a mistake in the call.
absl::StatusOr<std::unique_ptr<DeviceBackend>> StartCallBackend(const VerifyCall& call);

VerifierOptions VerifierOptionsOf(const VerifyCall& call, const DeviceBackend& backend);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_CALL_H_
