// Timing of a candidate's recorded call on a GPU, in turn with its reference.
#ifndef TRITONRL_EXEC_CLIENT_RUN_CANDIDATE_TIMING_H_
#define TRITONRL_EXEC_CLIENT_RUN_CANDIDATE_TIMING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "exec/candidate/call_judge.h"
#include "exec/client_run/recorded_calls.h"
#include "exec/client_run/run_setup.h"
#include "exec/executor/executor.h"
#include "exec/timing/replay_rounds.h"

namespace tritonrl {

class CandidateTiming {
 public:
  // All arguments must outlive this. The recorded call's outputs are judged as right before.
  CandidateTiming(const RunSetup& setup, ExecutorSession* session, RecordedCalls* recorded,
                  CallJudge* judge)
      : setup_(setup), session_(*session), recorded_(*recorded), judge_(*judge) {}

  // Times both sides while no other request uses the GPU. `operators`: calls of torch's operators
  // in the recorded call. A timed call with a wrong output ends it; the judge has noted why.
  ReplayTiming Measure(int64_t operators);

  // Whether an output of a timed call was judged.
  bool judged() const { return judged_; }

 private:
  absl::StatusOr<std::vector<double>> Replay(const CandidateRound& round);
  bool WaitUntilAlone();

  const RunSetup& setup_;
  ExecutorSession& session_;
  RecordedCalls& recorded_;
  CallJudge& judge_;
  bool judged_ = false;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLIENT_RUN_CANDIDATE_TIMING_H_
