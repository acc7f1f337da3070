#include "exec/executor/request_message.h"

#include <string.h>

#include <type_traits>
#include <utility>

#include "base/status.h"

namespace tritonrl::executor {
namespace {

int64_t TimeToMessage(absl::Time time) {
  return time == absl::InfiniteFuture() ? 0 : std::max<int64_t>(1, absl::ToUnixNanos(time));
}

void WriteDevice(const device::DeviceDescription& device, Run* message) {
  message->set_device_name(device.name);
  for (const int64_t number :
       {int64_t{device.capability_major}, int64_t{device.capability_minor},
        int64_t{device.multiprocessors}, device.shared_bytes, device.total_bytes}) {
    message->add_device_numbers(number);
  }
}

absl::StatusOr<device::DeviceDescription> ReadDevice(const Run& message) {
  if (message.device_numbers_size() != 5) return absl::InvalidArgumentError("no device");
  device::DeviceDescription device;
  device.name = message.device_name();
  device.capability_major = static_cast<int>(message.device_numbers(0));
  device.capability_minor = static_cast<int>(message.device_numbers(1));
  device.multiprocessors = static_cast<int>(message.device_numbers(2));
  device.shared_bytes = message.device_numbers(3);
  device.total_bytes = message.device_numbers(4);
  return device;
}

// Both sides are of one build.
static_assert(std::is_trivially_copyable_v<device::SessionLimits>);

absl::Status ReadLimits(const std::string& bytes, device::SessionLimits* limits) {
  if (bytes.size() != sizeof(*limits)) return absl::InvalidArgumentError("no limits");
  memcpy(limits, bytes.data(), sizeof(*limits));
  return absl::OkStatus();
}

}  // namespace

absl::Time TimeOfMessage(int64_t nanoseconds) {
  return nanoseconds == 0 ? absl::InfiniteFuture() : absl::FromUnixNanos(nanoseconds);
}

absl::Status WriteOptions(const device::SessionOptions& options, ContentsPlacer* placer,
                          Run* message) {
  message->set_source(options.source);
  message->set_entry(options.entry);
  RETURN_IF_ERROR(WriteValue(options.init_args, placer, message->mutable_init_args()));
  RETURN_IF_ERROR(WriteValue(options.init_kwargs, placer, message->mutable_init_kwargs()));
  message->set_init_seed(options.init_seed);
  if (options.true_seed.has_value()) message->set_true_seed(*options.true_seed);
  if (options.told_seed.has_value()) message->set_told_seed(*options.told_seed);
  for (const device::CallInputs& call : options.calls) {
    CallInputs* const inputs = message->add_calls();
    RETURN_IF_ERROR(WriteValue(call.args, placer, inputs->mutable_args()));
    RETURN_IF_ERROR(WriteValue(call.kwargs, placer, inputs->mutable_kwargs()));
    inputs->set_seed(call.seed);
  }
  message->set_keeps_state(options.keeps_state);
  message->set_state_is_known(options.state_is_known);
  for (const auto& [name, tensor] : options.state) {
    NamedTensor* const entry = message->add_state();
    entry->set_name(name);
    ASSIGN_OR_RETURN(*entry->mutable_tensor(), WriteTensor(tensor, placer));
    const auto varied = options.varied.find(name);
    if (varied != options.varied.end()) entry->set_was(varied->second);
  }
  for (const std::string& name : options.also_allowed) message->add_also_allowed(name);
  message->set_may_compute(options.may_compute);
  message->set_check(options.check);
  message->set_is_program(options.is_program);
  message->set_wants_print(options.print != nullptr);
  WriteDevice(options.device, message);
  message->set_limits(&options.limits, sizeof(options.limits));
  message->set_threads(options.threads);
  message->set_deadline_ns(TimeToMessage(options.deadline));
  if (options.exchange != nullptr) {
    message->set_input_window_bytes(options.exchange->inputs->bytes());
    message->set_output_window_bytes(options.exchange->outputs->bytes());
  }
  return absl::OkStatus();
}

absl::StatusOr<device::SessionOptions> ReadOptions(const Run& message,
                                                   absl::Span<const Region> regions) {
  device::SessionOptions options;
  options.source = message.source();
  options.entry = message.entry();
  ASSIGN_OR_RETURN(options.init_args, ReadValue(message.init_args(), regions));
  ASSIGN_OR_RETURN(options.init_kwargs, ReadValue(message.init_kwargs(), regions));
  options.init_seed = message.init_seed();
  if (message.has_true_seed()) options.true_seed = message.true_seed();
  if (message.has_told_seed()) options.told_seed = message.told_seed();
  for (const CallInputs& inputs : message.calls()) {
    device::CallInputs& call = options.calls.emplace_back();
    ASSIGN_OR_RETURN(call.args, ReadValue(inputs.args(), regions));
    ASSIGN_OR_RETURN(call.kwargs, ReadValue(inputs.kwargs(), regions));
    call.seed = inputs.seed();
  }
  options.keeps_state = message.keeps_state();
  options.state_is_known = message.state_is_known();
  for (const NamedTensor& entry : message.state()) {
    ASSIGN_OR_RETURN(at::Tensor tensor, ReadTensor(entry.tensor(), regions));
    options.state.emplace_back(entry.name(), std::move(tensor));
    if (entry.has_was()) options.varied[entry.name()] = entry.was();
  }
  options.also_allowed.insert(message.also_allowed().begin(), message.also_allowed().end());
  options.may_compute = message.may_compute();
  options.check = message.check();
  options.is_program = message.is_program();
  ASSIGN_OR_RETURN(options.device, ReadDevice(message));
  RETURN_IF_ERROR(ReadLimits(message.limits(), &options.limits));
  options.threads = message.threads();
  options.deadline = TimeOfMessage(message.deadline_ns());
  return options;
}

absl::Status WriteReplay(const ReplayRequest& request, ContentsPlacer* placer, Replay* message) {
  for (const at::Tensor& input : request.inputs) {
    ASSIGN_OR_RETURN(*message->add_inputs(), WriteTensor(input, placer));
  }
  message->set_scale(request.scale);
  if (request.seed.has_value()) message->set_seed(*request.seed);
  message->set_skip_all(request.skipped.all);
  for (const std::string& name : request.skipped.kernels) message->add_skip_kernels(name);
  for (const int64_t number : request.skipped.numbers) message->add_skip_numbers(number);
  message->set_count(request.count);
  message->set_poison(static_cast<uint32_t>(request.poison));
  message->set_deadline_ns(TimeToMessage(request.deadline));
  message->set_keeps_state(request.keeps_state);
  message->set_follow_copies(request.follow_copies);
  message->set_copy_absolute(request.copy_tolerance.absolute);
  message->set_copy_relative(request.copy_tolerance.relative);
  message->set_copy_converts(request.copy_tolerance.converts);
  return absl::OkStatus();
}

void WriteTimeRequest(const TimeRequest& request, TimeReplays* message) {
  message->set_count(request.count);
  message->set_with_launches(request.with_launches);
  message->set_output(request.output);
  message->set_deadline_ns(TimeToMessage(request.deadline));
}

TimeRequest ReadTimeRequest(const TimeReplays& message) {
  TimeRequest request;
  request.count = message.count();
  request.with_launches = message.with_launches();
  request.output = message.output();
  request.deadline = TimeOfMessage(message.deadline_ns());
  return request;
}

absl::StatusOr<ReplayRequest> ReadReplay(const Replay& message, absl::Span<const Region> regions) {
  ReplayRequest request;
  for (const HostTensor& input : message.inputs()) {
    ASSIGN_OR_RETURN(at::Tensor tensor, ReadTensor(input, regions));
    request.inputs.push_back(std::move(tensor));
  }
  request.scale = message.scale();
  if (message.has_seed()) request.seed = message.seed();
  request.skipped.all = message.skip_all();
  request.skipped.kernels.insert(message.skip_kernels().begin(), message.skip_kernels().end());
  request.skipped.numbers.insert(message.skip_numbers().begin(), message.skip_numbers().end());
  request.count = message.count();
  request.poison = static_cast<device::Poison>(message.poison());
  request.deadline = TimeOfMessage(message.deadline_ns());
  request.keeps_state = message.keeps_state();
  request.follow_copies = message.follow_copies();
  request.copy_tolerance = {message.copy_absolute(), message.copy_relative(),
                            message.copy_converts()};
  return request;
}

}  // namespace tritonrl::executor
