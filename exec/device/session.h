// One candidate: serves its process, records what it does, and replays that without it.
#ifndef TRITONRL_EXEC_DEVICE_SESSION_H_
#define TRITONRL_EXEC_DEVICE_SESSION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/device/arena.h"
#include "exec/device/call_inputs.h"
#include "exec/device/command_handler.h"
#include "exec/device/device.h"
#include "exec/device/frame.h"
#include "exec/device/recording.h"
#include "exec/device/replay.h"
#include "exec/device/value.h"
#include "exec/device/window.h"

namespace tritonrl::device {

// What the candidate is told about the GPU.
struct DeviceDescription {
  std::string name = "NVIDIA L4";
  int capability_major = 8;
  int capability_minor = 9;
  int multiprocessors = 58;
  int64_t shared_bytes = 101'376;  // of a block, at most
  int64_t total_bytes = int64_t{24} << 30;
};

// Arguments of one call of forward; tensors are on the host, or in SessionOptions::exchange.
struct CallInputs {
  Value args;
  Value kwargs;
  uint64_t seed = 0;  // of the default generator when the call begins
};

struct SessionOptions {
  std::string source;  // the candidate's program
  std::string entry = "ModelNew";
  Value init_args;
  Value init_kwargs;
  uint64_t init_seed = 0;
  // If set, the constructor's commands run again under this seed before the first call. The process
  // saw init_seed alone, so that weights, or results on them, that it made itself do not fit.
  std::optional<uint64_t> true_seed;
  // If set, the process is told this seed for its own generators, while the executor draws under
  // init_seed: for constructors that read what the executor drew.
  std::optional<uint64_t> told_seed;
  std::vector<CallInputs> calls;  // live calls; the first is recorded
  // If set, inputs come from there, and outputs of live calls and of replays go there.
  std::shared_ptr<Exchange> exchange;
  // Whether a call finds the memory as the one before left it. Otherwise each begins as the first.
  bool keeps_state = false;
  // The reference's parameters and buffers: they take the place of the candidate's of the same
  // name, shape and type.
  std::vector<std::pair<std::string, at::Tensor>> state;
  // Whether `state` is all that the reference has, be it nothing: SessionResult::own_state says so.
  bool state_is_known = false;
  // Those of `state` that were one constant everywhere before they got other values. One whose name
  // the candidate does not have goes to a tensor of another name, with that constant and as many
  // elements.
  std::map<std::string, double> varied;
  std::set<std::string> also_allowed;  // ForwardRules::also_allowed
  bool may_compute = false;            // as ForwardRules::may_compute; contents may be read too
  bool check = false;                  // as Device::Options::check
  // The entry is a function (or class) of the program to be run once, without the call's inputs:
  // the process takes those of the program's get_inputs, if there is one.
  bool is_program = false;
  std::function<void(absl::string_view)> print;  // gets what kernels print; may be null
  DeviceDescription device;
  SessionLimits limits;
  int threads = 1;  // of a launch
  absl::Time deadline = absl::InfiniteFuture();
};

// Why the candidate did not finish, in its own words.
struct Failure {
  std::string phase;  // "import", "init", "forward" or "output"
  std::string kind;   // class of the exception
  std::string text;
  int line = 0;
};

struct SessionResult {
  std::vector<Value> outputs;          // of each live call, handed over (HandOver)
  std::vector<bool> inputs_unchanged;  // after each of them
  int64_t host_output_bytes = 0;       // of the first output: tensors that are not on the device
  std::vector<TagCounts> provenance;   // of the tensors in the first call's output
  Traffic traffic;                     // of the first call
  std::optional<Failure> failure;      // of the candidate; else all calls have outputs
  CommandCounts counts;
  LaunchFindings findings;                    // of all launches, if options.check
  std::map<std::string, int64_t> of_weights;  // Device::of_weights
  int64_t state_tensors = 0;                  // of the candidate
  int64_t state_matched = 0;  // that have the name, shape and type of one of options.state
  // Sentences on the first tensors of the state that got nothing from options.state.
  std::vector<std::string> own_state;
  int64_t lacking_bytes = 0;  // StorageTable::lacking_bytes
  // Reads of the constructor that differ under true_seed: it may be another model than that seed's.
  int64_t init_reads_that_differ = 0;
};

class Session {
 public:
  // The arena is emptied, and must not be used by anyone else during the session's life.
  Session(SessionOptions options, Arena* arena, KernelCompiler* compiler);

  // Talks with the candidate's process until all calls are done or it failed. Errors:
  // InvalidArgument "the candidate's process sent ..."; ResourceExhausted, too many commands;
  // DeadlineExceeded; Unavailable, the process is gone; Internal.
  absl::StatusOr<SessionResult> Run(Channel& channel);

  // After Run had at least one output. See replay.h.
  absl::StatusOr<ReplayResult> ReplayCall(const ReplayOptions& options);
  // The state's tensors as the constructor makes them under another seed, in the order of
  // recording().state. Calls can no longer be replayed.
  absl::StatusOr<std::vector<at::Tensor>> ReplayConstructor(uint64_t seed);

  const Recording& recording() const { return recording_; }
  // What replays work on, for those that are timed. The checkpoint is there after Run's first call.
  Device& device() { return device_; }
  const std::optional<Checkpoint>& checkpoint() const { return checkpoint_; }
  const KernelTable& kernels() const { return device_.kernels(); }

 private:
  absl::StatusOr<Reply> Answer(const Json& message, absl::string_view payload);
  absl::StatusOr<Reply> Begin();
  absl::StatusOr<Reply> Constructed(const Json& message);
  absl::StatusOr<Reply> Output(const Json& message, absl::string_view payload);
  absl::Status Failed(const Json& message);
  absl::StatusOr<Reply> BeginNextCall();
  bool InputsUnchanged();
  absl::Status PutState();
  absl::StatusOr<bool> PutRenamed(const TensorRef& tensor, std::map<std::string, double>& renamed);
  void TagWeights();

  enum class Stage : uint8_t { kNew, kInit, kForward, kEnded };

  SessionOptions options_;
  const bool compiles_;  // the compiler does, for a GPU
  Device device_;
  CommandHandler handler_;
  Stage stage_ = Stage::kNew;
  SessionResult result_;
  Recording recording_;
  std::optional<Checkpoint> checkpoint_;
  std::vector<WrittenInput> placed_;  // inputs of the current call
  CommandList later_commands_;        // of calls after the first
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_SESSION_H_
