#ifndef TRITONRL_EXEC_DEVICE_BACKEND_H_
#define TRITONRL_EXEC_DEVICE_BACKEND_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "exec/messages.pb.h"

// The interface between the verifier and the code that executes untrusted programs, with helpers
// for its outcomes and modes.

namespace tritonrl {

// Memory of a device, in bytes. Both are 0 for a backend that does not track its memory.
struct DeviceMemory {
  int64_t shared_out = 0;  // total that requests may reserve
  int64_t reserved = 0;    // sum of the running requests' reservations
};

// Runs a candidate and its reference on a device. Thread-safe.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  // Runs the reference in one sandboxed process (unless its results are cached), compiles and
  // executes the candidate in another, fresh process, and compares the outputs in this process.
  // Blocks until there is an outcome, at most until `deadline` plus the few seconds that killing a
  // job takes. Any number of threads may call; concurrency() requests run at once, others wait.
  // While a request is timed no other request uses the device.
  //
  // Every failure of the candidate, the task or a worker is an ExecResult whose outcome says who
  // caused it (see StatusOf). InvalidArgument, which names the field: the request is malformed.
  virtual absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time deadline) = 0;

  // Number of requests that run at the same time.
  virtual int concurrency() const = 0;

  // "native" or "cuda".
  virtual std::string name() const = 0;

  // True when a roofline model computes the times. Every display of such a time must say so.
  virtual bool modelled() const = 0;

  // Current use of the device's memory.
  virtual DeviceMemory memory() const { return {}; }

  // One line for logs on how this backend confines candidates: "bubblewrap, cgroup v1
  // memory+pids+cpu".
  virtual std::string sandbox_description() const = 0;
};

// Returns who caused an outcome with this reason; the hundreds of the reason's number decide.
Outcome::Status StatusOf(Outcome::Reason reason);

// True for infrastructure errors that may not recur when the request is sent again.
bool IsRetryable(Outcome::Reason reason);

// The reason's name in messages and metrics: "timeout" for TIMEOUT.
std::string ReasonName(Outcome::Reason reason);

// The outcome's message, or its reason's name if the message is empty.
std::string MessageOf(const Outcome& outcome);

// Sets status, reason and message, and clears device_memory. Keeps detail and line.
void SetOutcome(Outcome::Reason reason, const std::string& message, Outcome* outcome);

// Repairs all strings in `message` to valid UTF-8: a candidate may print any byte, and Protobuf's
// parsers reject a whole message for one invalid byte.
void MakeTextValid(google::protobuf::Message* message);

// Returns the message as one line of JSON, with the field names of its .proto file and without
// unset fields. Calls MakeTextValid first.
std::string MessageToJson(google::protobuf::Message* message);

// Parses "paper", "strict" or "robust". InvalidArgument names the given value and the valid ones.
absl::StatusOr<Rules> ParseRules(absl::string_view name);

// Inverse of ParseRules.
std::string RulesName(Rules rules);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_DEVICE_BACKEND_H_
