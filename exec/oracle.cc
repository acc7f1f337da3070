#include "exec/oracle.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/classify.h"
#include "exec/device_backend.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

void Fail(ExecOutcome outcome, const std::string& message, OracleResult* result) {
  result->run.set_outcome(outcome);
  result->run.set_fault(FaultOf(outcome));
  result->run.set_message(message);
}

// Where the last of these tensors ends in its memory.
uint64_t End(const std::vector<std::vector<Leaf>>& values) {
  uint64_t end = 0;
  for (const std::vector<Leaf>& leaves : values) {
    for (const Leaf& leaf : leaves) {
      if (!leaf.offset.has_value()) continue;
      end = std::max(end, *leaf.offset + static_cast<uint64_t>(leaf.bytes()));
    }
  }
  return end;
}

// The part of an oracle's result object that describes its memory.
absl::Status ReadMemory(const Json& json, const std::vector<int>& calls, OracleResult* result) {
  const Json& visible = json.at("visible");
  for (const Json& inputs : visible.at("inputs")) {
    ASSIGN_OR_RETURN(std::vector<Leaf> leaves, ParseLayout(inputs, result->visible.bytes()));
    result->inputs.push_back(std::move(leaves));
  }
  // Only looked at; candidates get them as they are.
  for (const char* part : {"arguments", "state"}) {
    RETURN_IF_ERROR(ParseLayout(visible.at(part), result->visible.bytes()).status());
  }
  const Json& made = json.at("calls");
  for (size_t i = 0; i < made.size(); ++i) {
    if (i >= calls.size() || made[i].at("trial") != calls[i]) break;
    ASSIGN_OR_RETURN(std::vector<Leaf> leaves,
                     ParseLayout(made[i].at("output"), result->hidden.bytes()));
    result->outputs.push_back(std::move(leaves));
  }
  const int trials = *std::max_element(calls.begin(), calls.end()) + 1;
  if (result->outputs.size() != calls.size() || made.size() != calls.size() ||
      result->inputs.size() != static_cast<size_t>(trials)) {
    return absl::InvalidArgumentError("the oracle made other calls than it was asked for");
  }
  result->visible_layout = visible.dump();
  result->mutates_inputs = json.at("mutates_inputs").get<bool>();
  result->has_buffers = json.at("has_buffers").get<bool>();
  const Json& rate = json.at("bytes_per_second");
  if (rate.is_number()) result->bytes_per_second = rate.get<double>();
  RETURN_IF_ERROR(result->visible.Seal());
  RETURN_IF_ERROR(result->hidden.Seal());
  RETURN_IF_ERROR(result->visible.Map(End(result->inputs)).status());
  return result->hidden.Map(End(result->outputs)).status();
}

absl::Status RunOnce(const JobContext& context, WorkerPool* pool, const ExecLimits& limits,
                     absl::Time deadline, JobReport* report, OracleResult* result) {
  const uint64_t size = static_cast<uint64_t>(limits.memory_bytes());
  ASSIGN_OR_RETURN(result->visible, SharedMemory::Create("visible", size));
  ASSIGN_OR_RETURN(result->hidden, SharedMemory::Create("hidden", size));
  *report = pool->Run(OracleJobJson(context), limits, deadline,
                      {{"visible", result->visible.fd()}, {"hidden", result->hidden.fd()}});
  return absl::OkStatus();
}

}  // namespace

int64_t OracleResult::bytes() const {
  return visible.resident_bytes() + hidden.resident_bytes() +
         static_cast<int64_t>(sizeof(*this) + visible_layout.size() + run.ByteSizeLong());
}

double OracleResult::CompulsoryBytes() const {
  double moved = 0;
  if (!inputs.empty()) {
    for (const Leaf& leaf : inputs[0]) {
      if (leaf.kind == Leaf::Kind::kTensor) moved += leaf.distinct_elements * SizeOf(leaf.type);
    }
  }
  if (!outputs.empty()) {
    for (const Leaf& leaf : outputs[0]) {
      if (leaf.kind == Leaf::Kind::kTensor) moved += leaf.distinct_elements * SizeOf(leaf.type);
    }
  }
  double reference = 0;
  for (const AtenOp& op : run.reference_ops()) reference += op.bytes();
  return std::min(moved, reference);
}

double OracleResult::LeastOperations() const {
  double elements = 0;
  for (const Leaf& leaf : outputs.empty() ? std::vector<Leaf>() : outputs[0]) {
    if (leaf.kind == Leaf::Kind::kTensor) elements += static_cast<double>(leaf.distinct_elements);
  }
  return elements;
}

std::shared_ptr<const OracleResult> RunOracle(const JobContext& context, WorkerPool* pool,
                                              const ExecLimits& limits, absl::Time deadline) {
  auto result = std::make_shared<OracleResult>();
  JobReport report;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (absl::Status made = RunOnce(context, pool, limits, deadline, &report, result.get());
        !made.ok()) {
      Fail(EXEC_INTERNAL_ERROR, Message(made), result.get());
      return result;
    }
    if (report.end != JobEnd::kWorkerDied || report.out_of_memory) break;
  }
  std::string text;
  result->run = Classify(report, limits, JobRole::kOracle, &text);
  if (report.end == JobEnd::kWorkerDied && !report.out_of_memory) {
    Fail(EXEC_REFERENCE_FAILED,
         absl::StrCat("its worker died under the reference twice: ", report.detail), result.get());
  }
  if (!result->ok()) return result;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  absl::Status read;
  try {
    read = ReadMemory(json, CallsOf(TrialsOf(context.request)), result.get());
  } catch (const Json::exception& error) {
    read = absl::InvalidArgumentError(absl::StrCat("the oracle's result: ", error.what()));
  }
  if (!read.ok()) Fail(EXEC_REFERENCE_FAILED, Message(read), result.get());
  return result;
}

}  // namespace tritonrl
