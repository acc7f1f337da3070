#include "exec/client_run/recorded_calls.h"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/mul.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;
using device::LaunchCommand;
using device::TensorRef;
using device::Value;

constexpr double kOtherScale = -3;  // of inputs, as in Ablate
constexpr size_t kMostNamed = 64;   // kernels, for Ablate
constexpr size_t kMostText = 400;

// A number that is the same for the same place of a storage, and so for overlapping tensors.
uint64_t AddressOf(const TensorRef& tensor) {
  return (static_cast<uint64_t>(tensor.storage) << 40) +
         static_cast<uint64_t>(tensor.offset * device::BytesOf(tensor.dtype));
}

void AppendRefs(const Value& value, std::vector<TensorRef>* refs) {
  if (value.kind == Value::Kind::kTensor) refs->push_back(value.tensor);
  for (const Value& item : value.items) AppendRefs(item, refs);
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

std::vector<at::Tensor> Scaled(std::vector<at::Tensor> tensors, double scale) {
  if (scale == 1) return tensors;
  for (at::Tensor& tensor : tensors) {
    if (!tensor.is_floating_point()) continue;
    const at::Tensor scaled = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options());
    tensor = scaled.copy_(tensor.to(at::kDouble).mul_(scale));
  }
  return tensors;
}

}  // namespace

RecordedCalls::RecordedCalls(const JobContext& context, const ReferenceResult& reference_result,
                             VisibleValues visible, const std::vector<int>& calls)
    : context_(context),
      reference_result_(reference_result),
      visible_(std::move(visible)),
      calls_(calls) {
  if (reference_result.has_buffers) {
    live_trials_ = calls;
    return;
  }
  for (int trial = 0; trial < static_cast<int>(visible_.inputs.size()); ++trial) {
    // A second call on other contents shows a program that keeps results of the first.
    if (trial <= 1 || !IsReplayed(trial)) live_trials_.push_back(trial);
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

std::vector<device::CallInputs> RecordedCalls::LiveCalls() const {
  std::vector<device::CallInputs> calls;
  for (const int trial : live_trials_) calls.push_back(InputsOf(trial));
  return calls;
}

int RecordedCalls::replayed_trials() const {
  if (reference_result_.has_buffers) return 1;
  int count = 1;
  while (count < static_cast<int>(visible_.inputs.size()) && IsReplayed(count)) ++count;
  return count;
}

absl::Status RecordedCalls::Take(const Value& output) {
  ASSIGN_OR_RETURN(output_, LeavesOfValue(output));
  return absl::OkStatus();
}

absl::Status RecordedCalls::Call(size_t call, const device::SessionResult& live,
                                 device::Session* session) {
  const int trial = calls_[call];
  size_t place = call;  // in the live calls
  if (!reference_result_.has_buffers) {
    place = std::find(live_trials_.begin(), live_trials_.end(), trial) - live_trials_.begin();
  }
  // The first call once more is a replay: whatever it does otherwise shows.
  const bool again = call == 1 && !reference_result_.has_buffers;
  if (place < live_trials_.size() && !again) {
    if (place >= live.outputs.size()) return absl::InternalError("a live call is missing");
    inputs_unchanged_ = live.inputs_unchanged[place];
    RETURN_IF_ERROR(Take(live.outputs[place]));
    if (call == 0) NoteAddresses(*session);
    return absl::OkStatus();
  }
  device::ReplayOptions options;
  options.inputs = TensorsOf(visible_.inputs[trial]);
  options.seed = context_.seeds.forward[trial];
  options.run.count = call == 1 && !context_.request.skip_timing();
  options.poison = call % 2 == 0 ? device::Poison::kOnes : device::Poison::kPattern;
  ASSIGN_OR_RETURN(device::ReplayResult replay, session->ReplayCall(options));
  if (!replay.run.counts.empty()) counts_ = replay.run.counts;
  if (call == 1) {  // a kernel may count its calls
    options.run.count = false;
    options.keeps_state = true;
    ASSIGN_OR_RETURN(replay, session->ReplayCall(options));
  }
  if (replay.run.reads_that_differ > 0) return OtherReads(trial);
  inputs_unchanged_ = replay.inputs_unchanged;
  return Take(replay.output);
}

absl::Status RecordedCalls::CheckReads(const device::SessionResult& live,
                                       device::Session* session) {
  if (!reference_result_.has_buffers || live.counts.reads == 0) return absl::OkStatus();
  for (int trial = 1; trial < static_cast<int>(visible_.inputs.size()); ++trial) {
    if (!IsReplayed(trial)) continue;
    device::ReplayOptions options;
    options.inputs = TensorsOf(visible_.inputs[trial]);
    const absl::StatusOr<device::ReplayResult> replay = session->ReplayCall(options);
    if (replay.ok() && replay->run.reads_that_differ > 0) return OtherReads(trial);
  }
  return absl::OkStatus();
}

bool RecordedCalls::OnlyCopies(device::Session* session) {
  // A kernel that changes nothing on positive numbers (relu) does on others.
  for (const double scale : {1.0, kOtherScale}) {
    device::ReplayOptions options;
    options.inputs = Scaled(TensorsOf(visible_.inputs[0]), scale);
    options.follow_copies = true;
    const absl::StatusOr<device::ReplayResult> replay = session->ReplayCall(options);
    if (!replay.ok() || replay->run.reads_that_differ > 0) return false;
    int64_t total = 0, by_kernels = 0;
    for (const device::TagCounts& counts : replay->provenance) {
      total += counts.total;
      for (const device::Tag tag : {device::Tag::kKernel, device::Tag::kSmall}) {
        by_kernels += counts.bytes[static_cast<size_t>(tag)];
      }
    }
    if (total == 0 || by_kernels > 0) return false;
  }
  return true;
}

absl::Status RecordedCalls::CountLaunches(device::Session* session) {
  if (!counts_.empty()) return absl::OkStatus();
  device::ReplayOptions options;
  options.inputs = TensorsOf(visible_.inputs[0]);
  options.run.count = true;
  ASSIGN_OR_RETURN(const device::ReplayResult replay, session->ReplayCall(options));
  counts_ = replay.run.counts;
  return absl::OkStatus();
}

void RecordedCalls::NoteAddresses(const device::Session& session) {
  const device::RecordedCall& call = session.recording().call;
  std::vector<TensorRef> outputs;
  AppendRefs(call.output, &outputs);
  SetAddresses(outputs, &output_.leaves);
  inputs_ = reference_result_.inputs[calls_[0]];
  SetAddresses(call.inputs, &inputs_);
}

OutputAccess RecordedCalls::access() {
  return AccessInMemory(context_.request, reference_result_,
                        [this] { return absl::string_view(output_.memory); });
}

int RecordedCalls::LineOf(absl::string_view kernel) const {
  const std::string& source = context_.request.candidate_source();
  const size_t place = source.find(absl::StrCat("def ", kernel, "("));
  if (place == std::string::npos) return 0;
  return 1 + static_cast<int>(std::count(source.begin(), source.begin() + place, '\n'));
}

std::vector<KernelLaunch> LaunchesOf(const device::Session& session) {
  std::vector<KernelLaunch> launches;
  for (const auto& command : session.recording().call.commands) {
    const auto* const made = std::get_if<LaunchCommand>(command.get());
    if (made == nullptr) continue;
    const device::KernelEntry* const kernel = session.kernels().Find(made->kernel);
    KernelLaunch& launch = launches.emplace_back();
    launch.set_name(kernel->name);
    launch.set_line(made->line);
    for (const int32_t size : made->grid) launch.add_grid(size);
    launch.set_num_warps(static_cast<int32_t>(kernel->num_warps));
    launch.set_num_stages(static_cast<int32_t>(kernel->num_stages));
    launch.set_shared_bytes(kernel->shared_bytes);
  }
  return launches;
}

std::vector<KernelLaunch> RecordedCalls::Launches(const device::Session& session) const {
  std::vector<KernelLaunch> launches = LaunchesOf(session);
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

std::string RecordedCalls::KernelNames(const device::Session& session) {
  kernels_.clear();
  for (const KernelLaunch& launch : LaunchesOf(session)) {
    if (std::find(kernels_.begin(), kernels_.end(), launch.name()) == kernels_.end()) {
      kernels_.push_back(launch.name());
    }
  }
  if (kernels_.size() > kMostNamed) kernels_.resize(kMostNamed);
  Json named = Json::array();
  for (const std::string& name : kernels_) {
    named.push_back(Json::array({name.substr(0, kMostText), LineOf(name)}));
  }
  return Json{{"kernels", std::move(named)}}.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::optional<std::string> RecordedCalls::AblatedCall(const std::string& order,
                                                      device::Session* session) {
  const Json json = Json::parse(order, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("ablate")) return std::nullopt;
  const Json& ablate = json["ablate"];
  const int trial = ablate.at("trial").get<int>();
  const Json& skip = ablate.at("skip");
  device::ReplayOptions options;
  options.inputs = Scaled(TensorsOf(visible_.inputs[trial]), ablate.at("scale").get<double>());
  options.seed = context_.seeds.forward[trial];
  options.poison =
      ablate.at("pattern").get<int>() == 0 ? device::Poison::kOnes : device::Poison::kPattern;
  options.deadline = absl::Now() + absl::Seconds(ablate.at("seconds").get<double>());
  options.run.skip = [&, session](const LaunchCommand& launch, int64_t) {
    if (skip.is_string()) return skip == "all";
    const size_t place = skip.get<size_t>();
    return place < kernels_.size() &&
           session->kernels().Find(launch.kernel)->name == kernels_[place];
  };
  const absl::StatusOr<device::ReplayResult> replay = session->ReplayCall(options);
  Json answer = {{"ablated", ablated_++},
                 {"output", nullptr},
                 {"raised", ""},
                 {"late", false},
                 {"left_out", 0}};
  if (!replay.ok()) {
    answer["late"] = absl::IsDeadlineExceeded(replay.status());
    answer["raised"] = Message(replay.status()).substr(0, kMostText);
  } else {
    answer["left_out"] = replay->run.left_out;
    const auto layout = LayoutOfValue(replay->output, &output_.memory);
    if (!layout.ok()) return std::nullopt;
    answer["output"] = *layout;
  }
  return answer.dump(-1, ' ', true, Json::error_handler_t::replace);
}

void RecordedCalls::Keep(const std::vector<Leaf>& output) { kept_.Keep({output, output_.memory}); }

bool RecordedCalls::IsSameAsKept(const std::vector<Leaf>& output) {
  return kept_.IsSame({output, output_.memory});
}

}  // namespace tritonrl
