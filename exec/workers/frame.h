// Frames over a socket: a 4-byte big-endian length, then that many bytes.
#ifndef TRITONRL_EXEC_WORKERS_FRAME_H_
#define TRITONRL_EXEC_WORKERS_FRAME_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

// The bytes of one frame. InvalidArgument above `max_bytes`.
absl::StatusOr<std::string> EncodeFrame(absl::string_view payload, size_t max_bytes);

// Cuts a byte stream into frames.
class FrameReader {
 public:
  explicit FrameReader(size_t max_bytes) : max_bytes_(max_bytes) {}

  void Add(absl::string_view bytes) { buffer_.append(bytes.data(), bytes.size()); }

  // The next whole frame, nothing when more bytes are needed, DataLoss when the length is above
  // the maximum (the stream is then of no use any more).
  absl::StatusOr<std::optional<std::string>> Next();

 private:
  size_t max_bytes_;
  std::string buffer_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_WORKERS_FRAME_H_
