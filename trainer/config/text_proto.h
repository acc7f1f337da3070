// Protobuf messages as text: reading files, changing single fields by name, writing all fields.
#ifndef TRITONRL_TRAINER_CONFIG_TEXT_PROTO_H_
#define TRITONRL_TRAINER_CONFIG_TEXT_PROTO_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace tritonrl {

// Reads a text-format file into `message`. A syntax error or an unknown field gives
// "file:line:column: what is wrong" (lines and columns from 1).
absl::Status LoadTextProto(const std::string& path, google::protobuf::Message* message);

// The same from text; `name` stands for the file in messages.
absl::Status ParseTextProto(const std::string& text, const std::string& name,
                            google::protobuf::Message* message);

// Applies one `path=value`. The path is field names joined by dots; a repeated field takes
//   path=a,b,c    the whole list (nothing after "=" empties it),
//   path+=a       one more entry,
//   path[1]=a     an entry that exists.
// Enum values are given by name, in any case; booleans as true/false/1/0. An error names the part
// of the path that does not exist (and the closest name that does) or the value that does not fit.
absl::Status ApplyOverride(absl::string_view assignment, google::protobuf::Message* message);

// The message as text with every field written out, defaults included: what a run directory keeps.
std::string FullText(const google::protobuf::Message& message);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_CONFIG_TEXT_PROTO_H_
