#include "trainer/jsonl_data.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

// The string field `name` of `json` into `value`.
absl::Status TakeString(const nlohmann::json& json, const char* name, std::string* value) {
  const auto it = json.find(name);
  if (it == json.end()) {
    return absl::InvalidArgumentError(absl::StrCat("the field \"", name, "\" is missing"));
  }
  if (!it->is_string()) {
    return absl::InvalidArgumentError(absl::StrCat("the field \"", name, "\" is no string"));
  }
  *value = it->get<std::string>();
  return absl::OkStatus();
}

absl::StatusOr<SftExample> ParseExample(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("this line is no JSON");
  if (!json.is_object()) return absl::InvalidArgumentError("this line is no JSON object");
  SftExample example;
  RETURN_IF_ERROR(TakeString(json, "prompt", &example.prompt));
  RETURN_IF_ERROR(TakeString(json, "response", &example.response));
  if (example.prompt.empty()) return absl::InvalidArgumentError("the prompt is empty");
  return example;
}

}  // namespace

JsonlData::~JsonlData() {
  for (const int fd : descriptors_) close(fd);
}

absl::StatusOr<std::unique_ptr<JsonlData>> JsonlData::Open(const std::vector<std::string>& paths) {
  std::unique_ptr<JsonlData> data(new JsonlData());
  data->paths_ = paths;
  for (size_t i = 0; i < paths.size(); ++i) {
    const int fd = open(paths[i].c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, "open", paths[i]);
    data->descriptors_.push_back(fd);
    RETURN_IF_ERROR(data->Scan(static_cast<int>(i)));
  }
  if (data->lines_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no example in ", absl::StrJoin(paths, ", ")));
  }
  return data;
}

absl::Status JsonlData::Scan(int file) {
  std::string buffer(1 << 20, '\0');
  int64_t position = 0, line_start = 0, number = 1;
  bool blank = true;
  const auto end_line = [&](int64_t end) -> absl::Status {
    if (!blank) {
      if (end - line_start > std::numeric_limits<int32_t>::max()) {
        return absl::InvalidArgumentError(
            absl::StrCat(paths_[file], ":", number, ": the line is longer than 2 GiB"));
      }
      lines_.push_back({line_start, static_cast<int32_t>(end - line_start), file, number});
    }
    line_start = end + 1;
    ++number;
    blank = true;
    return absl::OkStatus();
  };
  while (true) {
    const ssize_t got = read(descriptors_[file], buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "read", paths_[file]);
    if (got == 0) break;
    for (ssize_t i = 0; i < got; ++i) {
      if (buffer[i] == '\n') {
        RETURN_IF_ERROR(end_line(position + i));
      } else if (!absl::ascii_isspace(buffer[i])) {
        blank = false;
      }
    }
    position += got;
  }
  return end_line(position);  // a last line without a line break
}

absl::StatusOr<SftExample> JsonlData::Read(int64_t i) const {
  const Line& line = lines_[i];
  std::string text(line.bytes, '\0');
  int64_t done = 0;
  while (done < line.bytes) {
    const ssize_t got =
        pread(descriptors_[line.file], text.data() + done, line.bytes - done, line.offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "read", paths_[line.file]);
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(paths_[line.file], ":", line.number,
                                              ": the file became shorter while it was read"));
    }
    done += got;
  }
  absl::StatusOr<SftExample> example = ParseExample(text);
  if (!example.ok()) {
    return AddContext(example.status(), absl::StrCat(paths_[line.file], ":", line.number));
  }
  return example;
}

}  // namespace tritonrl
