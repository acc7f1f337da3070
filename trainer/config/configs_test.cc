// The committed configurations are valid and have a comment on every block of fields;
// grpo_hrd_mini.textproto mentions every field.
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
#include "trainer/config/config.h"
#include "trainer/config/text_proto.h"

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

// Several fields in a row (beta1, beta2) may share a comment, but every such block needs one.
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

// Loads a configuration and checks its values and comments.
template <typename Config>
Config Load(const std::string& name, absl::Status (*validate)(const Config&)) {
  const std::string text = TextOf(name);
  Config config;
  const absl::Status parsed = ParseTextProto(text, name, &config);
  EXPECT_TRUE(parsed.ok()) << parsed;
  EXPECT_TRUE(validate(config).ok()) << validate(config);
  ExpectComments(text);
  return config;
}

TEST(Configs, SftMini) { Load<SftConfig>("sft_mini.textproto", ValidateSftConfig); }

TEST(Configs, ThePapersFineTuning) {
  const SftConfig r1 = Load<SftConfig>("sft_8b_r1.textproto", ValidateSftConfig);
  const SftConfig gpt_oss = Load<SftConfig>("sft_8b_gpt_oss.textproto", ValidateSftConfig);
  for (const SftConfig& config : {r1, gpt_oss}) {
    EXPECT_EQ(config.batch_size(), 16);
    EXPECT_EQ(config.optimizer().learning_rate(), 1e-5);
    EXPECT_EQ(config.policy().train_dtype(), BFLOAT16);
    EXPECT_EQ(config.optimizer().zero_stage(), 2);
    EXPECT_EQ(config.micro_batch_tokens(), config.max_sequence_tokens());
  }
  EXPECT_EQ(r1.epochs(), 2);
  EXPECT_EQ(r1.max_sequence_tokens(), 12288);
  EXPECT_EQ(gpt_oss.epochs(), 3);
  EXPECT_EQ(gpt_oss.max_sequence_tokens(), 16384);
}

TEST(Configs, ThePapersReinforcementLearning) {
  for (const std::string name : {"grpo_hrd_8b_a100.textproto", "grpo_hrd_8b_h200.textproto"}) {
    const GrpoHrdConfig config = Load<GrpoHrdConfig>(name, ValidateGrpoHrdConfig);
    EXPECT_EQ(config.objective().alpha(), 0.1);
    EXPECT_EQ(config.objective().epsilon(), 0.2);
    EXPECT_EQ(config.objective().kl_coefficient(), 0);
    EXPECT_EQ(config.objective().reward_shape(), HRD);
    EXPECT_EQ(config.objective().speedup_clip(), 2);
    EXPECT_EQ(config.optimizer().learning_rate(), 1e-6);
    EXPECT_EQ(config.optimizer().zero_stage(), 2);
    EXPECT_EQ(config.prompts_per_step(), 32);
    // Each of the eight GPUs generates its share of a step's samples at once.
    EXPECT_EQ(8 * config.sampling().engine().max_num_seqs(),
              config.prompts_per_step() * config.group_size());
    EXPECT_EQ(config.sampling().max_prompt_tokens(), 2048);
    EXPECT_EQ(config.sampling().max_response_tokens(), 16384);
    EXPECT_EQ(config.steps(), 2 * 11621 / 32);
    EXPECT_EQ(config.verifier().trials(), 5);
    EXPECT_EQ(config.tasks().level_mixture(1), 0);
  }
}

TEST(Configs, GrpoHrdMiniMentionsEveryField) {
  Load<GrpoHrdConfig>("grpo_hrd_mini.textproto", ValidateGrpoHrdConfig);
  const std::string text = TextOf("grpo_hrd_mini.textproto");
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
