// Reads, edits and writes protobuf messages in text format.
#ifndef TRITONRL_TRAINER_CONFIG_TEXT_PROTO_H_
#define TRITONRL_TRAINER_CONFIG_TEXT_PROTO_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace tritonrl {

// Reads a text-format file into `message`. InvalidArgument for a syntax error or an unknown field,
// as "file:line:column: message" (lines and columns from 1).
absl::Status LoadTextProto(const std::string& path, google::protobuf::Message* message);

// Reads a file whose message has a field `base`, a string: the path of another such file, relative
// to the folder of the file that names it. The other file is read first, and what the file itself
// sets replaces its values; a list is replaced as a whole. `base` is empty afterwards. Errors are
// those of LoadTextProto; InvalidArgument for files that name each other in a circle.
absl::Status LoadTextProtoWithBase(const std::string& path, google::protobuf::Message* message);

// Parses `text` as LoadTextProto does; `name` is the file name in error messages.
absl::Status ParseTextProto(const std::string& text, const std::string& name,
                            google::protobuf::Message* message);

// Applies one `path=value`. The path is field names joined by dots. A repeated field accepts
//   path=a,b,c    the whole list (an empty value clears it),
//   path+=a       one more entry,
//   path[1]=a     a new value of an existing entry.
// Enum values are given by name, in any case; booleans as true/false/1/0. InvalidArgument names the
// part of the path that does not exist (and the closest name that does), or the invalid value.
absl::Status ApplyOverride(absl::string_view assignment, google::protobuf::Message* message);

// The message as text with every field written out, defaults included, for the run folder.
std::string FullText(const google::protobuf::Message& message);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_CONFIG_TEXT_PROTO_H_
