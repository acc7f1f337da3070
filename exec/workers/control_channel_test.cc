#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "exec/workers/job_dialogue.h"

namespace tritonrl {
namespace {

using Event = ControlChannel::Event;

class ControlChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    auto channel = ControlChannel::Create();
    ASSERT_TRUE(channel.ok()) << channel.status();
    channel_.emplace(*std::move(channel));
    ended_ = eventfd(0, EFD_CLOEXEC);
    ASSERT_GE(ended_, 0);
  }
  void TearDown() override { close(ended_); }

  void Say(const std::string& message) {
    ASSERT_EQ(write(channel_->job_end(), message.data(), message.size()),
              static_cast<ssize_t>(message.size()));
  }
  void EndJob() {
    const uint64_t one = 1;
    ASSERT_EQ(write(ended_, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  }
  Event Wait(absl::Duration limit = absl::Seconds(20)) {
    return channel_->Wait(ended_, absl::Now() + limit, &message_);
  }

  std::optional<ControlChannel> channel_;
  int ended_ = -1;
  std::string message_;
};

TEST_F(ControlChannelTest, MessagesComeWholeAndBeforeTheEnd) {
  Say("one");
  Say("two");
  EndJob();
  EXPECT_EQ(Wait(), Event::kMessage);
  EXPECT_EQ(message_, "one");
  EXPECT_EQ(Wait(), Event::kMessage);
  EXPECT_EQ(message_, "two");
  EXPECT_EQ(Wait(), Event::kOther);
  EXPECT_EQ(Wait(), Event::kOther);
}

TEST_F(ControlChannelTest, AnEmptyMessageIsOne) {
  ASSERT_EQ(send(channel_->job_end(), "", 0, 0), 0);
  EXPECT_EQ(Wait(), Event::kMessage);
  EXPECT_EQ(message_, "");
  EXPECT_EQ(Wait(absl::Milliseconds(10)), Event::kDeadline);
}

// The supervisor also holds the job's end, so only shutdown() can close the connection.
TEST_F(ControlChannelTest, ALineThatTheJobShutsDownBringsNothingMore) {
  Say("last words");
  ASSERT_EQ(shutdown(channel_->job_end(), SHUT_WR), 0);
  EXPECT_EQ(Wait(), Event::kMessage);
  EXPECT_EQ(message_, "last words");
  EXPECT_EQ(Wait(absl::Milliseconds(10)), Event::kDeadline);
  ASSERT_EQ(shutdown(channel_->job_end(), SHUT_RDWR), 0);
  EXPECT_EQ(Wait(absl::Milliseconds(10)), Event::kDeadline);
  EndJob();
  EXPECT_EQ(Wait(), Event::kOther);
  EXPECT_EQ(Wait(), Event::kOther);
}

TEST_F(ControlChannelTest, SendingToAJobThatDoesNotReadNeverBlocks) {
  const std::string long_message(ControlChannel::kMaxMessage, 'x');
  absl::Status sent;
  for (int i = 0; i < 1000 && sent.ok(); ++i) sent = channel_->Send(long_message);
  EXPECT_TRUE(absl::IsUnavailable(sent)) << sent;
  ASSERT_EQ(shutdown(channel_->job_end(), SHUT_RDWR), 0);
  EXPECT_TRUE(absl::IsUnavailable(channel_->Send("more")));
}

}  // namespace
}  // namespace tritonrl
