#include "exec/executor/message_channel.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/socket_stream.h"
#include "base/status.h"

namespace tritonrl::executor {
namespace {

constexpr char kPeer[] = "the other side of the channel";

absl::Status TooLarge(size_t bytes, size_t max_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("a message of ", bytes, " bytes is above ", max_bytes));
}

}  // namespace

absl::Status SendMessage(int socket, const google::protobuf::MessageLite& message, size_t max_bytes,
                         absl::Time deadline, const std::vector<int>& descriptors) {
  const size_t bytes = message.ByteSizeLong();
  if (bytes > max_bytes) return TooLarge(bytes, max_bytes);
  std::string all;
  all.reserve(kLengthBytes + bytes);
  AppendLength(static_cast<uint32_t>(bytes), &all);
  if (!message.AppendToString(&all)) return absl::InternalError("a message cannot be written");
  return SocketStream(socket, kPeer).Write(all, deadline, descriptors);
}

absl::Status ReceiveMessage(int socket, google::protobuf::MessageLite* message, size_t max_bytes,
                            absl::Time deadline, std::vector<int>* descriptors) {
  const SocketStream stream(socket, kPeer);
  std::string bytes;
  RETURN_IF_ERROR(stream.Read(kLengthBytes, deadline, &bytes, descriptors));
  const size_t count = LengthAt(bytes.data());
  if (count > max_bytes) return TooLarge(count, max_bytes);
  bytes.clear();
  RETURN_IF_ERROR(stream.Read(count, deadline, &bytes, descriptors));
  if (message->ParseFromString(bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError("no message of the expected type");
}

}  // namespace tritonrl::executor
