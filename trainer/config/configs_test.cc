// The committed configurations are valid, hold the figures of the paper and have a comment on every
// block of fields; grpo_hrd_mini.textproto mentions every field.
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
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

std::string PathOf(const std::string& name) {
  return Runfile(absl::StrCat("trainer/configs/", name)).value();
}

// Loads a configuration, with what it is based on, and checks its values.
SftConfig Sft(const std::string& name) {
  const auto config = LoadSftConfig(PathOf(name), {});
  EXPECT_TRUE(config.ok()) << name << ": " << config.status();
  return config.value_or(SftConfig());
}

// The same. A configuration of the paper wants the address of the judge.
GrpoHrdConfig Grpo(const std::string& name) {
  const auto config = LoadGrpoHrdConfig(PathOf(name), {"verifier.judge.endpoint=http://judge/v1"});
  EXPECT_TRUE(config.ok()) << name << ": " << config.status();
  return config.value_or(GrpoHrdConfig());
}

const std::vector<std::string>& SftFiles() {
  static const auto& files = *new std::vector<std::string>{
      "sft_8b_r1.textproto", "sft_8b_gpt_oss.textproto", "sft_seed_coder_gpt_oss.textproto"};
  return files;
}

const std::vector<std::string>& GrpoFiles() {
  static const auto& files = *new std::vector<std::string>{
      "grpo_hrd_8b_a100.textproto", "grpo_hrd_8b_a100_ia.textproto", "grpo_hrd_8b_h200.textproto",
      "grpo_hrd_8b_h200_ia.textproto", "grpo_hrd_seed_coder_h200_ia.textproto"};
  return files;
}

// The value of a field by its path, as text; entries of a list are separated by commas.
std::string ValueAt(const std::string& path, const google::protobuf::Message& message) {
  const std::vector<std::string> parts = absl::StrSplit(path, absl::MaxSplits('.', 1));
  const auto* field = message.GetDescriptor()->FindFieldByName(parts[0]);
  if (field == nullptr) return "no such field";
  if (parts.size() > 1)
    return ValueAt(parts[1], message.GetReflection()->GetMessage(message, field));
  std::vector<std::string> values;
  const int size = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 1;
  for (int i = 0; i < size; ++i) {
    google::protobuf::TextFormat::PrintFieldValueToString(
        message, field, field->is_repeated() ? i : -1, &values.emplace_back());
  }
  return absl::StrJoin(values, ",");
}

// A figure of the paper and its place in the field of a configuration.
struct Figure {
  const char* place;  // in the paper
  const char* file;   // beginning of the names of the files that must have it
  const char* path;
  const char* value;
};

// "Hyperparameters": the appendix "Training Hyperparameters and Details". "Setups": the section
// "Training and Evaluation Setups".
constexpr Figure kFigures[] = {
    {"Hyperparameters, SFT", "sft_8b_r1", "epochs", "2"},
    {"Hyperparameters, SFT", "sft_8b_r1", "max_sequence_tokens", "12288"},
    {"Hyperparameters, SFT", "sft_8b_gpt_oss", "epochs", "3"},
    {"Hyperparameters, SFT", "sft_8b_gpt_oss", "max_sequence_tokens", "16384"},
    {"Hyperparameters, SFT", "sft_seed_coder", "epochs", "3"},
    {"Hyperparameters, SFT", "sft_seed_coder", "max_sequence_tokens", "16384"},
    {"Hyperparameters, SFT", "sft_", "batch_size", "16"},
    {"Hyperparameters, SFT", "sft_", "optimizer.learning_rate", "1e-05"},
    {"Setups, base model", "sft_8b", "policy.dir", "\"models/Qwen3-8B\""},
    {"Hyperparameters, RL", "grpo_", "steps", "0"},  // as many as the epochs need
    {"Hyperparameters, RL", "grpo_", "epochs", "2"},
    {"Hyperparameters, RL", "grpo_", "prompts_per_step", "32"},
    {"Hyperparameters, RL", "grpo_", "optimizer.learning_rate", "1e-06"},
    {"Hyperparameters, RL", "grpo_", "objective.epsilon", "0.2"},
    {"Hyperparameters, RL", "grpo_", "sampling.max_prompt_tokens", "2048"},
    {"Hyperparameters, RL", "grpo_", "sampling.max_response_tokens", "16384"},
    {"Setups, reward", "grpo_", "objective.alpha", "0.1"},
    {"Setups, reward", "grpo_", "objective.reward_shape", "HRD"},
    {"Setups, start of (D)", "grpo_hrd_8b_a100", "policy.dir", "\"runs/sft_8b_r1/model\""},
    {"Setups, start of (G)", "grpo_hrd_8b_h200", "policy.dir", "\"runs/sft_8b_gpt_oss/model\""},
    {"Ablation on base models", "grpo_hrd_seed", "policy.dir",
     "\"runs/sft_seed_coder_gpt_oss/model\""},
    {"Data mixing, p", "grpo_", "tasks.level_mixture", "1,0"},
    {"Input augmentation", "grpo_hrd_8b_a100_ia", "tasks.train", "\"data/kernelbook/augmented\""},
    {"Input augmentation", "grpo_hrd_8b_h200_ia", "tasks.train", "\"data/kernelbook/augmented\""},
    {"Input augmentation", "grpo_hrd_seed", "tasks.train", "\"data/kernelbook/augmented\""},
    {"Reward, clip of the speedup", "grpo_", "objective.speedup_clip", "2"},
    {"Objective, no penalty", "grpo_", "objective.kl_coefficient", "0"},
    {"Verifier, func", "grpo_", "verifier.judge.mode", "REQUIRED"},
    {"Verifier, correct", "grpo_", "verifier.trials", "5"},
    {"Verifier, its rules", "grpo_", "verifier.rules", "PAPER"},
    {"Metrics, pass@10", "grpo_", "eval.samples", "10"},
};

TEST(Configs, HoldEveryFigureOfThePaper) {
  const auto check = [](const std::string& name, const google::protobuf::Message& config) {
    int held = 0;
    for (const Figure& figure : kFigures) {
      if (!absl::StartsWith(name, figure.file)) continue;
      ++held;
      EXPECT_EQ(ValueAt(figure.path, config), figure.value)
          << name << ": " << figure.path << " (" << figure.place << ")";
    }
    EXPECT_GE(held, 4) << name;
  };
  for (const std::string& name : SftFiles()) check(name, Sft(name));
  for (const std::string& name : GrpoFiles()) check(name, Grpo(name));
}

TEST(Configs, EachFileHasItsCommentsAndItsOwnRunFolder) {
  std::vector<std::string> names = SftFiles(), folders;
  names.insert(names.end(), GrpoFiles().begin(), GrpoFiles().end());
  for (const char* base : {"base_sft_8b.textproto", "base_grpo_hrd_8b.textproto"}) {
    ExpectComments(TextOf(base));
  }
  for (const std::string& name : names) {
    ExpectComments(TextOf(name));
    const bool sft = absl::StartsWith(name, "sft");
    folders.push_back(sft ? Sft(name).output_dir() : Grpo(name).output_dir());
    EXPECT_EQ(folders.back() + ".textproto", "runs/" + name);
  }
  ExpectComments(TextOf("sft_mini.textproto"));
  Sft("sft_mini.textproto");
}

TEST(Configs, LargeModelsFitTheirMachines) {
  for (const std::string& name : SftFiles()) {
    const SftConfig config = Sft(name);
    EXPECT_EQ(config.policy().train_dtype(), BFLOAT16);
    EXPECT_EQ(config.optimizer().zero_stage(), 2);
    EXPECT_EQ(config.micro_batch_tokens(), config.max_sequence_tokens());
    // VeRL's, of the steps that the data has.
    EXPECT_EQ(config.optimizer().warmup_share(), 0.1);
    EXPECT_EQ(config.steps(), 0);
  }
  for (const std::string& name : GrpoFiles()) {
    const GrpoHrdConfig config = Grpo(name);
    EXPECT_EQ(config.optimizer().zero_stage(), 2);
    // Each of the eight GPUs generates its share of a step's samples at once.
    EXPECT_EQ(8 * config.sampling().engine().max_num_seqs(),
              config.prompts_per_step() * config.group_size());
    // All tasks count, in training as in evaluations.
    EXPECT_FALSE(config.tasks().preflight());
    EXPECT_FALSE(config.tasks().preflight_held_out());
    EXPECT_EQ(config.tasks().sampling(), TasksConfig::PASSES);
  }
}

TEST(Configs, ThePapersReinforcementLearningDoesNotStartWithoutAWordOnTheJudge) {
  for (const std::string& name : GrpoFiles()) {
    const absl::Status refused = LoadGrpoHrdConfig(PathOf(name), {}).status();
    EXPECT_TRUE(absl::StrContains(refused.message(), "verifier.judge.endpoint is empty"))
        << refused;
    const auto without = LoadGrpoHrdConfig(PathOf(name), {"verifier.judge.mode=NONE"});
    EXPECT_TRUE(without.ok()) << without.status();
  }
}

TEST(Configs, GrpoHrdMiniMentionsEveryField) {
  const auto config = LoadGrpoHrdConfig(PathOf("grpo_hrd_mini.textproto"), {});
  EXPECT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->verifier().judge().mode(), JudgeConfig::NONE);
  EXPECT_EQ(config->verifier().rules(), VerifierConfig::STRICT);
  const std::string text = TextOf("grpo_hrd_mini.textproto");
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
