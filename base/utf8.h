// Text that came from somewhere else, made fit for JSON, Protobuf and web pages.
#ifndef TRITONRL_BASE_UTF8_H_
#define TRITONRL_BASE_UTF8_H_

#include <string>

#include "absl/strings/string_view.h"

namespace tritonrl {

// Bytes of the well-formed UTF-8 character (RFC 3629: no overlong forms, no surrogates) at the
// beginning of `text`, 1 to 4; 0 when there is none.
int Utf8CharacterSize(absl::string_view text);

bool IsValidUtf8(absl::string_view text);

// Each byte that is no part of a well-formed character becomes U+FFFD.
std::string ReplaceInvalidUtf8(absl::string_view text);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_UTF8_H_
