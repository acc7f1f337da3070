#include "exec/executor/message_channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "exec/executor/executor.pb.h"

namespace tritonrl::executor {
namespace {

class MessageChannelTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  void TearDown() override {
    for (const int end : ends_) close(end);
  }
  absl::Status Receive(Answer* answer) {
    return ReceiveMessage(ends_[1], answer, kMaxAnswerBytes, absl::Now() + absl::Seconds(20));
  }
  void SendBytes(const std::string& bytes) {
    ASSERT_EQ(write(ends_[0], bytes.data(), bytes.size()), bytes.size());
  }

  int ends_[2];
  const absl::Time deadline_ = absl::Now() + absl::Seconds(20);
};

TEST_F(MessageChannelTest, LargeMessagesAndDescriptorsArrive) {
  Request sent;
  sent.mutable_run()->set_source(std::string(3 << 20, 'x'));
  const int file = open("/dev/null", O_RDONLY);
  std::thread sender([&] {
    EXPECT_TRUE(SendMessage(ends_[0], sent, kMaxRequestBytes, deadline_, {file, file}).ok());
  });
  Request received;
  std::vector<int> descriptors;
  EXPECT_TRUE(ReceiveMessage(ends_[1], &received, kMaxRequestBytes, deadline_, &descriptors).ok());
  sender.join();
  EXPECT_EQ(received.run().source(), sent.run().source());
  EXPECT_EQ(descriptors.size(), 2);
  for (const int fd : descriptors) EXPECT_EQ(close(fd), 0);
  close(file);
}

TEST_F(MessageChannelTest, WhatCannotBeIsRefused) {
  Answer answer;
  SendBytes(std::string("\xff\xff\xff\xff", 4));
  EXPECT_TRUE(absl::IsResourceExhausted(Receive(&answer)));
  SendBytes(std::string("\x02\x00\x00\x00\xff\xff", 6));
  EXPECT_TRUE(absl::IsInvalidArgument(Receive(&answer)));
  answer.set_printed(std::string(100, 'x'));
  EXPECT_TRUE(absl::IsResourceExhausted(SendMessage(ends_[0], answer, 50, deadline_)));
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(ReceiveMessage(ends_[1], &answer, kMaxAnswerBytes, absl::Now())));
  shutdown(ends_[0], SHUT_RDWR);
  EXPECT_TRUE(absl::IsUnavailable(Receive(&answer)));
  EXPECT_TRUE(absl::IsUnavailable(SendMessage(ends_[0], answer, 500, deadline_)));
}

// An executor waits so for its next candidate: it must not poll without end meanwhile.
TEST_F(MessageChannelTest, WaitingForeverTakesNoProcessorTime) {
  absl::Duration used;
  std::thread receiver([&] {
    Answer answer;
    EXPECT_TRUE(ReceiveMessage(ends_[1], &answer, kMaxAnswerBytes, absl::InfiniteFuture()).ok());
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    used = absl::DurationFromTimespec(time);
  });
  absl::SleepFor(absl::Milliseconds(400));
  Answer answer;
  answer.mutable_ready();
  EXPECT_TRUE(SendMessage(ends_[0], answer, kMaxAnswerBytes, deadline_).ok());
  receiver.join();
  EXPECT_LT(used, absl::Milliseconds(100));
}

// One that is taken over cannot fill our table of descriptors.
TEST_F(MessageChannelTest, DescriptorsOfAnAnswerAreNotTaken) {
  const int before = dup(0);
  close(before);
  Answer answer;
  answer.mutable_ready();
  ASSERT_TRUE(SendMessage(ends_[0], answer, kMaxAnswerBytes, deadline_, {ends_[0]}).ok());
  EXPECT_TRUE(Receive(&answer).ok());
  const int after = dup(0);
  EXPECT_EQ(after, before);
  close(after);
}

}  // namespace
}  // namespace tritonrl::executor
