#include "exec/device/frame.h"

#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

class FrameTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_), 0); }
  void TearDown() override {
    for (const int socket : sockets_) {
      if (socket >= 0) close(socket);
    }
  }
  void SendRaw(const std::string& bytes) {
    ASSERT_EQ(send(sockets_[1], bytes.data(), bytes.size(), 0), bytes.size());
  }
  void CloseTheirs() {
    close(sockets_[1]);
    sockets_[1] = -1;
  }
  static absl::Time Soon() { return absl::Now() + absl::Seconds(20); }

  int sockets_[2] = {-1, -1};
};

TEST_F(FrameTest, LargeFramesArriveWhole) {
  SocketChannel ours(sockets_[0]);
  SocketChannel theirs(sockets_[1]);
  const Frame sent{std::string(3'000'000, 'h'), std::string(5'000'000, 'p')};
  std::thread sender([&] { EXPECT_TRUE(theirs.Send(sent, Soon()).ok()); });
  const auto got = ours.Receive(Soon());
  sender.join();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->header, sent.header);
  EXPECT_EQ(got->payload, sent.payload);
}

TEST_F(FrameTest, SizesAreLittleEndian) {
  SendRaw(std::string("\2\0\0\0\1\0\0\0{}x", 11));
  const auto got = SocketChannel(sockets_[0]).Receive(Soon());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->header, "{}");
  EXPECT_EQ(got->payload, "x");
}

TEST_F(FrameTest, AnnouncedSizesAreBounded) {
  SendRaw("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
  const auto got = SocketChannel(sockets_[0]).Receive(Soon());
  EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(got.status().message(), "the candidate's process sent"));
}

TEST_F(FrameTest, ASilentProcessMeetsTheDeadline) {
  SendRaw(std::string("\2\0\0\0", 4));
  const auto got = SocketChannel(sockets_[0]).Receive(absl::Now() + absl::Milliseconds(20));
  EXPECT_EQ(got.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(FrameTest, AProcessThatDoesNotReadMeetsTheDeadline) {
  const Frame large{"{}", std::string(64 << 20, 'x')};
  const auto sent = SocketChannel(sockets_[0]).Send(large, absl::Now() + absl::Milliseconds(20));
  EXPECT_EQ(sent.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(FrameTest, AClosedConnectionIsUnavailable) {
  SendRaw(std::string("\2\0\0\0\0\0\0\0{", 9));
  CloseTheirs();
  SocketChannel ours(sockets_[0]);
  EXPECT_EQ(ours.Receive(Soon()).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ours.Send({"{}", ""}, Soon()).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tritonrl::device
