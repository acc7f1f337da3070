#include "base/socket_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace tritonrl {
namespace {

class SocketStreamTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  void TearDown() override {
    for (const int end : ends_) close(end);
  }
  SocketStream ours() const { return {ends_[0], "the process"}; }
  SocketStream theirs() const { return {ends_[1], "the process"}; }
  static absl::Time Soon() { return absl::Now() + absl::Seconds(20); }

  int ends_[2];
};

TEST_F(SocketStreamTest, ManyBytesArriveInOrderAfterWhatIsThere) {
  std::string sent(5'000'000, '\0');
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i % 251);
  std::thread sender([&] { EXPECT_TRUE(theirs().Write(sent, Soon()).ok()); });
  std::string got = "before";
  EXPECT_TRUE(ours().Read(sent.size() - 1, Soon(), &got).ok());
  EXPECT_TRUE(ours().Read(1, Soon(), &got).ok());
  sender.join();
  EXPECT_TRUE(got == "before" + sent);
}

TEST_F(SocketStreamTest, DescriptorsComeOnce) {
  const int file = open("/dev/null", O_RDONLY);
  std::thread sender([&] {
    EXPECT_TRUE(theirs().Write(std::string(3 << 20, 'x'), Soon(), {file, file}).ok());
  });
  std::string got;
  std::vector<int> descriptors;
  EXPECT_TRUE(ours().Read(3 << 20, Soon(), &got, &descriptors).ok());
  sender.join();
  EXPECT_EQ(descriptors.size(), 2);
  for (const int fd : descriptors) {
    EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(close(fd), 0);
  }
  close(file);
  EXPECT_TRUE(absl::IsInvalidArgument(ours().Write("x", Soon(), std::vector<int>(9, file))));
}

TEST_F(SocketStreamTest, DescriptorsThatNobodyAskedForAreClosed) {
  const int before = dup(0);
  close(before);
  ASSERT_TRUE(theirs().Write("x", Soon(), {ends_[1]}).ok());
  std::string got;
  ASSERT_TRUE(ours().Read(1, Soon(), &got).ok());
  const int after = dup(0);
  EXPECT_EQ(after, before);
  close(after);
}

TEST_F(SocketStreamTest, WaitingEndsAtTheDeadline) {
  ASSERT_TRUE(theirs().Write("abc", Soon()).ok());
  std::string got;
  const absl::Status read = ours().Read(4, absl::Now() + absl::Milliseconds(20), &got);
  EXPECT_EQ(read, absl::DeadlineExceededError("the process did not finish in time"));
  EXPECT_EQ(got, "abc");
  const absl::Status written =
      ours().Write(std::string(64 << 20, 'x'), absl::Now() + absl::Milliseconds(20));
  EXPECT_EQ(written, absl::DeadlineExceededError("the process did not finish in time"));
  // Bytes that have arrived are taken even after the deadline.
  ASSERT_TRUE(theirs().Write("d", Soon()).ok());
  EXPECT_TRUE(ours().Read(1, absl::InfinitePast(), &got).ok());
}

TEST_F(SocketStreamTest, TheOtherSideMayGo) {
  ASSERT_TRUE(theirs().Write("abc", Soon()).ok());
  shutdown(ends_[1], SHUT_RDWR);
  std::string got;
  EXPECT_EQ(ours().Read(4, Soon(), &got),
            absl::UnavailableError("the process closed its connection"));
  EXPECT_EQ(got, "abc");
  EXPECT_EQ(ours().Write("x", Soon()), absl::UnavailableError("the process closed its connection"));
}

// Those of a profiler, for example.
TEST_F(SocketStreamTest, ASignalEndsNoWait) {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  struct sigaction before;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  std::string got;
  absl::Status read;
  std::thread reader([&] { read = ours().Read(2, Soon(), &got); });
  for (int i = 0; i < 20; ++i) {
    absl::SleepFor(absl::Milliseconds(2));
    pthread_kill(reader.native_handle(), SIGUSR1);
    if (i == 10) {
      EXPECT_TRUE(theirs().Write("a", Soon()).ok());
    }
  }
  EXPECT_TRUE(theirs().Write("b", Soon()).ok());
  reader.join();
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_EQ(got, "ab");
}

TEST(LengthTest, IsLittleEndian) {
  std::string bytes = "x";
  AppendLength(0xF1020304, &bytes);
  EXPECT_EQ(bytes, "x\x04\x03\x02\xF1");
  EXPECT_EQ(LengthAt(bytes.data() + 1), 0xF1020304);
}

}  // namespace
}  // namespace tritonrl
