#include "exec/device/frame.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl::device {

absl::StatusOr<Frame> SocketChannel::Receive(absl::Time deadline) {
  std::string prefix;
  RETURN_IF_ERROR(stream_.Read(2 * kLengthBytes, deadline, &prefix));
  const size_t header_bytes = LengthAt(prefix.data());
  const size_t payload_bytes = LengthAt(prefix.data() + kLengthBytes);
  if (header_bytes > limits_.header_bytes || payload_bytes > limits_.payload_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the candidate's process sent a message of ",
                                                   header_bytes, " + ", payload_bytes, " bytes"));
  }
  Frame frame;
  RETURN_IF_ERROR(stream_.Read(header_bytes, deadline, &frame.header));
  RETURN_IF_ERROR(stream_.Read(payload_bytes, deadline, &frame.payload));
  return frame;
}

absl::Status SocketChannel::Send(const Frame& frame, absl::Time deadline) {
  if (frame.header.size() > UINT32_MAX || frame.payload.size() > UINT32_MAX) {
    return absl::ResourceExhaustedError("a reply is larger than 4 GiB");
  }
  std::string begin;
  AppendLength(static_cast<uint32_t>(frame.header.size()), &begin);
  AppendLength(static_cast<uint32_t>(frame.payload.size()), &begin);
  begin += frame.header;
  RETURN_IF_ERROR(stream_.Write(begin, deadline));
  return stream_.Write(frame.payload, deadline);
}

}  // namespace tritonrl::device
