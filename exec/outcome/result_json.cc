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
constexpr size_t kMaxItems = 4096;  // operators

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

// The outcomes that a reference's job may report.
const std::map<std::string, Outcome::Reason>& Reasons() {
  static const auto* const reasons = new std::map<std::string, Outcome::Reason>{
      {"ok", Outcome::OK},
      {"reference_error", Outcome::REFERENCE_FAILED},
      {"internal_error", Outcome::INTERNAL_ERROR},
  };
  return *reasons;
}

void ReadOp(const Json& json, absl::Status* status, AtenOp* op) {
  const Fields f(json, "operators.", status);
  op->set_name(f.Text("name"));
  op->set_calls(f.Integer("calls"));
  op->set_bytes(f.Number("bytes"));
  op->set_flops(f.Number("flops"));
  op->set_free(f.Bool("free"));
}

void ReadReferenceFields(const Fields& f, absl::Status* status, ExecResult* result) {
  for (const Json& item : f.List("reference_ops"))
    ReadOp(item, status, result->add_reference_ops());
  // Marks the fields that the reference runner's code reads from the result's text.
  for (const char* name :
       {"visible", "calls", "trials", "left_out", "shares_memory", "mutates_inputs", "has_buffers",
        "in_bytes", "out_bytes", "call_bytes", "device_bytes", "out_of_memory"}) {
    (void)f.Has(name);
  }
}

absl::StatusOr<ExecResult> ReadResult(const Json& json) {
  absl::Status status;
  ExecResult result;
  const Fields f(json, "", &status);
  RETURN_IF_ERROR(status);
  const std::string name = f.Text("outcome");
  const auto reason = Reasons().find(name);
  if (status.ok() && reason == Reasons().end()) {
    return absl::InvalidArgumentError(absl::StrCat("the result's outcome is unknown: ", name));
  }
  RETURN_IF_ERROR(status);
  Outcome* outcome = result.mutable_outcome();
  SetOutcome(reason->second, f.Text("message"), outcome);
  outcome->set_detail(f.Text("detail"));
  if (f.Has("line")) outcome->set_line(f.Small("line"));
  (void)f.Has("fault");  // follows from the outcome
  result.set_phase(f.Text("phase"));
  result.set_modelled(f.Bool("modelled"));
  result.set_device_name(f.Text("device_name"));
  ReadReferenceFields(f, &status, &result);
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
  // A candidate's process has nothing to report: what it computed is not its to tell.
  if (message.key() != "result" || role == JobRole::kRunner) {
    return absl::InvalidArgumentError("an unknown message");
  }
  ASSIGN_OR_RETURN(channel->result, ReadResult(*message));
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
