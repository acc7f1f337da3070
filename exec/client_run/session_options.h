// What an executor is told of the candidate that it is to serve.
#ifndef TRITONRL_EXEC_CLIENT_RUN_SESSION_OPTIONS_H_
#define TRITONRL_EXEC_CLIENT_RUN_SESSION_OPTIONS_H_

#include "exec/client_run/recorded_calls.h"
#include "exec/client_run/run_setup.h"
#include "exec/device/session.h"
#include "exec/executor/executor.h"

namespace tritonrl {

// What the candidate's process knows of the seed of its weights. Under another one its
// constructor's commands run again, of which it knows nothing: what it computed by itself does not
// fit.
enum class Decoy {
  kNone,      // the seed
  kReplayed,  // another one, under which its constructor runs first
  kTold,      // another one, for its own generators alone
};

// The options of a session that begins now, without the exchange. `recorded` has the values that
// the candidate may see. The limits are the smaller ones of the executor's own, the request's, and
// what the reference's tensors leave.
device::SessionOptions MakeSessionOptions(const RunSetup& setup, const RecordedCalls& recorded,
                                          Decoy decoy, const Executors& executors);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLIENT_RUN_SESSION_OPTIONS_H_
