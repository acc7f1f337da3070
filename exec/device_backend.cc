#include "exec/device_backend.h"

#include <google/protobuf/util/json_util.h>

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"

namespace tritonrl {
namespace {

std::string Valid(const std::string& text) { return IsValidUtf8(text) ? text : RepairUtf8(text); }

}  // namespace

Outcome::Status StatusOf(Outcome::Reason reason) {
  if (reason == Outcome::OK) return Outcome::STATUS_OK;
  if (reason == Outcome::UNSPECIFIED || reason >= 800) return Outcome::STATUS_INFRA_ERROR;
  return reason >= 700 ? Outcome::STATUS_TASK_FAILED : Outcome::STATUS_CANDIDATE_FAILED;
}

bool IsRetryable(Outcome::Reason reason) {
  return StatusOf(reason) == Outcome::STATUS_INFRA_ERROR && reason != Outcome::CANCELLED &&
         reason != Outcome::INCONCLUSIVE && reason != Outcome::NO_DEVICE_MEMORY;
}

std::string ReasonName(Outcome::Reason reason) {
  return absl::AsciiStrToLower(Outcome::Reason_Name(reason));
}

std::string MessageOf(const Outcome& outcome) {
  return outcome.message().empty() ? ReasonName(outcome.reason()) : outcome.message();
}

void SetOutcome(Outcome::Reason reason, const std::string& message, Outcome* outcome) {
  outcome->set_status(StatusOf(reason));
  outcome->set_reason(reason);
  outcome->set_message(message);
  outcome->clear_device_memory();
}

void MakeTextValid(google::protobuf::Message* message) {
  using google::protobuf::FieldDescriptor;
  const auto* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool text = field->type() == FieldDescriptor::TYPE_STRING;
    const bool nested = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    const int count = field->is_repeated() ? reflection->FieldSize(*message, field) : 1;
    for (int i = 0; i < count && (text || nested); ++i) {
      if (nested && field->is_repeated()) {
        MakeTextValid(reflection->MutableRepeatedMessage(message, field, i));
      } else if (nested) {
        MakeTextValid(reflection->MutableMessage(message, field));
      } else if (field->is_repeated()) {
        reflection->SetRepeatedString(message, field, i,
                                      Valid(reflection->GetRepeatedString(*message, field, i)));
      } else {
        reflection->SetString(message, field, Valid(reflection->GetString(*message, field)));
      }
    }
  }
}

std::string MessageToJson(google::protobuf::Message* message) {
  MakeTextValid(message);
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  // The conversion fails only for text that is not UTF-8, and MakeTextValid has run.
  (void)google::protobuf::util::MessageToJsonString(*message, &json, options);
  return json;
}

absl::StatusOr<Rules> ParseRules(absl::string_view name) {
  for (const Rules rules : {RULES_STRICT, RULES_ROBUST, RULES_PAPER}) {
    if (name == absl::string_view(RulesName(rules))) return rules;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is none of the rules paper, strict, robust"));
}

std::string RulesName(Rules rules) {
  switch (rules) {
    case RULES_ROBUST:
      return "robust";
    case RULES_PAPER:
      return "paper";
    default:
      return "strict";
  }
}

}  // namespace tritonrl
