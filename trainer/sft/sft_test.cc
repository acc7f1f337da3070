// Runs the program //trainer:sft: whole runs, kills, signals, MPI, bad input.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/subprocess.h"
#include "gtest/gtest.h"
#include "model/memory/memory_plan.h"
#include "nlohmann/json.hpp"
#include "parallel/testing/mpi_launch.h"
#include "trainer/config/config.h"
#include "trainer/optimizer/adamw.h"
#include "trainer/sft/sft_run.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

constexpr int kSteps = 120;

class SftTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto dir = MakeTempDirectory("sft");
    ASSERT_TRUE(dir.ok());
    dir_ = *dir;
    WriteTinyModel(dir_ + "/model");
    const auto program = Runfile("trainer/sft/sft");
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *program;
    // The response repeats the prompt's letter, which is learnable within a hundred steps.
    Philox random(1);
    std::string text;
    for (int i = 0; i < 300; ++i) {
      const char letter = static_cast<char>('a' + random.Below(4));
      const nlohmann::json line = {{"prompt", absl::StrCat("say ", std::string(1, letter), ":")},
                                   {"response", std::string(2 + random.Below(8), letter)}};
      text += line.dump() + "\n";
    }
    ASSERT_TRUE(WriteFileAtomic(dir_ + "/data.jsonl", text).ok());
    const std::string config = absl::StrCat(
        "policy { dir: '", dir_, "/model' random_init: true device: 'cpu' save_dtype: FLOAT32 }\n",
        "train_data: '", dir_, "/data.jsonl'\neval_data: '", dir_, "/data.jsonl'\n",
        "optimizer { learning_rate: 1e-2 schedule: COSINE warmup_steps: 5 weight_decay: 0.1 }\n",
        "checkpoint { every: 10 }\nbatch_size: 12\nsteps: ", kSteps,
        "\nmicro_batch_tokens: 100\neval_every: 60\neval_samples: 20\nlog_every: 1\nthreads: 1\n");
    ASSERT_TRUE(WriteFileAtomic(dir_ + "/c.textproto", config).ok());
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  std::vector<std::string> Command(const std::string& out,
                                   std::vector<std::string> sets = {}) const {
    std::vector<std::string> argv = {program_, "--config=" + dir_ + "/c.textproto", "--set",
                                     "output_dir=" + dir_ + "/" + out};
    for (const std::string& set : sets) argv.push_back("--set=" + set);
    return argv;
  }

  CommandResult Run(const std::vector<std::string>& argv) const {
    RunCommandOptions options;
    options.timeout = absl::Seconds(100);
    options.env = MpiTestEnvironment();
    const auto result = RunCommand(argv, options);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->timed_out);
    return *result;
  }

  // Starts the program and sends `signal` once metrics.jsonl has a line of step `step`.
  ExitStatus SignalAt(const std::string& out, int step, int signal) const {
    SubprocessOptions options;
    options.argv = Command(out);
    options.out = options.err = Stdio::Null();
    auto process = Subprocess::Start(options);
    EXPECT_TRUE(process.ok()) << process.status();
    const std::string wanted = absl::StrCat("\"step\":", step, ",");
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (absl::Now() < deadline) {
      const auto metrics = ReadFile(dir_ + "/" + out + "/metrics.jsonl");
      if (metrics.ok() && metrics->find(wanted) != std::string::npos) break;
      absl::SleepFor(absl::Milliseconds(1));
    }
    process->Signal(signal);
    const auto status = process->Wait(absl::Seconds(60));
    EXPECT_TRUE(status.has_value());
    return status.value_or(ExitStatus());
  }

  // The values of field `name` of metrics.jsonl, by step.
  std::map<int, double> Metric(const std::string& out, const std::string& name) const {
    std::map<int, double> values;
    const auto text = ReadFile(dir_ + "/" + out + "/metrics.jsonl");
    EXPECT_TRUE(text.ok()) << text.status();
    for (const auto& line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
      const auto json = nlohmann::json::parse(std::string(line));
      EXPECT_TRUE(values.emplace(json["step"].get<int>(), json[name].get<double>()).second) << line;
    }
    return values;
  }

  std::string Weights(const std::string& out) const {
    const auto bytes = ReadFile(dir_ + "/" + out + "/model/model.safetensors");
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.value_or("");
  }

  std::string dir_, program_;
};

TEST_F(SftTest, LearnsAndWritesAModelThatLoads) {
  const CommandResult result = Run(Command("run"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("/run/model"), std::string::npos) << result.out;
  const std::map<int, double> loss = Metric("run", "loss");
  ASSERT_EQ(loss.size(), kSteps);
  EXPECT_GT(loss.at(0), 5);  // ln 272 = 5.6
  EXPECT_LT(loss.at(kSteps - 1), 0.6);
  PolicyConfig config = TinyPolicyConfig(dir_ + "/run/model");
  config.set_random_init(false);
  EXPECT_TRUE(LoadPolicy(config, {.threads = 1}).ok());

  // Running the command of a finished run again changes nothing.
  const std::string weights = Weights("run");
  EXPECT_EQ(Run(Command("run")).exit_code, 0);
  EXPECT_EQ(Weights("run"), weights);
  EXPECT_EQ(Metric("run", "loss"), loss);
}

TEST_F(SftTest, KilledRunsEndInTheSameBits) {
  ASSERT_EQ(Run(Command("whole")).exit_code, 0);
  // Killed before the first checkpoint, between two, and again after resuming.
  for (const int step : {3, 34, 71}) {
    EXPECT_EQ(SignalAt("killed", step, SIGKILL).signal, SIGKILL) << "ended before the kill";
  }
  const CommandResult last = Run(Command("killed"));
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_NE(last.err.find("Resuming after step"), std::string::npos) << last.err;
  EXPECT_TRUE(Weights("killed") == Weights("whole"));
  EXPECT_EQ(Metric("killed", "loss"), Metric("whole", "loss"));
}

TEST_F(SftTest, ASignalWritesACheckpointAndAsksToBeRequeued) {
  const ExitStatus status = SignalAt("stopped", 13, SIGUSR1);
  EXPECT_EQ(status.exit_code, 75);
  const auto checkpoints = ListDirectory(dir_ + "/stopped/checkpoints");
  ASSERT_TRUE(checkpoints.ok());
  EXPECT_GT(checkpoints->back(), "step_000013");
  ASSERT_EQ(Run(Command("stopped")).exit_code, 0);
  ASSERT_EQ(Run(Command("whole")).exit_code, 0);
  EXPECT_TRUE(Weights("stopped") == Weights("whole"));
}

TEST_F(SftTest, LessMemoryGivesTheSameBitsOrIsRefused) {
  const ModelConfig model = TinyModelConfig();
  const StepShape step{.tokens = 100, .max_length = 60, .element_bytes = 4};
  const ResidentMemory held = ResidentMemoryForTraining(
      model, {.element_bytes = 4, .state_bytes = AdamW::StateBytes(at::kFloat, 1)});
  const MemoryPlan all = PlanMemory(model, step, held, {}).value();
  // A memory limit that is too small by a third of the kept activations.
  const double gib = static_cast<double>(all.peak_bytes - all.kept_bytes / 3) / (1 << 30);
  const std::vector<std::string> sets = {"steps=6", "max_sequence_tokens=60"};
  const CommandResult free = Run(Command("free", sets));
  ASSERT_EQ(free.exit_code, 0) << free.err;
  EXPECT_EQ(free.err.find("predicted peak"), std::string::npos);
  const CommandResult tight =
      Run(Command("tight", {sets[0], sets[1], absl::StrFormat("memory_gib=%.12f", gib)}));
  ASSERT_EQ(tight.exit_code, 0) << tight.err;
  EXPECT_NE(tight.err.find("recomputed in"), std::string::npos) << tight.err;
  EXPECT_TRUE(Weights("tight") == Weights("free"));
  const CommandResult refused = Run(Command("refused", {sets[0], sets[1], "memory_gib=0.0000001"}));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("a micro-batch of 100 tokens needs at least"), std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("(micro_batch_tokens"), std::string::npos) << refused.err;
}

TEST_F(SftTest, TwoRanksHaveTheSameLossesAsOne) {
  ASSERT_EQ(Run(Command("one", {"steps=15"})).exit_code, 0);
  for (const std::string stage : {"1", "2"}) {
    const std::string run = "two_" + stage;
    const CommandResult two =
        Run(MpirunCommand(2, Command(run, {"steps=15", "optimizer.zero_stage=" + stage})));
    ASSERT_EQ(two.exit_code, 0) << two.err;
    for (const char* name : {"loss", "gradient_norm", "tokens", "response_tokens"}) {
      const std::map<int, double> a = Metric("one", name), b = Metric(run, name);
      ASSERT_EQ(a.size(), 15);
      ASSERT_EQ(b.size(), 15);
      for (const auto& [step, value] : a) {
        EXPECT_NEAR(b.at(step), value, 2e-4 * std::abs(value)) << name << " of step " << step;
      }
    }
  }
}

// Batches with long and short examples, some of which are dropped, so that one of three ranks has
// no example in some steps.
TEST_F(SftTest, AnyNumberOfRanksLearnsTheSameExamplesInEachStep) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    const nlohmann::json line = {{"prompt", absl::StrCat("say ", i, ":")},
                                 {"response", std::string(i % 3 == 0 ? 150 : 3 + i, 'a')}};
    text += line.dump() + "\n";
  }
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/long.jsonl", text).ok());
  const std::vector<std::string> sets = {"steps=8",
                                         "batch_size=4",
                                         "eval_every=1",
                                         "max_sequence_tokens=100",
                                         "micro_batch_tokens=120",
                                         "train_data=" + dir_ + "/long.jsonl",
                                         "eval_data=" + dir_ + "/long.jsonl"};
  ASSERT_EQ(Run(Command("one", sets)).exit_code, 0);
  const std::map<int, double> dropped = Metric("one", "dropped");
  int few = 0;
  for (const auto& [step, count] : dropped) few += count >= 2 && count < 4 ? 1 : 0;
  EXPECT_GT(few, 0) << "no step leaves a rank of three without an example";
  for (const int ranks : {2, 3}) {
    const std::string out = absl::StrCat("ranks_", ranks);
    const CommandResult result = Run(MpirunCommand(ranks, Command(out, sets)));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    for (const char* name : {"tokens", "response_tokens", "dropped"}) {
      EXPECT_EQ(Metric(out, name), Metric("one", name)) << name;
    }
    for (const char* name : {"loss", "gradient_norm", "eval_loss"}) {
      const std::map<int, double> a = Metric("one", name), b = Metric(out, name);
      ASSERT_EQ(a.size(), 8);
      ASSERT_EQ(b.size(), 8);
      for (const auto& [step, value] : a) {
        EXPECT_NEAR(b.at(step), value, 2e-4 * std::abs(value)) << name << " of step " << step;
      }
    }
  }
}

// The pairs of data.jsonl in every other form.
TEST_F(SftTest, EveryFormOfTheDataLearnsTheSame) {
  const auto data = ReadFile(dir_ + "/data.jsonl");
  ASSERT_TRUE(data.ok());
  nlohmann::json array = nlohmann::json::array();
  std::map<std::string, std::string> files;
  for (const auto& line : absl::StrSplit(*data, '\n', absl::SkipEmpty())) {
    const auto pair = nlohmann::json::parse(std::string(line));
    const nlohmann::json &prompt = pair["prompt"], &response = pair["response"];
    const auto turn = [](const char* role, const nlohmann::json& text) {
      return nlohmann::json({{"role", role}, {"content", text}});
    };
    const auto add = [&](const char* name, const nlohmann::json& record) {
      files[name] += record.dump() + "\n";
    };
    array.push_back(pair);
    add("messages", {{"messages", {turn("user", prompt), turn("assistant", response)}}});
    add("completion", {{"prompt", prompt}, {"completion", response}});
    add("share",
        {{"conversations",
          {{{"from", "human"}, {"value", prompt}}, {{"from", "gpt"}, {"value", response}}}}});
    add("alpaca", {{"instruction", prompt}, {"input", ""}, {"output", response}});
    // As Python writes it.
    files["nan"] += pair.dump().substr(0, pair.dump().size() - 1) + ", \"speedup\": NaN}\n";
  }
  files["array"] = array.dump(2);
  const std::vector<std::string> sets = {"steps=4", "eval_samples=0"};
  ASSERT_EQ(Run(Command("pairs", sets)).exit_code, 0);
  for (const auto& [name, text] : files) {
    ASSERT_TRUE(WriteFileAtomic(dir_ + "/" + name, text).ok());
    const CommandResult result =
        Run(Command("of_" + name, {sets[0], sets[1], "train_data=" + dir_ + "/" + name}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find(name + ": 300 examples ("), std::string::npos) << result.err;
    EXPECT_TRUE(Weights("of_" + name) == Weights("pairs")) << name;
  }
}

TEST_F(SftTest, AllDataIsCheckedBeforeTheFirstStep) {
  const auto data = ReadFile(dir_ + "/data.jsonl");
  ASSERT_TRUE(data.ok());
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/bad.jsonl",
                              *data + "{\"prompt\": \"say a:\", \"res\n{\"prompt\": 1}\n")
                  .ok());
  const CommandResult result = Run(Command("bad", {"train_data=" + dir_ + "/bad.jsonl"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("bad.jsonl:301: this is no JSON from byte "), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("; 1 more bad examples follow"), std::string::npos) << result.err;
  EXPECT_FALSE(FileExists(dir_ + "/bad/metrics.jsonl"));
}

TEST_F(SftTest, ARunThatWouldLearnFromNothingIsRefused) {
  // A pair has 6 tokens of prompt, 2 to 9 of response, and the end token.
  const CommandResult none = Run(Command("none", {"max_sequence_tokens=7"}));
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(
      none.err.find("train_data: all 300 examples are longer than max_sequence_tokens (7; the "
                    "shortest has 9 tokens)"),
      std::string::npos)
      << none.err;
  EXPECT_FALSE(FileExists(dir_ + "/none/metrics.jsonl"));
  const CommandResult some = Run(Command("some", {"max_sequence_tokens=10", "steps=2"}));
  EXPECT_EQ(some.exit_code, 0) << some.err;
  EXPECT_NE(
      some.err.find(" of 300 examples are longer than max_sequence_tokens (10; the longest has "
                    "16 tokens) and are left out"),
      std::string::npos)
      << some.err;
}

TEST_F(SftTest, TheEndSaysTheSameOfLongExamplesAsTheStart) {
  // Five epochs use each long example five times.
  const CommandResult result = Run(Command("run", {"max_sequence_tokens=15", "steps=125"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string part = " of 300 examples are longer than max_sequence_tokens (15; ";
  const std::vector<std::string> lines = absl::StrSplit(result.err, '\n');
  std::vector<std::string> said;
  for (const std::string& line : lines) {
    const size_t at = line.find("train_data: ");
    if (line.find(part) != std::string::npos && at != std::string::npos) {
      said.push_back(line.substr(at));
    }
    EXPECT_EQ(line.find("examples were longer"), std::string::npos) << line;
  }
  ASSERT_EQ(said.size(), 2) << result.err;
  EXPECT_EQ(said[0], said[1]);
}

TEST_F(SftTest, EmptyResponsesAreCountedAndARunOfThemAloneIsRefused) {
  const std::string empty =
      "{\"prompt\": \"say a:\", \"response\": \"\"}\n"
      "{\"prompt\": \"say b:\", \"response\": \" \\n\"}\n";
  const std::string full = "{\"prompt\": \"say a:\", \"response\": \"aaaaaaaa\"}\n";
  const std::string path = dir_ + "/empty.jsonl";
  const std::vector<std::string> sets = {"steps=2", "eval_samples=0", "train_data=" + path};
  ASSERT_TRUE(WriteFileAtomic(path, empty).ok());
  const CommandResult none = Run(Command("none", sets));
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("train_data: all 2 examples have an empty response, so there is nothing "
                          "to learn but the end of a turn"),
            std::string::npos)
      << none.err;
  EXPECT_FALSE(FileExists(dir_ + "/none/metrics.jsonl"));
  ASSERT_TRUE(WriteFileAtomic(path, empty + full).ok());
  const CommandResult some = Run(Command("some", sets));
  EXPECT_EQ(some.exit_code, 0) << some.err;
  EXPECT_NE(some.err.find("train_data: 2 examples have an empty response and teach only the end "
                          "of a turn"),
            std::string::npos)
      << some.err;
  const CommandResult mixed =
      Run(Command("mixed", {sets[0], sets[1], sets[2], "max_sequence_tokens=10"}));
  EXPECT_EQ(mixed.exit_code, 1);
  EXPECT_NE(mixed.err.find("train_data: of 3 examples 1 are longer than max_sequence_tokens (10) "
                           "and the other 2 have an empty response"),
            std::string::npos)
      << mixed.err;
}

TEST_F(SftTest, AResumedRunUsesTheTokensOfTheFirstStart) {
  const std::vector<std::string> sets = {"steps=3"};
  const CommandResult first = Run(Command("run", sets));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.err.find("kept in " + dir_ + "/run/cache/train.tokens"), std::string::npos)
      << first.err;
  const CommandResult second = Run(Command("run", {"steps=6"}));
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE(second.err.find("tokens of an earlier start: " + dir_ + "/run/cache/train.tokens"),
            std::string::npos)
      << second.err;
  // Damaged tokens are made again.
  const std::string cache = dir_ + "/run/cache/train.tokens";
  auto bytes = ReadFile(cache);
  ASSERT_TRUE(bytes.ok());
  (*bytes)[200] = static_cast<char>((*bytes)[200] ^ 1);
  ASSERT_TRUE(WriteFileAtomic(cache, *bytes).ok());
  const CommandResult third = Run(Command("run", {"steps=9"}));
  ASSERT_EQ(third.exit_code, 0) << third.err;
  EXPECT_NE(third.err.find("is not used, because the checksum of its tokens is wrong"),
            std::string::npos)
      << third.err;
  ASSERT_EQ(Run(Command("whole", {"steps=9"})).exit_code, 0);
  EXPECT_EQ(Metric("run", "tokens"), Metric("whole", "tokens"));
}

TEST_F(SftTest, BadUsageEndsInOneSentence) {
  const CommandResult result = Run(Command("bad", {"optimizer.learningrate=1"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("closest is 'learning_rate'"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("error: "), 0) << result.err;
  EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
}

TEST_F(SftTest, FailureEndsInOneSentence) {
  const CommandResult result = Run(Command("bad", {"policy.dir=" + dir_ + "/nowhere"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("policy.dir: '" + dir_ + "/nowhere' was found"), std::string::npos)
      << result.err;
}

TEST_F(SftTest, RanksWithDifferentConfigurationsAreRefused) {
  std::vector<std::string> command = MpirunCommand(1, Command("mixed", {"steps=2"}));
  const std::vector<std::string> other =
      Command("mixed", {"steps=2", "optimizer.learning_rate=0.5"});
  for (const char* const word : {":", "-n", "1"}) command.push_back(word);
  command.insert(command.end(), other.begin(), other.end());
  const CommandResult result = Run(command);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("rank 1 has another configuration than rank 0: modified: "
                            "optimizer.learning_rate"),
            std::string::npos)
      << result.err;
}

// Tests other error messages within this process.
TEST_F(SftTest, BadInputIsNamed) {
  const SignalHandler stop;
  auto ranks = ProcessGroup::Join(absl::Seconds(10));
  ASSERT_TRUE(ranks.ok());
  const auto fails = [&](std::vector<std::string> sets, const std::string& part) {
    sets.push_back("output_dir=" + dir_ + "/bad");
    std::swap(sets.front(), sets.back());  // the case's own folder, if any, must come last
    const auto config = LoadSftConfig(dir_ + "/c.textproto", sets);
    ASSERT_TRUE(config.ok()) << config.status();
    const absl::Status status = RunSft(*config, ranks->get(), stop).status();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(part), absl::string_view::npos) << status;
  };
  fails({"train_data=" + dir_ + "/no.jsonl"}, "no.jsonl");
  fails({"policy.random_init=false"}, "model.safetensors");
  fails({"policy.device=cuda:7"}, "cuda:7");
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/bad.jsonl", "{\"prompt\": \"x\"}\n").ok());
  fails({"train_data=" + dir_ + "/bad.jsonl"}, "bad.jsonl:1: the field \"response\" is missing");
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/file", "").ok());
  fails({"output_dir=" + dir_ + "/file/run"}, dir_ + "/file");

  // A truncated weight file.
  const auto config = LoadSftConfig(dir_ + "/c.textproto",
                                    {"output_dir=" + dir_ + "/run", "steps=1", "eval_samples=0"});
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_TRUE(RunSft(*config, ranks->get(), stop).ok());
  const std::string weights = dir_ + "/run/model/model.safetensors";
  ASSERT_EQ(truncate(weights.c_str(), *FileSize(weights) / 2), 0);
  fails({"policy.random_init=false", "policy.dir=" + dir_ + "/run/model"}, weights);
  // Another seed in a folder that holds a checkpoint.
  fails({"seed=5", "output_dir=" + dir_ + "/run"}, "was begun with another configuration");
}

}  // namespace
}  // namespace tritonrl
