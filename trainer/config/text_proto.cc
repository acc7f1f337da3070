#include "trainer/config/text_proto.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace tritonrl {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;
using google::protobuf::Reflection;

// Collects "name:line:column: message"; the parser counts lines and columns from 0.
class Collector : public google::protobuf::io::ErrorCollector {
 public:
  explicit Collector(std::string name) : name_(std::move(name)) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    errors_.push_back(absl::StrCat(name_, ":", line + 1, ":", column + 1, ": ", message));
  }
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  std::string name_;
  std::vector<std::string> errors_;
};

// Levenshtein distance, for "did you mean".
int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

absl::Status UnknownField(absl::string_view name, const Descriptor& descriptor) {
  std::string closest;
  int best = 1 << 20;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const int distance = EditDistance(name, descriptor.field(i)->name());
    if (distance < best) {
      best = distance;
      closest = descriptor.field(i)->name();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(descriptor.name(), " has no field '", name,
                                                 "'; the closest is '", closest, "'"));
}

absl::Status BadValue(const FieldDescriptor& field, absl::string_view value,
                      const std::string& wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", value, "' is no value for ", field.name(), "; it takes ", wanted));
}

// Sets a singular field, appends to a repeated field, or replaces entry `index` of a repeated
// field.
enum class Store { kSet, kAdd, kReplace };

// Calls the reflection function for the store mode and returns OK.
#define TRITONRL_STORE(TYPE, VALUE)                                \
  do {                                                             \
    if (store == Store::kSet) {                                    \
      reflection->Set##TYPE(message, field, VALUE);                \
    } else if (store == Store::kAdd) {                             \
      reflection->Add##TYPE(message, field, VALUE);                \
    } else {                                                       \
      reflection->SetRepeated##TYPE(message, field, index, VALUE); \
    }                                                              \
    return absl::OkStatus();                                       \
  } while (false)

absl::Status StoreEnum(const FieldDescriptor* field, absl::string_view value, Store store,
                       int index, ProtoMessage* message) {
  const Reflection* reflection = message->GetReflection();
  std::vector<std::string> names;
  for (int i = 0; i < field->enum_type()->value_count(); ++i) {
    const EnumValueDescriptor* candidate = field->enum_type()->value(i);
    names.push_back(candidate->name());
    if (absl::EqualsIgnoreCase(candidate->name(), value)) TRITONRL_STORE(Enum, candidate);
  }
  return BadValue(*field, value, absl::StrJoin(names, ", "));
}

absl::Status StoreScalar(const FieldDescriptor* field, absl::string_view value, Store store,
                         int index, ProtoMessage* message) {
  const Reflection* reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      TRITONRL_STORE(String, std::string(value));
    case FieldDescriptor::CPPTYPE_BOOL: {
      bool parsed;
      if (!absl::SimpleAtob(value, &parsed)) return BadValue(*field, value, "true or false");
      TRITONRL_STORE(Bool, parsed);
    }
    case FieldDescriptor::CPPTYPE_INT32: {
      int32_t parsed;
      if (!absl::SimpleAtoi(value, &parsed)) return BadValue(*field, value, "a 32-bit integer");
      TRITONRL_STORE(Int32, parsed);
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      int64_t parsed;
      if (!absl::SimpleAtoi(value, &parsed)) return BadValue(*field, value, "an integer");
      TRITONRL_STORE(Int64, parsed);
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      uint64_t parsed;
      if (!absl::SimpleAtoi(value, &parsed)) {
        return BadValue(*field, value, "an integer of at least 0");
      }
      TRITONRL_STORE(UInt64, parsed);
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double parsed;
      if (!absl::SimpleAtod(value, &parsed)) return BadValue(*field, value, "a number");
      TRITONRL_STORE(Double, parsed);
    }
    case FieldDescriptor::CPPTYPE_ENUM:
      return StoreEnum(field, value, store, index, message);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("'", field->name(), "' is a group of fields; name the one to set, as in ",
                       field->name(), ".", field->message_type()->field(0)->name()));
  }
}
#undef TRITONRL_STORE

// Sets every singular field to its current value, as the printer writes only fields that are set.
void WriteOutDefaults(ProtoMessage* message) {
  const Reflection* reflection = message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (field->is_repeated()) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      WriteOutDefaults(reflection->MutableMessage(message, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection->SetString(message, field, reflection->GetString(*message, field));
    } else {
      std::string value;
      google::protobuf::TextFormat::PrintFieldValueToString(*message, field, -1, &value);
      StoreScalar(field, value, Store::kSet, -1, message).IgnoreError();
    }
  }
}

// Splits "name[3]" into name and index; -1 without brackets.
absl::Status SplitIndex(absl::string_view part, std::string* name, int* index) {
  *index = -1;
  const size_t bracket = part.find('[');
  *name = std::string(part.substr(0, bracket));
  if (bracket == absl::string_view::npos) return absl::OkStatus();
  if (!absl::EndsWith(part, "]") ||
      !absl::SimpleAtoi(part.substr(bracket + 1, part.size() - bracket - 2), index) || *index < 0) {
    return absl::InvalidArgumentError(absl::StrCat("'", part, "' wants an index as in name[0]"));
  }
  return absl::OkStatus();
}

absl::Status SetLeaf(const FieldDescriptor* field, int index, bool append, absl::string_view value,
                     ProtoMessage* message) {
  const Reflection* reflection = message->GetReflection();
  if (!field->is_repeated()) {
    if (append || index >= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", field->name(), "' holds one value, not a list; write ", field->name(), "=value"));
    }
    return StoreScalar(field, value, Store::kSet, -1, message);
  }
  if (index >= 0) {
    const int size = reflection->FieldSize(*message, field);
    if (index >= size) {
      return absl::InvalidArgumentError(absl::StrCat("'", field->name(), "' has ", size,
                                                     " entries, so there is no [", index, "]"));
    }
    return StoreScalar(field, value, Store::kReplace, index, message);
  }
  if (append) return StoreScalar(field, value, Store::kAdd, -1, message);
  reflection->ClearField(message, field);
  if (value.empty()) return absl::OkStatus();
  for (absl::string_view entry : absl::StrSplit(value, ',')) {
    RETURN_IF_ERROR(
        StoreScalar(field, absl::StripAsciiWhitespace(entry), Store::kAdd, -1, message));
  }
  return absl::OkStatus();
}

absl::Status Apply(absl::string_view path, bool append, absl::string_view value,
                   ProtoMessage* message) {
  const std::vector<std::string> parts = absl::StrSplit(path, '.');
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string name;
    int index;
    RETURN_IF_ERROR(SplitIndex(parts[i], &name, &index));
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) return UnknownField(name, *message->GetDescriptor());
    if (i + 1 == parts.size()) return SetLeaf(field, index, append, value, message);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_repeated()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' is a single value, nothing lies below it"));
    }
    message = message->GetReflection()->MutableMessage(message, field);
  }
  return absl::InvalidArgumentError("the path is empty");
}

}  // namespace

absl::Status ParseTextProto(const std::string& text, const std::string& name,
                            ProtoMessage* message) {
  Collector collector(name);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  if (parser.ParseFromString(text, message) && collector.errors().empty()) return absl::OkStatus();
  if (collector.errors().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": not a text-format configuration"));
  }
  return absl::InvalidArgumentError(collector.errors().front());
}

absl::Status LoadTextProto(const std::string& path, ProtoMessage* message) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseTextProto(text, path, message);
}

namespace {

constexpr int kMaxBases = 8;  // more files in a row than anybody needs: they form a circle

// Clears the lists of `below` that `above` has too, as MergeFrom would append to them.
void ClearReplacedLists(const ProtoMessage& above, ProtoMessage* below) {
  std::vector<const FieldDescriptor*> fields;
  above.GetReflection()->ListFields(above, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated()) {
      below->GetReflection()->ClearField(below, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
               below->GetReflection()->HasField(*below, field)) {
      ClearReplacedLists(above.GetReflection()->GetMessage(above, field),
                         below->GetReflection()->MutableMessage(below, field));
    }
  }
}

absl::Status LoadOver(const std::string& path, int bases, ProtoMessage* message) {
  const std::unique_ptr<ProtoMessage> own(message->New());
  RETURN_IF_ERROR(LoadTextProto(path, own.get()));
  const FieldDescriptor* field = own->GetDescriptor()->FindFieldByName("base");
  const std::string base = own->GetReflection()->GetString(*own, field);
  own->GetReflection()->ClearField(own.get(), field);
  if (!base.empty()) {
    if (bases == kMaxBases) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": base: more than ", kMaxBases,
                       " files are based on each other, in a circle perhaps; remove one `base`"));
    }
    const absl::Status loaded = LoadOver(JoinPath(DirName(path), base), bases + 1, message);
    RETURN_IF_ERROR(bases == 0 ? AddContext(loaded, path + ": base") : loaded);
  }
  ClearReplacedLists(*own, message);
  message->MergeFrom(*own);
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadTextProtoWithBase(const std::string& path, ProtoMessage* message) {
  return LoadOver(path, 0, message);
}

absl::Status ApplyOverride(absl::string_view assignment, ProtoMessage* message) {
  const size_t equals = assignment.find('=');
  if (equals == absl::string_view::npos || equals == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--set ", assignment, ": write path=value, as in optimizer.learning_rate=1e-4"));
  }
  absl::string_view path = assignment.substr(0, equals);
  const bool append = absl::EndsWith(path, "+");
  if (append) path.remove_suffix(1);
  const absl::Status status =
      Apply(absl::StripAsciiWhitespace(path), append,
            absl::StripAsciiWhitespace(assignment.substr(equals + 1)), message);
  return AddContext(status, absl::StrCat("--set ", assignment));
}

std::string FullText(const ProtoMessage& message) {
  std::unique_ptr<ProtoMessage> copy(message.New());
  copy->CopyFrom(message);
  WriteOutDefaults(copy.get());
  std::string text;
  google::protobuf::TextFormat::PrintToString(*copy, &text);
  return text;
}

}  // namespace tritonrl
