#include <gtest/gtest.h>

#include <string>

#include "exec/workers/worker.h"

namespace tritonrl {
namespace {

TEST(FrameTest, EveryCutOfAStreamGivesTheSameFrames) {
  const std::string big(70000, 'b');
  std::string stream;
  for (const std::string& payload : {std::string("one"), std::string(), big}) {
    auto frame = EncodeFrame(payload, 1 << 20);
    ASSERT_TRUE(frame.ok());
    stream += *frame;
  }
  for (const size_t piece : {size_t{1}, size_t{3}, size_t{4096}, stream.size()}) {
    FrameReader reader(1 << 20);
    std::vector<std::string> frames;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.Add(stream.substr(at, piece));
      while (true) {
        auto next = reader.Next();
        ASSERT_TRUE(next.ok());
        if (!next->has_value()) break;
        frames.push_back(**next);
      }
    }
    EXPECT_EQ(frames, (std::vector<std::string>{"one", "", big}));
  }
}

TEST(FrameTest, RefusesWhatIsTooLong) {
  EXPECT_EQ(EncodeFrame("12345", 4).status().code(), absl::StatusCode::kInvalidArgument);
  FrameReader reader(4);
  reader.Add(std::string("\0\0\0\5", 4));
  EXPECT_EQ(reader.Next().status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tritonrl
