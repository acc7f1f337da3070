#include "exec/reference/reference_runner.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "exec/device_backend.h"
#include "exec/outcome/classify_outcome.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

// Size limit for layouts of memory in a reference process, whose true size is unknown here.
constexpr uint64_t kElsewhere = uint64_t{1} << 62;

// Parses layouts of one memory and keeps the end offset of their last tensor.
class MemoryReader {
 public:
  explicit MemoryReader(uint64_t bytes) : bytes_(bytes) {}

  absl::StatusOr<std::vector<Leaf>> Read(const Json& layout) {
    ASSIGN_OR_RETURN(std::vector<Leaf> leaves, ParseLayout(layout, bytes_));
    for (const Leaf& leaf : leaves) {
      if (!leaf.offset.has_value()) continue;
      end_ = std::max(end_, *leaf.offset + static_cast<uint64_t>(leaf.bytes()));
    }
    return leaves;
  }
  uint64_t end() const { return end_; }

 private:
  const uint64_t bytes_;
  uint64_t end_ = 0;
};

// Reads the member "precise" of a call whose output has `count` leaves.
absl::Status ReadExact(const Json& json, size_t count, MemoryReader* hidden,
                       ReferenceResult* result) {
  ASSIGN_OR_RETURN(const std::vector<Leaf> exact, hidden->Read(json.at("exact")));
  ASSIGN_OR_RETURN(const std::vector<Leaf> slack, hidden->Read(json.at("slack")));
  const Json& limits = json.at("limits");
  if (exact.size() != count || slack.size() != count || limits.size() != count) {
    return absl::InvalidArgumentError("the reference's float64 results do not match its outputs");
  }
  std::vector<std::optional<ExactLeaf>> leaves(count);
  for (size_t i = 0; i < count; ++i) {
    if (exact[i].kind != Leaf::Kind::kTensor || slack[i].kind != Leaf::Kind::kTensor) continue;
    leaves[i] =
        ExactLeaf{exact[i], slack[i], limits[i].at(0).get<double>(), limits[i].at(1).get<double>()};
  }
  result->exact.push_back(std::move(leaves));
  for (const Json& note : json.at("notes")) {
    std::string text = note.get<std::string>();
    auto& notes = result->notes;
    if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
  }
  return absl::OkStatus();
}

// Reads the layouts of inputs, arguments and state, which are in the visible memory.
absl::Status ReadVisible(const Json& json, const ExecRequest& request, ReferenceResult* result) {
  MemoryReader memory(result->visible.bytes());
  MemoryReader window(result->shared_buffers.in_bytes);
  for (const Json& inputs : json.at("inputs")) {
    ASSIGN_OR_RETURN(std::vector<Leaf> leaves,
                     (result->has_memory() ? memory : window).Read(inputs));
    result->inputs.push_back(std::move(leaves));
  }
  // Only checked: candidates get these layouts unchanged.
  for (const char* part : {"arguments", "state"}) {
    RETURN_IF_ERROR(memory.Read(json.at(part)).status());
  }
  const int trials = static_cast<int>(result->inputs.size()), random = TrialsOf(request);
  if (trials < random || trials > random + MaxVariants(request)) {
    return absl::InvalidArgumentError("the reference made other inputs than it was asked for");
  }
  result->visible_layout = json.dump();
  if (result->visible.fd() < 0) return absl::OkStatus();  // nobody asked for its memory
  RETURN_IF_ERROR(result->visible.Seal());
  return result->visible.Map(memory.end()).status();
}

// Reads the layouts of each call's results, which are in the hidden memory.
absl::Status ReadHidden(const Json& json, const ExecRequest& request, ReferenceResult* result) {
  const bool elsewhere = !result->has_memory();
  MemoryReader memory(elsewhere ? kElsewhere : result->hidden.bytes());
  const std::vector<int> calls = CallsOf(static_cast<int>(result->inputs.size()));
  if (json.size() != calls.size()) {
    return absl::InvalidArgumentError("the reference made other calls than it was asked for");
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    const Json& call = json[i];
    if (call.at("trial") != calls[i]) {
      return absl::InvalidArgumentError("the reference made other calls than it was asked for");
    }
    ASSIGN_OR_RETURN(std::vector<Leaf> leaves, memory.Read(call.at("output")));
    if (request.rules() == RULES_ROBUST) {
      RETURN_IF_ERROR(ReadExact(call.at("precise"), leaves.size(), &memory, result));
    }
    result->outputs.push_back(std::move(leaves));
    if (!call.contains("probes")) continue;
    for (const auto& [name, layout] : call.at("probes").items()) {
      std::vector<std::optional<std::vector<Leaf>>>& of_calls = result->probes[name];
      of_calls.resize(calls.size());
      if (layout.is_null()) continue;
      ASSIGN_OR_RETURN(of_calls[i], memory.Read(layout));
    }
  }
  if (elsewhere) return absl::OkStatus();
  RETURN_IF_ERROR(result->hidden.Seal());
  return result->hidden.Map(memory.end()).status();
}

absl::Status ReadSize(const Json& json, const char* name, uint64_t* bytes) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number_unsigned()) {
    return absl::InvalidArgumentError(absl::StrCat("the reference does not tell its ", name));
  }
  *bytes = found->get<uint64_t>();
  return absl::OkStatus();
}

// Reads the sizes of windows and of a call from a reference process's result object.
absl::Status ReadSharedBufferSizes(const Json& json, SharedBufferSizes* shared_buffers) {
  uint64_t call = 0, device = 0;
  RETURN_IF_ERROR(ReadSize(json, "in_bytes", &shared_buffers->in_bytes));
  RETURN_IF_ERROR(ReadSize(json, "out_bytes", &shared_buffers->out_bytes));
  RETURN_IF_ERROR(ReadSize(json, "call_bytes", &call));
  RETURN_IF_ERROR(ReadSize(json, "device_bytes", &device));
  shared_buffers->call_bytes = static_cast<int64_t>(call);
  shared_buffers->device_bytes = static_cast<int64_t>(device);
  return absl::OkStatus();
}

// Reads the description of a reference's memory from its result object.
absl::Status ReadMemory(const Json& json, const ExecRequest& request, ReferenceResult* result) {
  if (result->session != nullptr)
    RETURN_IF_ERROR(ReadSharedBufferSizes(json, &result->shared_buffers));
  RETURN_IF_ERROR(ReadVisible(json.at("visible"), request, result));
  RETURN_IF_ERROR(ReadHidden(json.at("calls"), request, result));
  for (const Json& name : json.at("trials")) {
    result->trial_names.push_back(name.get<std::string>());
  }
  for (const Json& sentence : json.at("left_out")) {
    result->left_out.push_back(sentence.get<std::string>());
  }
  if (result->trial_names.size() != result->inputs.size()) {
    return absl::InvalidArgumentError("the reference did not name its trials");
  }
  result->shares_memory = json.at("shares_memory").get<bool>();
  result->mutates_inputs = json.at("mutates_inputs").get<bool>();
  result->has_buffers = json.at("has_buffers").get<bool>();
  return absl::OkStatus();
}

// Gets the memories that a reference process has made for this task.
absl::Status TakeMemory(const ExecLimits& limits, absl::Time deadline, ReferenceResult* result) {
  std::vector<int> fds;
  const absl::StatusOr<Json> exported = result->session->Ask(
      {{"export", true}}, "exported",
      {.deadline = deadline, .answer_timeout = absl::Seconds(limits.wall_seconds()), .fds = &fds});
  if (exported.ok() && fds.size() == 2) {
    auto visible = SharedMemory::Adopt(fds[0]);
    auto hidden = SharedMemory::Adopt(fds[1]);
    RETURN_IF_ERROR(visible.status());
    RETURN_IF_ERROR(hidden.status());
    result->visible = *std::move(visible);
    result->hidden = *std::move(hidden);
    return absl::OkStatus();
  }
  for (const int fd : fds) close(fd);
  RETURN_IF_ERROR(exported.status());
  return absl::InternalError("the reference's process hands over other memories");
}

// Runs the reference once: in a reference process if the context has them, else in a separate job
// that ends with its result.
absl::Status RunOnce(const JobContext& context, WorkerPool* pool, const ExecLimits& limits,
                     absl::Time deadline, JobReport* report, ReferenceResult* result) {
  if (context.reference_processes != nullptr) {
    *report = context.reference_processes->Make(ReferenceJobJson(context), limits, deadline,
                                                &result->session);
    if (context.host_memory_bytes > 0 && result->session != nullptr) {
      return TakeMemory(limits, deadline, result);
    }
    return absl::OkStatus();
  }
  const uint64_t size = static_cast<uint64_t>(limits.memory_bytes());
  ASSIGN_OR_RETURN(result->visible, SharedMemory::Create("visible", size));
  ASSIGN_OR_RETURN(result->hidden, SharedMemory::Create("hidden", size));
  *report = pool->Run(ReferenceJobJson(context), limits, deadline,
                      {{"visible", result->visible.fd()}, {"hidden", result->hidden.fd()}});
  return absl::OkStatus();
}

}  // namespace

int64_t ReferenceResult::bytes() const {
  return visible.resident_bytes() + hidden.resident_bytes() +
         static_cast<int64_t>(sizeof(*this) + visible_layout.size() + run.ByteSizeLong());
}

Tolerance ReferenceResult::ToleranceOf(const ExecRequest& request, size_t call) const {
  Tolerance tolerance;
  if (request.atol() != 0 || request.rtol() != 0) {
    tolerance.atol = request.atol();
    tolerance.rtol = request.rtol();
  }
  if (call < exact.size()) tolerance.exact = &exact[call];
  return tolerance;
}

double ReferenceResult::MinBytesMoved() const {
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

double ReferenceResult::MinOperations() const {
  double elements = 0;
  for (const Leaf& leaf : outputs.empty() ? std::vector<Leaf>() : outputs[0]) {
    if (leaf.kind == Leaf::Kind::kTensor) elements += static_cast<double>(leaf.distinct_elements);
  }
  return elements;
}

int64_t SharedBufferSizes::CandidateBytes(int64_t inputs, int64_t outputs) const {
  constexpr int64_t kContext = int64_t{5} << 28;  // context, and the buffer that flushes the L2
  const int64_t call = inputs + std::max(outputs, call_bytes);
  return kContext + static_cast<int64_t>(in_bytes) + static_cast<int64_t>(out_bytes) + 3 * call +
         call_bytes;
}

namespace {

// Of the first of these lists.
int64_t BytesOfFirst(const std::vector<std::vector<Leaf>>& lists) {
  int64_t bytes = 0;
  for (const Leaf& leaf : lists.empty() ? std::vector<Leaf>() : lists[0]) {
    if (leaf.kind == Leaf::Kind::kTensor) bytes += leaf.bytes();
  }
  return bytes;
}

}  // namespace

int64_t ReferenceResult::CandidateBytes() const {
  return shared_buffers.CandidateBytes(BytesOfFirst(inputs), BytesOfFirst(outputs));
}

int64_t ReferenceResult::CallBytes() const {
  const auto shown = static_cast<int64_t>(visible.view().size());  // weights; inputs if in memory
  return shown + (has_memory() ? 0 : BytesOfFirst(inputs)) +
         std::max(BytesOfFirst(outputs), shared_buffers.call_bytes);
}

absl::StatusOr<WorkerPoolOptions> ReferencePoolOptions(WorkerPoolOptions options) {
  for (const char* file : {"exec/python/oracle_worker.py", "exec/compare/python/compare.py"}) {
    ASSIGN_OR_RETURN(const std::string path, Runfile(file));
    options.extra_python_dirs.push_back(DirName(path));
  }
  options.runner = "oracle_worker";
  options.python_packages.clear();
  options.cores = 0;  // references are trusted, and their operators use all cores
  return options;
}

std::shared_ptr<ReferenceResult> RunReference(const JobContext& context, WorkerPool* pool,
                                              const ExecLimits& limits, absl::Time deadline) {
  auto result = std::make_shared<ReferenceResult>();
  JobReport report;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const absl::Status made = RunOnce(context, pool, limits, deadline, &report, result.get());
    if (!made.ok()) {
      SetOutcome(Outcome::INTERNAL_ERROR, Message(made), result->run.mutable_outcome());
      return result;
    }
    if (report.end != JobEnd::kWorkerDied || report.out_of_memory) break;
  }
  std::string text;
  result->run = Classify(report, limits, JobRole::kReference, &text);
  if (report.end == JobEnd::kWorkerDied && !report.out_of_memory) {
    SetOutcome(Outcome::REFERENCE_FAILED,
               absl::StrCat("its worker died under the reference twice: ", report.detail),
               result->run.mutable_outcome());
  }
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!result->ok()) {
    result->session = nullptr;
    result->out_of_memory = json.is_object() && json.value("out_of_memory", false);
    return result;
  }
  absl::Status read;
  try {
    read = ReadMemory(json, context.request, result.get());
  } catch (const Json::exception& error) {
    read =
        absl::InvalidArgumentError(absl::StrCat("the reference runner's result: ", error.what()));
  }
  if (!read.ok()) {
    SetOutcome(Outcome::REFERENCE_FAILED, Message(read), result->run.mutable_outcome());
    result->session = nullptr;
  }
  return result;
}

}  // namespace tritonrl
