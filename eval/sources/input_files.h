// Reads files and folders that somebody else wrote, with bounds on everything.
#ifndef TRITONRL_EVAL_SOURCES_INPUT_FILES_H_
#define TRITONRL_EVAL_SOURCES_INPUT_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

// Of a line, and of a file with one program. Programs have kilobytes, responses some hundreds.
inline constexpr int64_t kMaxTextBytes = 4 << 20;
// Of all that is read of an input, which stays in memory.
inline constexpr int64_t kMaxInputBytes = int64_t{2} << 30;

// The files below `folder`, as paths relative to it, sorted. Names that begin with "." are passed
// over. Errors name the path: a link that leads out of the folder or to another folder, something
// that is neither file nor folder, more than 16 folders or 200,000 files.
absl::StatusOr<std::vector<std::string>> ListFiles(const std::string& folder);

// Returns a text file and takes its size from `left`, which begins with kMaxInputBytes. Errors name
// the file: above kMaxTextBytes or `left`, no UTF-8 text, a Git LFS pointer.
absl::StatusOr<std::string> ReadText(const std::string& path, int64_t* left);

// Passes each line that is not blank with its place ("FILE, line 3") to `each`. Errors, with the
// place: a line above kMaxTextBytes, no UTF-8 text, a Git LFS pointer, no line at all, a file above
// kMaxInputBytes; and those of `each`, with the place in front. A last line without its line break
// is passed too; if `each` refuses it, the message asks whether the file was cut off.
absl::Status ForEachLine(
    const std::string& path,
    absl::FunctionRef<absl::Status(const std::string& text, const std::string& where)> each);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_SOURCES_INPUT_FILES_H_
