// Requests for tests, and running one that has to get an answer.
#ifndef TRITONRL_EXEC_TESTING_RUN_REQUEST_H_
#define TRITONRL_EXEC_TESTING_RUN_REQUEST_H_

#include <gtest/gtest.h>

#include <string>

#include "absl/time/clock.h"
#include "exec/device_backend.h"
#include "exec/testing/softmax.h"

namespace tritonrl {

// A candidate against a reference with a wall clock of so many seconds.
inline ExecRequest MakeExecRequest(const std::string& candidate,
                                   const std::string& reference = kSoftmaxReference,
                                   double seconds = 20) {
  ExecRequest request;
  request.set_task_id("t");
  request.set_reference_source(reference);
  request.set_candidate_source(candidate);
  request.mutable_limits()->set_wall_seconds(seconds);
  return request;
}

// The result; a test failure and an empty one when the backend has none within two minutes.
inline ExecResult RunOrFail(DeviceBackend* backend, const ExecRequest& request) {
  auto result = backend->Run(request, absl::Now() + absl::Seconds(120));
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : ExecResult();
}

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_RUN_REQUEST_H_
