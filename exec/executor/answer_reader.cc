#include "exec/executor/answer_reader.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/executor/message_channel.h"

namespace tritonrl::executor {
namespace {

// Sums of such numbers do not overflow: a message has fewer than 2^18 of each kind.
constexpr int64_t kMaxNumber = int64_t{1} << 44;
constexpr int kMaxListed = 1 << 18;
constexpr double kMaxCount = 1e18;
constexpr double kMostSeconds = 1e5;  // of one replay
constexpr size_t kMaxName = 1'000;
constexpr size_t kMostSentences = 16;
constexpr int kCounts = 8;  // numbers of LaunchCounts

absl::Status Nonsense(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("an answer has ", what));
}

std::string Cut(const std::string& text, size_t most) { return text.substr(0, most); }

// Reads numbers, and keeps whether all of them can be.
class Numbers {
 public:
  int64_t operator()(int64_t number) {
    good_ = good_ && number >= 0 && number <= kMaxNumber;
    return good_ ? number : 0;
  }
  double Count(double number) {
    good_ = good_ && std::isfinite(number) && number >= 0 && number <= kMaxCount;
    return good_ ? number : 0;
  }
  absl::Status status() const {
    return good_ ? absl::OkStatus() : Nonsense("a number that cannot be");
  }

 private:
  bool good_ = true;
};

template <typename List>
std::map<std::string, int64_t> ReadCounts(const List& list, Numbers* numbers) {
  std::map<std::string, int64_t> counts;
  for (const Count& entry : list) counts[Cut(entry.name(), kMaxName)] = (*numbers)(entry.count());
  return counts;
}

template <typename List>
absl::StatusOr<std::vector<device::TagCounts>> ReadProvenance(const List& list) {
  if (list.size() > kMaxListed) return Nonsense("too many tensors");
  std::vector<device::TagCounts> provenance;
  Numbers number;
  for (const Provenance& entry : list) {
    if (entry.bytes_size() != device::kTags) return Nonsense("other tags");
    device::TagCounts& counts = provenance.emplace_back();
    for (int tag = 0; tag < device::kTags; ++tag) counts.bytes[tag] = number(entry.bytes(tag));
    counts.converted = number(entry.converted());
    counts.total = number(entry.total());
  }
  RETURN_IF_ERROR(number.status());
  return provenance;
}

device::Traffic ReadTraffic(const Traffic& message, Numbers* number) {
  device::Traffic traffic;
  for (const Count& entry : message.operators()) {
    const bool is_number = entry.flops() >= 0 && entry.flops() < kMaxCount;
    traffic.operators[Cut(entry.name(), kMaxName)] = {
        (*number)(entry.count()), (*number)(entry.bytes()), is_number ? entry.flops() : 0};
  }
  traffic.neutral_bytes = (*number)(message.neutral_bytes());
  traffic.kernel_bytes = (*number)(message.kernel_bytes());
  traffic.fills_over_kernel_bytes = (*number)(message.fills_over_kernel_bytes());
  return traffic;
}

template <typename List>
std::vector<device::Incident> ReadIncidents(const List& list, Numbers* number) {
  std::vector<device::Incident> incidents;
  for (const Incident& entry : list) {
    device::Incident& incident = incidents.emplace_back();
    incident.phase = entry.phase() == 0 ? device::Phase::kInit : device::Phase::kForward;
    incident.text = Cut(entry.text(), kMaxAnswerText);
    incident.line = static_cast<int>((*number)(entry.line()));
    incident.code = static_cast<absl::StatusCode>(entry.code());  // is only compared
  }
  return incidents;
}

device::CommandCounts ReadCommands(const CommandCounts& message, Numbers* number) {
  device::CommandCounts counts;
  counts.init_operators = ReadCounts(message.init_operators(), number);
  counts.forward_operators = ReadCounts(message.forward_operators(), number);
  counts.init_commands = (*number)(message.init_commands());
  counts.forward_commands = (*number)(message.forward_commands());
  counts.bench_commands = (*number)(message.bench_commands());
  counts.launches = (*number)(message.launches());
  counts.benches = (*number)(message.benches());
  counts.reads = (*number)(message.reads());
  counts.refusals = ReadIncidents(message.refusals(), number);
  counts.kernel_errors = ReadIncidents(message.kernel_errors(), number);
  return counts;
}

absl::StatusOr<device::LaunchFindings> ReadFindings(const Findings& message) {
  device::LaunchFindings findings;
  findings.complete = message.complete();
  if (message.list_size() > static_cast<int>(ttir::kMaxFindings)) return Nonsense("many findings");
  for (const Finding& entry : message.list()) {
    device::Finding& finding = findings.list.emplace_back();
    if (entry.kind() > static_cast<uint32_t>(device::Finding::Kind::kHistogram) ||
        entry.program_size() != static_cast<int>(finding.program.size())) {
      return Nonsense("a finding that cannot be");
    }
    finding.kind = static_cast<device::Finding::Kind>(entry.kind());
    finding.kernel = Cut(entry.kernel(), kMaxName);
    finding.place = Cut(entry.place(), kMaxAnswerText);
    for (size_t i = 0; i < finding.program.size(); ++i) {
      finding.program[i] = entry.program(static_cast<int>(i));
    }
    finding.element = entry.element();
    finding.text = Cut(entry.text(), kMaxAnswerText);
  }
  return findings;
}

device::Failure ReadFailure(const Failure& message, Numbers* number) {
  return {Cut(message.phase(), 16), Cut(message.kind(), kMaxName),
          Cut(message.text(), kMaxAnswerText), static_cast<int>((*number)(message.line()))};
}

}  // namespace

// Whoever copies its tensors needs as much memory as they have elements.
absl::StatusOr<device::Value> ReadOutput(const Value& message, const AnswerBounds& bounds,
                                         absl::Span<const Region> regions) {
  ASSIGN_OR_RETURN(device::Value output, ReadValue(message, regions));
  int64_t bytes = 0;
  RETURN_IF_ERROR(device::ForEachTensor(output, [&](const device::Value& leaf) -> absl::Status {
    if (leaf.kind != device::Value::Kind::kHost) return Nonsense("an output that is elsewhere");
    if (!leaf.host.is_contiguous()) return Nonsense("an output that is not dense");
    const auto more = static_cast<int64_t>(leaf.host.nbytes());  // they are within a region
    if (more > bounds.output_bytes - bytes) return Nonsense("a larger output than was allowed");
    bytes += more;
    return absl::OkStatus();
  }));
  return output;
}

absl::StatusOr<device::SessionResult> ReadSession(const SessionResult& message,
                                                  const AnswerBounds& bounds,
                                                  absl::Span<const Region> regions) {
  const auto outputs = static_cast<size_t>(message.outputs_size());
  if (outputs > bounds.calls || (outputs < bounds.calls && !message.has_failure()) ||
      message.inputs_unchanged_size() != message.outputs_size()) {
    return Nonsense("another number of outputs than calls");
  }
  device::SessionResult result;
  for (const Value& output : message.outputs()) {
    ASSIGN_OR_RETURN(device::Value value, ReadOutput(output, bounds, regions));
    result.outputs.push_back(std::move(value));
  }
  result.inputs_unchanged.assign(message.inputs_unchanged().begin(),
                                 message.inputs_unchanged().end());
  Numbers number;
  result.host_output_bytes = number(message.host_output_bytes());
  ASSIGN_OR_RETURN(result.provenance, ReadProvenance(message.provenance()));
  result.traffic = ReadTraffic(message.traffic(), &number);
  if (message.has_failure()) result.failure = ReadFailure(message.failure(), &number);
  result.counts = ReadCommands(message.counts(), &number);
  ASSIGN_OR_RETURN(result.findings, ReadFindings(message.findings()));
  result.of_weights = ReadCounts(message.of_weights(), &number);
  result.state_tensors = number(message.state_tensors());
  result.state_matched = number(message.state_matched());
  result.lacking_bytes = number(message.lacking_bytes());
  for (const std::string& sentence : message.own_state()) {
    if (result.own_state.size() < kMostSentences)
      result.own_state.push_back(Cut(sentence, kMaxAnswerText));
  }
  result.init_reads_that_differ = number(message.init_reads_that_differ());
  RETURN_IF_ERROR(number.status());
  return result;
}

absl::StatusOr<RecordingSummary> ReadRecording(const Recording& message, int64_t most_launches) {
  RecordingSummary recording;
  const int launches = message.kernel_size();
  if (launches > most_launches || message.line_size() != launches ||
      message.grid_size() != 3 * launches) {
    return Nonsense("launches that cannot be");
  }
  Numbers number;
  for (int i = 0; i < launches; ++i) {
    const int32_t which = message.kernel(i);
    if (which < 0 || which >= message.kernels_size()) return Nonsense("an unknown kernel");
    const Kernel& kernel = message.kernels(which);
    RecordedLaunch& launch = recording.launches.emplace_back();
    launch.kernel = Cut(kernel.name(), kMaxName);
    launch.line = static_cast<int>(number(message.line(i)));
    for (int axis = 0; axis < 3; ++axis) {
      launch.grid[axis] = static_cast<int32_t>(number(message.grid(3 * i + axis)));
    }
    launch.num_warps = number(kernel.num_warps());
    launch.num_stages = number(kernel.num_stages());
    launch.shared_bytes = number(kernel.shared_bytes());
  }
  for (const DeviceTensor& input : message.inputs()) {
    ASSIGN_OR_RETURN(device::TensorRef tensor, ReadTensorRef(input));
    recording.inputs.push_back(std::move(tensor));
  }
  for (const DeviceTensor& output : message.outputs()) {
    ASSIGN_OR_RETURN(device::TensorRef tensor, ReadTensorRef(output));
    recording.outputs.push_back(std::move(tensor));
  }
  recording.state_tensors = number(message.state_tensors());
  RETURN_IF_ERROR(number.status());
  return recording;
}

absl::StatusOr<device::ReplayResult> ReadReplayResult(const ReplayResult& message,
                                                      const AnswerBounds& bounds,
                                                      absl::Span<const Region> regions) {
  device::ReplayResult result;
  ASSIGN_OR_RETURN(result.output, ReadOutput(message.output(), bounds, regions));
  ASSIGN_OR_RETURN(result.provenance, ReadProvenance(message.provenance()));
  Numbers number;
  result.traffic = ReadTraffic(message.traffic(), &number);
  result.inputs_unchanged = message.inputs_unchanged();
  result.run.launches = number(message.launches());
  result.run.left_out = number(message.left_out());
  result.run.reads_that_differ = number(message.reads_that_differ());
  if (static_cast<size_t>(message.counts_size()) !=
      (bounds.counted ? bounds.launches * kCounts : 0)) {
    return Nonsense("counts of other launches");
  }
  for (int i = 0; i + kCounts <= message.counts_size(); i += kCounts) {
    device::LaunchCounts& counts = result.run.counts.emplace_back();
    double* const fields[kCounts] = {
        &counts.load_bytes,   &counts.store_bytes, &counts.atomic_bytes, &counts.sector_bytes,
        &counts.unique_bytes, &counts.flops,       &counts.dot_flops,    &counts.tensor_flops};
    for (int field = 0; field < kCounts; ++field) {
      *fields[field] = number.Count(message.counts(i + field));
    }
  }
  RETURN_IF_ERROR(number.status());
  return result;
}

absl::StatusOr<tritonrl::TimedReplays> ReadTimed(const TimedReplays& message,
                                                 const TimeRequest& request,
                                                 const AnswerBounds& bounds,
                                                 absl::Span<const Region> regions) {
  tritonrl::TimedReplays timed;
  if (message.seconds_size() != (request.with_launches ? 1 : request.count) ||
      message.has_output() != request.output) {
    return Nonsense("times of other replays");
  }
  for (const double seconds : message.seconds()) {
    if (!(seconds > 0 && seconds < kMostSeconds)) return Nonsense("a time that cannot be");
    timed.seconds.push_back(seconds);
  }
  if (request.output) {
    ASSIGN_OR_RETURN(timed.output, ReadOutput(message.output(), bounds, regions));
  }
  return timed;
}

absl::StatusOr<std::optional<device::DeviceDescription>> ReadGpu(const Ready& message) {
  if (message.device_numbers_size() == 0) return std::nullopt;
  if (message.device_numbers_size() != 5) return Nonsense("no device");
  Numbers number;
  device::DeviceDescription gpu;
  gpu.name = Cut(message.device_name(), kMaxName);
  gpu.capability_major = static_cast<int>(number(message.device_numbers(0)));
  gpu.capability_minor = static_cast<int>(number(message.device_numbers(1)));
  gpu.multiprocessors = static_cast<int>(number(message.device_numbers(2)));
  gpu.shared_bytes = number(message.device_numbers(3));
  gpu.total_bytes = number(message.device_numbers(4));
  RETURN_IF_ERROR(number.status());
  return gpu;
}

absl::Status ReadStatus(const Answer& message) {
  if (message.code() == 0) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(message.code());
  const std::string text = Cut(message.error(), kMaxAnswerText);
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnknown:
      return absl::Status(code, text);
    default:
      return absl::InternalError(text);
  }
}

}  // namespace tritonrl::executor
