// The committed configurations load, and each mentions every field of its message under a comment.
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "trainer/config.h"

namespace tritonrl {
namespace {

void CollectNames(const google::protobuf::Descriptor& descriptor, std::vector<std::string>* names) {
  for (int i = 0; i < descriptor.field_count(); ++i) {
    names->push_back(descriptor.field(i)->name());
    if (descriptor.field(i)->message_type() != nullptr) {
      CollectNames(*descriptor.field(i)->message_type(), names);
    }
  }
}

std::string TextOf(const std::string& name) {
  const auto path = Runfile(absl::StrCat("trainer/configs/", name));
  EXPECT_TRUE(path.ok()) << path.status();
  const auto text = ReadFile(*path);
  EXPECT_TRUE(text.ok()) << text.status();
  return *text;
}

// Blocks of fields may share a comment (beta1, beta2), but no block goes without.
void ExpectComments(const std::string& text) {
  std::string previous = "#";
  for (const auto& line : absl::StrSplit(text, '\n')) {
    const std::string stripped(absl::StripAsciiWhitespace(line));
    const bool field = !stripped.empty() && stripped[0] != '#' && stripped != "}";
    const bool block = absl::EndsWith(stripped, "{");
    if (field && !block) {
      EXPECT_FALSE(previous.empty() || absl::EndsWith(previous, "{") || previous == "}") << line;
    }
    previous = stripped;
  }
}

TEST(Configs, SftMini) {
  const std::string text = TextOf("sft_mini.textproto");
  SftConfig config;
  const absl::Status parsed = ParseTextProto(text, "sft_mini", &config);
  ASSERT_TRUE(parsed.ok()) << parsed;
  EXPECT_TRUE(ValidateSftConfig(config).ok()) << ValidateSftConfig(config);
  ExpectComments(text);
}

TEST(Configs, GrpoHrdMiniMentionsEveryField) {
  const std::string text = TextOf("grpo_hrd_mini.textproto");
  GrpoHrdConfig config;
  const absl::Status parsed = ParseTextProto(text, "grpo_hrd_mini", &config);
  ASSERT_TRUE(parsed.ok()) << parsed;
  EXPECT_TRUE(ValidateGrpoHrdConfig(config).ok()) << ValidateGrpoHrdConfig(config);
  ExpectComments(text);
  std::vector<std::string> names;
  CollectNames(*GrpoHrdConfig::descriptor(), &names);
  for (const std::string& name : names) {
    EXPECT_TRUE(absl::StrContains(text, absl::StrCat(name, ":")) ||
                absl::StrContains(text, absl::StrCat(name, " {")))
        << name;
  }
}

}  // namespace
}  // namespace tritonrl
