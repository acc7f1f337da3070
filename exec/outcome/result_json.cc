#include "exec/outcome/result_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "exec/device_backend.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxText = 4000;
constexpr size_t kMaxItems = 4096;  // launches, operators
constexpr int kMaxArguments = 64;   // of a launch
constexpr int kMaxOwnParameters = 8;

// The first kMaxText bytes of a text, cut between two characters, as Protobuf requires valid UTF-8.
std::string Prefix(const std::string& text) {
  size_t end = std::min(text.size(), kMaxText);
  while (end > 0 && end < text.size() && (text[end] & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

// Reads the fields of one object. The first error is kept in `status`; later reads return defaults.
class Fields {
 public:
  Fields(const Json& object, const std::string& where, absl::Status* status)
      : object_(object), where_(where), status_(status) {
    if (!object.is_object()) Fail("an object");
  }

  std::string Text(const char* name) const {
    const Json* value = Find(name);
    if (value == nullptr) return "";
    if (!value->is_string()) return Fail("a string", name), "";
    return Prefix(value->get<std::string>());
  }
  double Number(const char* name) const {
    const Json* value = Find(name);
    if (value == nullptr) return 0;
    if (!value->is_number()) return Fail("a number", name), 0;
    return value->get<double>();
  }
  int64_t Integer(const char* name) const {
    const double value = Number(name);
    if (std::abs(value) > 9e15 || std::floor(value) != value) {
      return Fail("an integer", name), 0;
    }
    return static_cast<int64_t>(value);
  }
  int32_t Small(const char* name) const {
    const int64_t value = Integer(name);
    if (value > INT32_MAX || value < INT32_MIN) return Fail("a 32-bit integer", name), 0;
    return static_cast<int32_t>(value);
  }
  // The integers of a list.
  std::vector<int32_t> SmallList(const char* name) const {
    std::vector<int32_t> list;
    for (const Json& item : List(name)) {
      if (!item.is_number_integer()) continue;
      const double value = item.get<double>();
      if (value > INT32_MAX || value < INT32_MIN) {
        Fail("a list of 32-bit integers", name);
        return {};
      }
      list.push_back(static_cast<int32_t>(value));
    }
    return list;
  }
  bool Bool(const char* name) const {
    const Json* value = Find(name);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return Fail("true or false", name), false;
    return value->get<bool>();
  }
  // True if the field is present and not null.
  bool Has(const char* name) const {
    seen_.insert(name);
    return object_.is_object() && object_.contains(name) && !object_[name].is_null();
  }
  const Json& List(const char* name) const {
    static const Json* const empty = new Json(Json::array());
    const Json* value = Find(name);
    if (value == nullptr) return *empty;
    if (!value->is_array() || value->size() > kMaxItems) return Fail("a list", name), *empty;
    return *value;
  }
  const Json& Object(const char* name) const {
    static const Json* const empty = new Json(Json::object());
    const Json* value = Find(name);
    if (value == nullptr) return *empty;
    if (!value->is_object() || value->size() > kMaxItems) return Fail("an object", name), *empty;
    return *value;
  }
  // Sets an error if the object has a field that was not read.
  void NothingElse() const {
    if (!status_->ok()) return;
    for (const auto& [name, value] : object_.items()) {
      if (seen_.count(name) == 0) Fail("known", Prefix(name).c_str());
    }
  }

 private:
  // Null if the field is missing, which is an error, or after an earlier error.
  const Json* Find(const char* name) const {
    seen_.insert(name);
    if (!status_->ok()) return nullptr;
    const auto found = object_.find(name);
    if (found == object_.end()) return Fail("there", name), nullptr;
    return &*found;
  }
  void Fail(const char* wanted, const char* name = "") const {
    if (!status_->ok()) return;
    *status_ =
        absl::InvalidArgumentError(absl::StrCat("the result's ", where_, name, " is not ", wanted));
  }

  const Json& object_;
  const std::string where_;
  absl::Status* status_;
  mutable std::set<std::string> seen_;
};

using Reasons = std::map<std::string, Outcome::Reason>;

constexpr char kOutOfDeviceMemory[] = "out_of_device_memory";

// The outcomes that a job of this role may report.
const Reasons& ReasonsOf(JobRole role) {
  static const auto* const reference = new Reasons{
      {"ok", Outcome::OK},
      {"reference_error", Outcome::REFERENCE_FAILED},
      {"internal_error", Outcome::INTERNAL_ERROR},
  };
  static const auto* const runner = new Reasons{
      {"ran", Outcome::OK},
      {"stopped", Outcome::OK},  // the supervisor stopped it before its last call
      {"import_error", Outcome::IMPORT_ERROR},
      {"no_model_new", Outcome::NO_MODEL_NEW},
      {"construct_error", Outcome::CONSTRUCT_ERROR},
      {"compile_error", Outcome::COMPILE_ERROR},
      {"runtime_error", Outcome::RUNTIME_ERROR},
      {"out_of_bounds", Outcome::OUT_OF_BOUNDS},
      {"out_of_memory", Outcome::OUT_OF_MEMORY},
      {kOutOfDeviceMemory, Outcome::OUT_OF_MEMORY},
      {"timeout", Outcome::TIMEOUT},
      {"not_executable", Outcome::NOT_EXECUTABLE},
      {"internal_error", Outcome::INTERNAL_ERROR},
  };
  return role == JobRole::kRunner ? *runner : *reference;
}

void ReadArgument(const Json& json, absl::Status* status, KernelArgument* argument) {
  const Fields f(json, "launches.arguments.", status);
  argument->set_name(f.Text("name"));
  argument->set_dtype(f.Text("dtype"));
  for (const Json& size : f.List("shape")) {
    if (size.is_number_integer()) argument->add_shape(size.get<int64_t>());
  }
  argument->set_what(f.Text("what"));
}

void ReadLaunch(const Json& json, absl::Status* status, KernelLaunch* launch) {
  const Fields f(json, "launches.", status);
  launch->set_name(f.Text("name"));
  launch->set_line(f.Small("line"));
  for (const int32_t size : f.SmallList("grid")) launch->add_grid(size);
  launch->set_num_warps(f.Small("num_warps"));
  launch->set_num_stages(f.Small("num_stages"));
  launch->set_shared_bytes(f.Integer("shared_bytes"));
  for (const Json& item : f.List("arguments")) {
    if (launch->arguments_size() == kMaxArguments) break;
    ReadArgument(item, status, launch->add_arguments());
  }
  launch->set_load_bytes(f.Number("load_bytes"));
  launch->set_store_bytes(f.Number("store_bytes"));
  launch->set_atomic_bytes(f.Number("atomic_bytes"));
  launch->set_sector_bytes(f.Number("sector_bytes"));
  launch->set_unique_bytes(f.Number("unique_bytes"));
  launch->set_flops(f.Number("flops"));
  launch->set_dot_flops(f.Number("dot_flops"));
  launch->set_tensor_flops(f.Number("tensor_flops"));
  if (f.Has("modelled_seconds")) launch->set_modelled_seconds(f.Number("modelled_seconds"));
}

void ReadOp(const Json& json, absl::Status* status, AtenOp* op) {
  const Fields f(json, "operators.", status);
  op->set_name(f.Text("name"));
  op->set_calls(f.Integer("calls"));
  op->set_bytes(f.Number("bytes"));
  op->set_flops(f.Number("flops"));
  op->set_elements(f.Number("elements"));
  op->set_largest(f.Number("largest"));
  if (f.Has("line")) op->set_line(f.Small("line"));
  op->set_view(f.Bool("view"));
}

void ReadRunnerFields(const Fields& f, absl::Status* status, ExecResult* result) {
  if (f.Has("compiled")) result->set_compiled(f.Bool("compiled"));
  for (const Json& item : f.List("launches")) ReadLaunch(item, status, result->add_launches());
  for (const Json& item : f.List("aten_ops")) ReadOp(item, status, result->add_candidate_ops());
  if (f.Has("own_parameters")) {
    for (const Json& item : f.List("own_parameters")) {
      if (result->own_parameters_size() == kMaxOwnParameters) break;
      if (item.is_string()) result->add_own_parameters(Prefix(item.get<std::string>()));
    }
  }
  if (f.Has("candidate_seconds")) result->set_candidate_seconds(f.Number("candidate_seconds"));
}

void ReadReferenceFields(const Fields& f, absl::Status* status, ExecResult* result) {
  for (const Json& item : f.List("reference_ops"))
    ReadOp(item, status, result->add_reference_ops());
  if (f.Has("reference_seconds")) result->set_reference_seconds(f.Number("reference_seconds"));
  // Marks the fields that the reference runner's code reads from the result's text.
  for (const char* name : {"visible", "calls", "trials", "left_out", "shares_memory",
                           "mutates_inputs", "has_buffers", "bytes_per_second", "in_bytes",
                           "out_bytes", "call_bytes", "device_bytes", "out_of_memory"}) {
    (void)f.Has(name);
  }
}

absl::StatusOr<ExecResult> ReadResult(const Json& json, JobRole role) {
  absl::Status status;
  ExecResult result;
  const Fields f(json, "", &status);
  RETURN_IF_ERROR(status);
  const std::string name = f.Text("outcome");
  const auto reason = ReasonsOf(role).find(name);
  if (status.ok() && reason == ReasonsOf(role).end()) {
    return absl::InvalidArgumentError(absl::StrCat("the result's outcome is unknown: ", name));
  }
  RETURN_IF_ERROR(status);
  Outcome* outcome = result.mutable_outcome();
  SetOutcome(reason->second, f.Text("message"), outcome);
  outcome->set_device_memory(name == kOutOfDeviceMemory);
  outcome->set_detail(f.Text("detail"));
  if (f.Has("line")) outcome->set_line(f.Small("line"));
  (void)f.Has("fault");  // follows from the outcome
  result.set_phase(f.Text("phase"));
  result.set_modelled(f.Bool("modelled"));
  result.set_device_name(f.Text("device_name"));
  if (role == JobRole::kRunner) ReadRunnerFields(f, &status, &result);
  if (role == JobRole::kReference) ReadReferenceFields(f, &status, &result);
  for (const auto& [phase, seconds] : f.Object("seconds").items()) {
    if (seconds.is_number()) (*result.mutable_phase_seconds())[phase] = seconds.get<double>();
  }
  for (const auto& [package, version] : f.Object("versions").items()) {
    if (version.is_string()) (*result.mutable_versions())[package] = version.get<std::string>();
  }
  f.NothingElse();
  RETURN_IF_ERROR(status);
  return result;
}

absl::Status ReadLine(absl::string_view line, JobRole role, JobChannel* channel) {
  const Json json = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.size() != 1) {
    return absl::InvalidArgumentError("a line of the result channel is no message");
  }
  if (channel->has_result) return absl::InvalidArgumentError("something follows the result");
  const auto message = json.begin();
  if (message.key() == "phase" && message->is_string()) {
    channel->phase = Prefix(message->get<std::string>());
    if (channel->phase != "reference") channel->candidate_began = true;
    return absl::OkStatus();
  }
  if (message.key() == "setup_error" && message->is_string()) {
    channel->setup_error = Prefix(message->get<std::string>());
    return absl::OkStatus();
  }
  if (message.key() != "result") return absl::InvalidArgumentError("an unknown message");
  ASSIGN_OR_RETURN(channel->result, ReadResult(*message, role));
  channel->result_text = message->dump();
  channel->has_result = true;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JobChannel> ParseChannel(absl::string_view bytes, JobRole role) {
  JobChannel channel;
  for (const absl::string_view line : absl::StrSplit(bytes, '\n', absl::SkipEmpty())) {
    RETURN_IF_ERROR(ReadLine(line, role, &channel));
  }
  return channel;
}

}  // namespace tritonrl
