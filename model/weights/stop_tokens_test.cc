#include "model/weights/stop_tokens.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"

namespace tritonrl {
namespace {

class StopTokensTest : public testing::Test {
 protected:
  void SetUp() override { dir_ = MakeTempDirectory("stop").value(); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }
  void Write(const char* name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomic(JoinPath(dir_, name), text).ok());
  }
  std::string dir_;
};

TEST_F(StopTokensTest, GenerationConfigComesFirstAndIdsAreNotRepeated) {
  EXPECT_EQ(StopTokens(dir_).value(), std::vector<int32_t>{});
  Write("config.json", R"({"eos_token_id": 2})");
  EXPECT_EQ(StopTokens(dir_).value(), std::vector<int32_t>{2});
  Write("generation_config.json", R"({"eos_token_id": [7, 2, 9]})");
  EXPECT_EQ(StopTokens(dir_).value(), (std::vector<int32_t>{7, 2, 9}));
  Write("generation_config.json", R"({"eos_token_id": 5})");
  EXPECT_EQ(StopTokens(dir_).value(), (std::vector<int32_t>{5, 2}));
  Write("generation_config.json", R"({"eos_token_id": null})");
  EXPECT_EQ(StopTokens(dir_).value(), std::vector<int32_t>{2});
}

TEST_F(StopTokensTest, MistakesNameFileAndField) {
  for (const char* text : {R"({"eos_token_id": "stop"})", R"({"eos_token_id": [1, -1]})",
                           R"({"eos_token_id": 5000000000})"}) {
    Write("generation_config.json", text);
    const std::string message(StopTokens(dir_).status().message());
    EXPECT_NE(message.find("generation_config.json: field eos_token_id"), std::string::npos)
        << message;
  }
  Write("generation_config.json", "[]");
  EXPECT_NE(StopTokens(dir_).status().message().find("not a JSON object"), std::string::npos);
}

}  // namespace
}  // namespace tritonrl
