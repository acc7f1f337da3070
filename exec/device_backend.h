#ifndef TRITONRL_EXEC_DEVICE_BACKEND_H_
#define TRITONRL_EXEC_DEVICE_BACKEND_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "exec/messages.pb.h"

// Runs a candidate kernel beside its reference on some device: the one door between the verdict
// and what executes untrusted code.
//
// The modes of correctness as people write them.

namespace tritonrl {

// Of a device, in bytes. All 0 where nobody keeps count.
struct DeviceMemory {
  int64_t shared_out = 0;  // for requests
  int64_t reserved = 0;    // by requests at work
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  // Runs the reference in one sandboxed process (unless its results are at hand), compiles and
  // executes the candidate in another, fresh one, and compares here. Blocks until there is an
  // outcome, at most until `deadline` plus the few seconds that killing takes. Any number of
  // threads may call; concurrency() of them make progress at once, others wait. While one is
  // measured no other uses the device.
  //
  // Everything that happens to the candidate, to the task or to a worker is an ExecResult with
  // its outcome and fault (see StatusOf). A Status is returned only for a request that makes no
  // sense (InvalidArgument names the field).
  virtual absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time deadline) = 0;

  // Jobs that run at the same time.
  virtual int concurrency() const = 0;

  // "interpreter" or "cuda".
  virtual std::string name() const = 0;

  // True when times are computed by a roofline model; whatever shows them must say so.
  virtual bool modelled() const = 0;

  // How the device's memory is used now.
  virtual DeviceMemory memory() const { return {}; }

  // One line on how candidates are confined here, for logs: "bubblewrap, cgroup v1
  // memory+pids+cpu".
  virtual std::string sandbox_description() const = 0;
};

// Whose doing a reason is, by the hundreds of its number.
Outcome::Status StatusOf(Outcome::Reason reason);

// True for infrastructure errors that may go away when the request is sent again.
bool IsRetryable(Outcome::Reason reason);

// "timeout" for TIMEOUT; the name used in messages and metrics.
std::string ReasonName(Outcome::Reason reason);

// The message, or the reason's name where there is none.
std::string MessageOf(const Outcome& outcome);

// Sets status, reason and message; detail and line stay.
void SetOutcome(Outcome::Reason reason, const std::string& message, Outcome* outcome);

// Makes all text in a message valid UTF-8, as Protobuf's parsers refuse whole messages over one
// wrong byte, and a candidate may print any byte.
void MakeTextValid(google::protobuf::Message* message);

// The message as one line of JSON: names as in its .proto file, unset fields left out. Makes its
// text valid first.
std::string MessageToJson(google::protobuf::Message* message);

// "paper" or "robust". InvalidArgument names the value and what it can be.
absl::StatusOr<ExecMode> ParseExecMode(absl::string_view name);

std::string ExecModeName(ExecMode mode);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_DEVICE_BACKEND_H_
