#include "exec/client_run/recorded_calls.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "base/utf8.h"

namespace tritonrl {
namespace {

using device::TensorRef;
using device::Value;

constexpr double kOtherScale = -3;       // of inputs, as in Ablate
constexpr double kCopyTolerance = 1e-2;  // as that of outputs, where a request names none
constexpr double kCloser = 0.5;
constexpr size_t kMostNamed = 64;  // kernels, for Ablate
constexpr size_t kMostText = 400;

// A number that is the same for the same place of a storage, and so for overlapping tensors.
uint64_t AddressOf(const TensorRef& tensor) {
  return (static_cast<uint64_t>(tensor.storage) << 40) +
         static_cast<uint64_t>(tensor.offset * device::BytesOf(tensor.dtype));
}

// Gives the tensor leaves their addresses, in order; a tensor on the host (`is_device` false) has
// none.
void SetAddresses(const std::vector<TensorRef>& refs, std::vector<Leaf>* leaves) {
  size_t next = 0;
  for (Leaf& leaf : *leaves) {
    if (leaf.kind != Leaf::Kind::kTensor || next >= refs.size()) continue;
    leaf.address = AddressOf(refs[next++]);
  }
}

absl::Status OtherReads(int trial) {
  return absl::FailedPreconditionError(
      absl::StrCat("forward reads contents of tensors, and reads others on the inputs of trial ",
                   trial + 1, ": its launches may not depend on them"));
}

// Whether a tensor of the outputs has a type that no input has.
bool HasOtherTypes(const std::vector<Leaf>& outputs, const std::vector<Leaf>& inputs) {
  return std::any_of(outputs.begin(), outputs.end(), [&](const Leaf& output) {
    return output.kind == Leaf::Kind::kTensor &&
           std::none_of(inputs.begin(), inputs.end(), [&](const Leaf& input) {
             return input.kind == Leaf::Kind::kTensor && input.dtype == output.dtype;
           });
  });
}

}  // namespace

RecordedCalls::RecordedCalls(const JobContext& context, const ReferenceResult& reference_result,
                             VisibleValues visible, const std::vector<int>& calls,
                             CallWindows* windows, bool all_live)
    : context_(context),
      reference_result_(reference_result),
      visible_(std::move(visible)),
      calls_(calls),
      windows_(windows),
      all_live_(all_live || reference_result.has_buffers) {
  if (all_live_) {
    live_trials_ = calls;
    return;
  }
  for (int trial = 0; trial < static_cast<int>(visible_.inputs.size()); ++trial) {
    // A second call on other contents shows a program that keeps results of the first.
    // What torch computes may decide what forward does next.
    const bool live = trial <= 1 || context.request.torch_may_compute() || !IsReplayed(trial);
    if (live) live_trials_.push_back(trial);
  }
}

bool RecordedCalls::IsReplayed(int trial) const {
  return SameForm(visible_.inputs[0], visible_.inputs[trial]);
}

device::CallInputs RecordedCalls::InputsOf(int trial) const {
  device::CallInputs inputs;
  inputs.args = visible_.inputs[trial];
  inputs.kwargs.kind = Value::Kind::kDict;
  inputs.seed = context_.seeds.forward[trial];
  return inputs;
}

ReplayRequest RecordedCalls::ReplayOf(int trial, double scale) const {
  ReplayRequest request;
  // An error ends the run: CallWindows::lost.
  if (windows_ != nullptr) windows_->Provide(trial).IgnoreError();
  request.inputs = TensorsOf(visible_.inputs[trial]);
  request.scale = scale;
  request.seed = context_.seeds.forward[trial];
  request.deadline = deadline_;
  return request;
}

std::vector<device::CallInputs> RecordedCalls::LiveCalls() const {
  std::vector<device::CallInputs> calls;
  for (const int trial : live_trials_) calls.push_back(InputsOf(trial));
  return calls;
}

int RecordedCalls::replayed_trials() const {
  if (all_live_) return 1;
  int count = 1;
  while (count < static_cast<int>(visible_.inputs.size()) && IsReplayed(count)) ++count;
  return count;
}

const device::Window* RecordedCalls::OutputWindow() const {
  return windows_ == nullptr ? nullptr : windows_->exchange()->outputs.get();
}

// An output with tensors of the candidate's host is not where the reference's is.
void RecordedCalls::NoteDevice(bool on_device) {
  if (context_.device == "cuda" && on_device) output_device_ = "cuda";
}

std::shared_ptr<device::Exchange> RecordedCalls::Exchange() {
  if (windows_ == nullptr) return nullptr;
  std::shared_ptr<device::Exchange> exchange = windows_->exchange();
  exchange->provide = [this](size_t number) { return windows_->Provide(live_trials_[number]); };
  exchange->take = [this](size_t number, const Value& output, bool on_device) -> absl::Status {
    NoteDevice(on_device);
    const int trial = live_trials_[number];
    size_t call = number;
    if (!all_live_) call = trial == 0 ? 0 : static_cast<size_t>(trial) + 1;
    ASSIGN_OR_RETURN(const LeavesInMemory leaves,
                     LeavesOfValue(output, output_device_, OutputWindow()));
    return windows_->NoteLive(call, trial, leaves.leaves);
  };
  return exchange;
}

absl::Status RecordedCalls::Take(const Value& output) {
  is_live_ = false;
  ASSIGN_OR_RETURN(output_, LeavesOfValue(output, output_device_, OutputWindow()));
  return absl::OkStatus();
}

absl::Status RecordedCalls::Call(size_t call, const device::SessionResult& live,
                                 ExecutorSession* session) {
  const int trial = calls_[call];
  size_t place = call;  // in the live calls
  if (!all_live_) {
    place = std::find(live_trials_.begin(), live_trials_.end(), trial) - live_trials_.begin();
  }
  // The first call once more is a replay: whatever it does otherwise shows.
  const bool again = call == 1 && !all_live_;
  if (place < live_trials_.size() && !again) {
    if (place >= live.outputs.size()) return absl::InternalError("a live call is missing");
    inputs_unchanged_ = live.inputs_unchanged[place];
    NoteDevice(live.host_output_bytes == 0);
    RETURN_IF_ERROR(Take(live.outputs[place]));
    is_live_ = true;
    if (call == 0) NoteAddresses(session->recording());
    return absl::OkStatus();
  }
  ReplayRequest options = ReplayOf(trial);
  options.count = call == 1 && !context_.request.skip_timing() && context_.device != "cuda";
  options.poison = call % 2 == 0 ? device::Poison::kOnes : device::Poison::kPattern;
  auto replayed = session->ReplayCall(options);
  // Launches that were decided on other contents may fail.
  reads_differ_ = !replayed.ok() && live.counts.reads > 0;
  ASSIGN_OR_RETURN(device::ReplayResult replay, std::move(replayed));
  if (!replay.run.counts.empty()) counts_ = replay.run.counts;
  if (call == 1) {  // a kernel may count its calls
    options.count = false;
    options.keeps_state = true;
    ASSIGN_OR_RETURN(replay, session->ReplayCall(options));
  }
  if (replay.run.reads_that_differ > 0) {
    reads_differ_ = true;
    return OtherReads(trial);
  }
  inputs_unchanged_ = replay.inputs_unchanged;
  return Take(replay.output);
}

bool RecordedCalls::OnlyCopies(const std::function<Comparison()>& compare,
                               ExecutorSession* session) {
  // Where the task itself is to convert, a kernel that does so works.
  const bool converts = HasOtherTypes(output_.leaves, inputs_);
  ReplayRequest options;
  // A kernel that changes nothing on positive numbers (relu) does on others.
  for (const double scale : {kOtherScale, 1.0}) {
    options = ReplayOf(0, scale);
    options.follow_copies = true;
    options.copy_tolerance = {kCopyTolerance * std::abs(scale), kCopyTolerance, !converts};
    const absl::StatusOr<device::ReplayResult> replay = session->ReplayCall(options);
    if (!replay.ok()) return false;
    // These launches are those of other numbers.
    if (scale != 1 && replay->run.reads_that_differ > 0) continue;
    int64_t total = 0, by_kernels = 0;
    for (const device::TagCounts& counts : replay->provenance) {
      total += counts.total;
      for (const device::Tag tag : {device::Tag::kKernel, device::Tag::kSmall}) {
        by_kernels += counts.bytes[static_cast<size_t>(tag)];
      }
    }
    if (total == 0 || by_kernels > 0) return false;
    if (scale == 1 && !Take(replay->output).ok()) return false;
  }
  const Comparison moved = compare();
  if (!moved.equal) return false;
  options.follow_copies = false;
  const absl::StatusOr<device::ReplayResult> whole = session->ReplayCall(options);
  if (!whole.ok() || !Take(whole->output).ok()) return false;
  // Kernels that come much closer to the reference than its copies do compute something.
  return compare().max_error.value_or(0) >= kCloser * moved.max_error.value_or(0);
}

absl::StatusOr<std::string> RecordedCalls::BeginTiming(bool direct,
                                                       ExecutorSession* session) const {
  return session->BeginTiming(ReplayOf(0), direct);
}

absl::StatusOr<std::vector<double>> RecordedCalls::TimeReplays(TimeRequest request,
                                                               ExecutorSession* session) {
  request.deadline = deadline_;
  ASSIGN_OR_RETURN(TimedReplays timed, session->TimeReplays(request));
  if (request.output) RETURN_IF_ERROR(Take(timed.output));
  return std::move(timed.seconds);
}

absl::Status RecordedCalls::CountLaunches(ExecutorSession* session) {
  if (!counts_.empty() || context_.device == "cuda") return absl::OkStatus();
  ReplayRequest options = ReplayOf(0);
  options.seed.reset();
  options.count = true;
  ASSIGN_OR_RETURN(const device::ReplayResult replay, session->ReplayCall(options));
  counts_ = replay.run.counts;
  return absl::OkStatus();
}

void RecordedCalls::NoteAddresses(const RecordingSummary& recording) {
  SetAddresses(recording.outputs, &output_.leaves);
  inputs_ = reference_result_.inputs[calls_[0]];
  SetAddresses(recording.inputs, &inputs_);
}

OutputAccess RecordedCalls::access() {
  if (windows_ != nullptr) return windows_->Access([this] { return is_live_; });
  return AccessInMemory(context_.request, reference_result_,
                        [this] { return absl::string_view(output_.memory); });
}

int RecordedCalls::LineOf(absl::string_view kernel) const {
  const std::string& source = context_.request.candidate_source();
  const size_t place = source.find(absl::StrCat("def ", kernel, "("));
  if (place == std::string::npos) return 0;
  return 1 + static_cast<int>(std::count(source.begin(), source.begin() + place, '\n'));
}

std::vector<KernelLaunch> LaunchesOf(const RecordingSummary& recording) {
  std::vector<KernelLaunch> launches;
  for (const RecordedLaunch& made : recording.launches) {
    KernelLaunch& launch = launches.emplace_back();
    launch.set_name(made.kernel);
    launch.set_line(made.line);
    for (const int32_t size : made.grid) launch.add_grid(size);
    launch.set_num_warps(static_cast<int32_t>(made.num_warps));
    launch.set_num_stages(static_cast<int32_t>(made.num_stages));
    launch.set_shared_bytes(made.shared_bytes);
  }
  return launches;
}

std::vector<KernelLaunch> RecordedCalls::Launches(const RecordingSummary& recording) const {
  std::vector<KernelLaunch> launches = LaunchesOf(recording);
  for (size_t i = 0; i < launches.size(); ++i) {
    KernelLaunch& launch = launches[i];
    launch.set_line(LineOf(launch.name()));
    if (i >= counts_.size()) continue;
    launch.set_load_bytes(counts_[i].load_bytes);
    launch.set_store_bytes(counts_[i].store_bytes);
    launch.set_atomic_bytes(counts_[i].atomic_bytes);
    launch.set_sector_bytes(counts_[i].sector_bytes);
    launch.set_unique_bytes(counts_[i].unique_bytes);
    launch.set_flops(counts_[i].flops);
    launch.set_dot_flops(counts_[i].dot_flops);
    launch.set_tensor_flops(counts_[i].tensor_flops);
  }
  return launches;
}

std::vector<KernelAblation> RecordedCalls::Kernels(const RecordingSummary& recording) {
  kernels_.clear();
  for (const RecordedLaunch& launch : recording.launches) {
    if (std::find(kernels_.begin(), kernels_.end(), launch.kernel) == kernels_.end()) {
      kernels_.push_back(launch.kernel);
    }
  }
  if (kernels_.size() > kMostNamed) kernels_.resize(kMostNamed);
  std::vector<KernelAblation> named;
  for (const std::string& name : kernels_) {
    KernelAblation& kernel = named.emplace_back();
    kernel.set_name(RepairUtf8(name.substr(0, kMostText)));
    kernel.set_line(LineOf(name));
  }
  return named;
}

absl::StatusOr<AblatedOutput> RecordedCalls::Ablated(const AblatedCall& call, absl::Time until,
                                                     ExecutorSession* session) {
  ReplayRequest options = ReplayOf(call.trial, call.scale);
  options.poison = call.pattern ? device::Poison::kPattern : device::Poison::kOnes;
  options.deadline = std::min(deadline_, until);
  options.skipped.all = call.all;
  if (call.kernel.has_value()) options.skipped.kernels = {kernels_[*call.kernel]};
  ASSIGN_OR_RETURN(const device::ReplayResult replay, session->ReplayCall(options));
  RETURN_IF_ERROR(Take(replay.output));
  return AblatedOutput{output_.leaves, replay.run.left_out};
}

void RecordedCalls::Keep(const std::vector<Leaf>& output) {
  if (windows_ != nullptr) {
    windows_->Keep(output).IgnoreError();
  } else {
    kept_.Keep({output, output_.memory});
  }
}

bool RecordedCalls::IsSameAsKept(const std::vector<Leaf>& output) {
  if (windows_ != nullptr) return windows_->IsSameAsKept(output);
  return kept_.IsSame({output, output_.memory});
}

}  // namespace tritonrl
