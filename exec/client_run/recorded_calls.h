// The calls of one candidate's forward: live ones, and replays of the recorded first one on the
// inputs of other trials.
#ifndef TRITONRL_EXEC_CLIENT_RUN_RECORDED_CALLS_H_
#define TRITONRL_EXEC_CLIENT_RUN_RECORDED_CALLS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "exec/candidate/ablation.h"
#include "exec/candidate/call_judge.h"
#include "exec/client_run/call_windows.h"
#include "exec/client_run/layout_values.h"
#include "exec/compare/tensor_compare.h"
#include "exec/device/session.h"
#include "exec/executor/executor.h"
#include "exec/messages.pb.h"
#include "exec/reference/job_json.h"
#include "exec/reference/reference_runner.h"

namespace tritonrl {

// The launches of the recorded call, each with the line of the program that launched it.
std::vector<KernelLaunch> LaunchesOf(const RecordingSummary& recording);

// The output of one call at a time; the next one overwrites it.
class RecordedCalls {
 public:
  // `calls` is the trial of each call (CallsOf). `windows` may be null: then all tensors are in
  // memory. With `all_live` the candidate's process makes all calls, as where the outputs may
  // depend on the calls before. All references must outlive this.
  RecordedCalls(const JobContext& context, const ReferenceResult& reference_result,
                VisibleValues visible, const std::vector<int>& calls, CallWindows* windows,
                bool all_live);

  const VisibleValues& visible() const { return visible_; }

  // The calls that the candidate's process makes: the first two trials, and trials whose inputs
  // differ from the first in more than contents, as another shape may need other launches. All
  // calls, if the outputs may depend on the calls before.
  std::vector<device::CallInputs> LiveCalls() const;
  // What live calls need of the windows; null without them. Refers to this.
  std::shared_ptr<device::Exchange> Exchange();
  // Of each replay from now on; infinite before.
  void set_deadline(absl::Time deadline) { deadline_ = deadline; }
  // Trials from the first on that a replay can run.
  int replayed_trials() const;

  // Makes call number `call` the current one. Errors: of the replayed commands; Internal;
  // FailedPrecondition if the replay read other contents than the recording, so that forward might
  // have gone another way: the calls have to be live.
  absl::Status Call(size_t call, const device::SessionResult& live, ExecutorSession* session);
  // Whether Call failed so.
  bool reads_differ() const { return reads_differ_; }

  // Whether kernels only copied what operators of torch had made, within the tolerance of a
  // comparison, and on inputs of other signs too. `compare` compares the current output with that
  // of the reference's first call: what the operators alone give is right, and not much farther
  // from it than with the kernels. The current output is another one afterwards.
  bool OnlyCopies(const std::function<Comparison()>& compare, ExecutorSession* session);

  // Of the current call.
  const std::vector<Leaf>& output() const { return output_.leaves; }
  bool inputs_unchanged() const { return inputs_unchanged_; }
  // Of the recorded call, with addresses, as those of its output.
  const std::vector<Leaf>& inputs() const { return inputs_; }
  // Compares the current output; refers to this.
  OutputAccess access();

  // Makes the first call ready to be timed (ExecutorSession::BeginTiming).
  absl::StatusOr<std::string> BeginTiming(bool direct, ExecutorSession* session) const;
  // Seconds of timed replays; the output of the last becomes the current one, if it is asked for.
  absl::StatusOr<std::vector<double>> TimeReplays(TimeRequest request, ExecutorSession* session);

  // Counts what the launches of the recorded call do, unless a replay has done so. A GPU counts
  // nothing.
  absl::Status CountLaunches(ExecutorSession* session);
  // The launches of the recorded call, without modelled times; with counts if there are any. The
  // line is that of the kernel.
  std::vector<KernelLaunch> Launches(const RecordingSummary& recording) const;
  // The kernels for Ablate.
  std::vector<KernelAblation> Kernels(const RecordingSummary& recording);
  // A call for Ablate, by a replay that is to end by `until`. The output becomes the current one.
  absl::StatusOr<AblatedOutput> Ablated(const AblatedCall& call, absl::Time until,
                                        ExecutorSession* session);
  void Keep(const std::vector<Leaf>& output);
  bool IsSameAsKept(const std::vector<Leaf>& output);

 private:
  bool IsReplayed(int trial) const;
  device::CallInputs InputsOf(int trial) const;
  // A replay on the inputs of a trial, which are provided: to be made before any other.
  ReplayRequest ReplayOf(int trial, double scale = 1) const;
  absl::Status Take(const device::Value& output);
  void NoteDevice(bool on_device);
  // Gives the current output, of the recorded call, the addresses of its tensors.
  void NoteAddresses(const RecordingSummary& recording);
  int LineOf(absl::string_view kernel) const;
  // Null if outputs are in memory.
  const device::Window* OutputWindow() const;

  const JobContext& context_;
  const ReferenceResult& reference_result_;
  const VisibleValues visible_;
  const std::vector<int>& calls_;
  CallWindows* const windows_;
  const bool all_live_;  // or the outputs may depend on the calls before
  std::vector<int> live_trials_;
  bool reads_differ_ = false;

  absl::Time deadline_ = absl::InfiniteFuture();
  std::string output_device_ = "cpu";  // of its tensors, as the reference's are described
  LeavesInMemory output_;
  bool is_live_ = false;  // the output is of a live call
  bool inputs_unchanged_ = true;
  std::vector<Leaf> inputs_;
  std::vector<std::string> kernels_;          // names, in the order of the first launch
  std::vector<device::LaunchCounts> counts_;  // of the recorded call's launches
  SavedOutput kept_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLIENT_RUN_RECORDED_CALLS_H_
