#include "base/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "base/program.h"

namespace tritonrl {
namespace {

std::string LinesOf(const LogOptions& options, void (*write)()) {
  testing::internal::CaptureStderr();
  EXPECT_TRUE(SetUpLog(options).ok());
  write();
  return testing::internal::GetCapturedStderr();
}

TEST(LogTest, TextLinesHaveTimeAndLevel) {
  const std::string lines = LinesOf({}, [] { Log(LogLevel::kWarning, "request r1 took 12 ms"); });
  EXPECT_TRUE(std::regex_match(
      lines, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3} W request r1 took 12 ms\n)")))
      << lines;
}

TEST(LogTest, JsonLinesAreObjectsWhateverTheMessageHolds) {
  const std::string lines = LinesOf(
      {.format = "json"}, [] { Log(LogLevel::kError, "quote \" newline \n bad byte \xff"); });
  const auto object = nlohmann::json::parse(lines);
  EXPECT_EQ(object["level"], "error");
  EXPECT_EQ(object["message"], "quote \" newline \n bad byte \xef\xbf\xbd");
}

TEST(LogTest, LinesBelowTheLevelAreDropped) {
  EXPECT_EQ(LinesOf({.level = "error"}, [] { Log(LogLevel::kInfo, "hidden {}"); }), "");
}

TEST(LogTest, LinesNameTheRankOnceItIsSet) {
  SetLogRank(3);
  const std::string text = LinesOf({}, [] { Log(LogLevel::kInfo, "step 1"); });
  const std::string json = LinesOf({.format = "json"}, [] { Log(LogLevel::kInfo, "step 1"); });
  SetLogRank(-1);
  EXPECT_NE(text.find(" I [rank 3] step 1\n"), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(json)["rank"], 3);
}

TEST(LogTest, BadSettingsAreNamed) {
  EXPECT_EQ(SetUpLog({.level = "loud"}).message(),
            "--log_level is debug, info, warning, error or off, not 'loud'");
  EXPECT_EQ(SetUpLog({.format = "xml"}).message(), "--log_format is text or json, not 'xml'");
}

TEST(ProgramTest, VersionHasThreeNumbers) {
  EXPECT_TRUE(std::regex_match(Version(), std::regex(R"(\d+\.\d+\.\d+)"))) << Version();
}

}  // namespace
}  // namespace tritonrl
