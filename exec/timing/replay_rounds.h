// Interleaved timing of a reference, in its own process, and of a candidate's recorded call, which
// an executor replays without the candidate: rounds of both take turns.
//
// One timed call is, on both sides, a CUDA graph: 256 MiB are written, an event, the call, an
// event. No host is in the clock: gaps between launches are those of a graph. Where one of the
// sides cannot be captured, both are timed by direct calls behind a wait of the GPU that hides the
// host's time.
//
// The paper's figure is the ratio of the means of ten direct calls each, launches included. The
// reference's are calls of Python. The candidate's are replays by C++, whose launches take some 5
// us of the host while Triton's launcher takes 20 to 40: PaperSeconds makes them what Python's
// calls would take. That is the figure's modelled part: multiples, fitted to direct calls of 262
// programs, of what an operator of torch takes in the reference's process
// (bench/exec/direct_calls.py).
#ifndef TRITONRL_EXEC_TIMING_REPLAY_ROUNDS_H_
#define TRITONRL_EXEC_TIMING_REPLAY_ROUNDS_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "exec/messages.pb.h"
#include "exec/reference/reference_runner.h"
#include "exec/timing/timing_result.h"

namespace tritonrl {

struct CandidateRound {
  int count = 1;
  bool with_launches = false;  // their mean alone, with the host's time for launches
  bool checked = false;        // the output of the last one is wanted
};

struct ReplaySides {
  // Sends an order to the reference's process and returns the value of the answer's member.
  std::function<absl::StatusOr<nlohmann::json>(const nlohmann::json& order, const char* answer)>
      reference;
  // Makes the candidate's call ready; `direct`: not as a graph. Returns why it is no graph, or "".
  std::function<absl::StatusOr<std::string>(bool direct)> begin;
  // Seconds of each replay. With `checked` the output is compared meanwhile: InvalidArgument if it
  // is wrong.
  std::function<absl::StatusOr<std::vector<double>>(const CandidateRound& round)> candidate;
  // Waits until no other request uses the GPU. False on a timeout.
  std::function<bool()> alone;
  int64_t launches = 0;   // of the candidate's call
  int64_t operators = 0;  // of torch in it
};

struct ReplayTiming {
  TimingResult result;
  // Why calls were timed directly; empty: as graphs.
  std::string not_a_graph;
  // The error of the candidate's side, where result.kind is kCandidateEnded.
  absl::Status candidate;
};

// Seconds of a direct call by Python of a candidate that takes `replay_seconds` when C++ replays
// it, launches included, on a host that takes `operator_seconds` for an operator of torch. Either
// the host is the slower side, or the device after the first launch.
double PaperSeconds(double replay_seconds, double operator_seconds, int64_t launches,
                    int64_t operators);

// Times both sides. Tells the reference to end when the timing is over.
ReplayTiming MeasureReplays(const ExecRequest& request, const ReferenceResult& reference_result,
                            const ReplaySides& sides);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TIMING_REPLAY_ROUNDS_H_
