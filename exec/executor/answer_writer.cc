#include "exec/executor/answer_writer.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "exec/executor/message_channel.h"

namespace tritonrl::executor {
namespace {

template <typename List>
void WriteCounts(const std::map<std::string, int64_t>& counts, List* list) {
  for (const auto& [name, count] : counts) {
    Count* const entry = list->Add();
    entry->set_name(name);
    entry->set_count(count);
  }
}

template <typename List>
void WriteProvenance(const std::vector<device::TagCounts>& provenance, List* list) {
  for (const device::TagCounts& counts : provenance) {
    Provenance* const entry = list->Add();
    for (const int64_t bytes : counts.bytes) entry->add_bytes(bytes);
    entry->set_converted(counts.converted);
    entry->set_total(counts.total);
  }
}

void WriteTraffic(const device::Traffic& traffic, Traffic* message) {
  for (const auto& [name, moved] : traffic.operators) {
    Count* const entry = message->add_operators();
    entry->set_name(name);
    entry->set_count(moved.calls);
    entry->set_bytes(moved.bytes);
    entry->set_flops(moved.flops);
  }
  message->set_neutral_bytes(traffic.neutral_bytes);
  message->set_kernel_bytes(traffic.kernel_bytes);
  message->set_fills_over_kernel_bytes(traffic.fills_over_kernel_bytes);
}

template <typename List>
void WriteIncidents(const std::vector<device::Incident>& incidents, List* list) {
  for (const device::Incident& incident : incidents) {
    Incident* const entry = list->Add();
    entry->set_phase(static_cast<uint32_t>(incident.phase));
    entry->set_text(incident.text.substr(0, kMaxAnswerText));
    entry->set_line(incident.line);
    entry->set_code(static_cast<int32_t>(incident.code));
  }
}

void WriteCommands(const device::CommandCounts& counts, CommandCounts* message) {
  WriteCounts(counts.init_operators, message->mutable_init_operators());
  WriteCounts(counts.forward_operators, message->mutable_forward_operators());
  message->set_init_commands(counts.init_commands);
  message->set_forward_commands(counts.forward_commands);
  message->set_bench_commands(counts.bench_commands);
  message->set_launches(counts.launches);
  message->set_benches(counts.benches);
  message->set_reads(counts.reads);
  WriteIncidents(counts.refusals, message->mutable_refusals());
  WriteIncidents(counts.kernel_errors, message->mutable_kernel_errors());
}

void WriteFindings(const device::LaunchFindings& findings, Findings* message) {
  message->set_complete(findings.complete);
  for (const device::Finding& finding : findings.list) {
    Finding* const entry = message->add_list();
    entry->set_kind(static_cast<uint32_t>(finding.kind));
    entry->set_kernel(finding.kernel);
    entry->set_place(finding.place);
    for (const int32_t number : finding.program) entry->add_program(number);
    entry->set_element(finding.element);
    entry->set_text(finding.text);
  }
}

void AddOutputs(const device::Value& value, Recording* message) {
  if (value.kind == device::Value::Kind::kTensor) {
    WriteTensorRef(value.tensor, message->add_outputs());
  }
  for (const device::Value& item : value.items) AddOutputs(item, message);
}

}  // namespace

absl::Status WriteSession(const device::SessionResult& result, ContentsPlacer* placer,
                          SessionResult* message) {
  for (const device::Value& output : result.outputs) {
    RETURN_IF_ERROR(WriteValue(output, placer, message->add_outputs()));
  }
  for (const bool unchanged : result.inputs_unchanged) message->add_inputs_unchanged(unchanged);
  message->set_host_output_bytes(result.host_output_bytes);
  WriteProvenance(result.provenance, message->mutable_provenance());
  WriteTraffic(result.traffic, message->mutable_traffic());
  if (result.failure.has_value()) {
    Failure* const failure = message->mutable_failure();
    failure->set_phase(result.failure->phase);
    failure->set_kind(result.failure->kind);
    failure->set_text(result.failure->text);
    failure->set_line(result.failure->line);
  }
  WriteCommands(result.counts, message->mutable_counts());
  WriteFindings(result.findings, message->mutable_findings());
  WriteCounts(result.of_weights, message->mutable_of_weights());
  message->set_state_tensors(result.state_tensors);
  message->set_state_matched(result.state_matched);
  message->set_lacking_bytes(result.lacking_bytes);
  for (const std::string& sentence : result.own_state) message->add_own_state(sentence);
  message->set_init_reads_that_differ(result.init_reads_that_differ);
  return absl::OkStatus();
}

void WriteRecording(const device::Session& session, Recording* message) {
  for (const device::KernelEntry& entry : session.kernels().entries()) {
    Kernel* const kernel = message->add_kernels();
    kernel->set_name(entry.name);
    kernel->set_num_warps(entry.options.num_warps);
    kernel->set_num_stages(entry.options.num_stages);
    kernel->set_shared_bytes(entry.shared_bytes);
  }
  const device::RecordedCall& call = session.recording().call;
  for (const auto& command : call.commands) {
    const auto* const launch = std::get_if<device::LaunchCommand>(command.get());
    if (launch == nullptr) continue;
    message->add_kernel(static_cast<int32_t>(launch->kernel));
    message->add_line(launch->line);
    for (const int32_t size : launch->grid) message->add_grid(size);
  }
  for (const device::TensorRef& input : call.inputs) WriteTensorRef(input, message->add_inputs());
  AddOutputs(call.output, message);
  message->set_state_tensors(static_cast<int64_t>(session.recording().state.size()));
}

absl::Status WriteReplayResult(const device::ReplayResult& result, ContentsPlacer* placer,
                               ReplayResult* message) {
  RETURN_IF_ERROR(WriteValue(result.output, placer, message->mutable_output()));
  WriteProvenance(result.provenance, message->mutable_provenance());
  WriteTraffic(result.traffic, message->mutable_traffic());
  message->set_inputs_unchanged(result.inputs_unchanged);
  message->set_launches(result.run.launches);
  message->set_left_out(result.run.left_out);
  message->set_reads_that_differ(result.run.reads_that_differ);
  for (const device::LaunchCounts& counts : result.run.counts) {
    for (const double number :
         {counts.load_bytes, counts.store_bytes, counts.atomic_bytes, counts.sector_bytes,
          counts.unique_bytes, counts.flops, counts.dot_flops, counts.tensor_flops}) {
      message->add_counts(number);
    }
  }
  return absl::OkStatus();
}

absl::Status WriteTimed(const std::vector<double>& milliseconds, const device::Value* output,
                        ContentsPlacer* placer, TimedReplays* message) {
  for (const double time : milliseconds) message->add_seconds(time * 1e-3);
  return output == nullptr ? absl::OkStatus()
                           : WriteValue(*output, placer, message->mutable_output());
}

void WriteGpu(const device::DeviceDescription& gpu, Ready* message) {
  message->set_device_name(gpu.name);
  for (const int64_t number : {int64_t{gpu.capability_major}, int64_t{gpu.capability_minor},
                               int64_t{gpu.multiprocessors}, gpu.shared_bytes, gpu.total_bytes}) {
    message->add_device_numbers(number);
  }
}

}  // namespace tritonrl::executor
