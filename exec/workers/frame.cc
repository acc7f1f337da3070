#include "exec/workers/frame.h"

#include "absl/strings/str_cat.h"

namespace tritonrl {
namespace {
constexpr size_t kHeader = 4;
}

absl::StatusOr<std::string> EncodeFrame(absl::string_view payload, size_t max_bytes) {
  if (payload.size() > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a job of ", payload.size(), " bytes is above the limit of ", max_bytes));
  }
  std::string frame(kHeader, '\0');
  for (size_t i = 0; i < kHeader; ++i) frame[i] = static_cast<char>(payload.size() >> (24 - 8 * i));
  frame.append(payload.data(), payload.size());
  return frame;
}

absl::StatusOr<std::optional<std::string>> FrameReader::Next() {
  if (buffer_.size() < kHeader) return std::optional<std::string>();
  size_t length = 0;
  for (size_t i = 0; i < kHeader; ++i) length = length << 8 | static_cast<uint8_t>(buffer_[i]);
  if (length > max_bytes_) {
    return absl::DataLossError(absl::StrCat("the worker announced a frame of ", length, " bytes"));
  }
  if (buffer_.size() < kHeader + length) return std::optional<std::string>();
  std::optional<std::string> frame = buffer_.substr(kHeader, length);
  buffer_.erase(0, kHeader + length);
  return frame;
}

}  // namespace tritonrl
