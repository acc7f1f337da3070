// Runs //eval:kernelbench with the committed mini policy, real compilation and execution.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/testing/small_disk.h"
#include "model/testing/mini_folders.h"
#include "nlohmann/json.hpp"
#include "parallel/testing/mpi_launch.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

class KernelbenchTest : public ::testing::Test {
 protected:
  void SetUp() override { dir_ = MakeTempDirectory("kernelbench").value(); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  CommandResult Run(std::vector<std::string> flags, int ranks = 1) const {
    flags.insert(flags.begin(), Runfile("eval/kernelbench").value());
    RunCommandOptions options;
    if (ranks > 1) {
      flags.push_back("--tensor_parallel=" + std::to_string(ranks));
      flags = MpirunCommand(ranks, flags);
      options.env = MpiTestEnvironment();
    }
    options.timeout = absl::Seconds(200);
    auto result = RunCommand(flags, options);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->timed_out) << result->err;
    return *result;
  }

  std::string dir_;
};

TEST_F(KernelbenchTest, ReportsTheMaximumOverSamples) {
  // One valid task file and one invalid file.
  ASSERT_TRUE(CreateDirectories(dir_ + "/tasks/level1").ok());
  const std::string source = Runfile("tasks/mini/heldout/level1").value();
  const std::string name = ListDirectory(source).value().at(0);
  ASSERT_TRUE(
      WriteFileAtomic(dir_ + "/tasks/level1/" + name, ReadFile(source + "/" + name).value()).ok());
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/tasks/level1/99_broken.py", "def f(:\n").ok());
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/tasks/level1/98_no_inputs.py",
                              absl::StrReplaceAll(ReadFile(source + "/" + name).value(),
                                                  {{"def get_inputs", "def inputs"}}))
                  .ok());
  const std::vector<std::string> flags = {"--model=model/mini",
                                          "--tasks=" + dir_ + "/tasks",
                                          "--k=4",
                                          "--prompt_style=mini",
                                          "--max_num_seqs=8",
                                          "--threads=1",
                                          "--set=workers=1",
                                          "--set=device_model=l40s_mini",
                                          "--set=trials=2",
                                          "--output=" + dir_ + "/out"};
  const CommandResult result = Run(flags);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("left out:"));
  EXPECT_THAT(result.err, HasSubstr("99_broken.py"));
  EXPECT_THAT(result.err, HasSubstr("left out: " + dir_ + "/tasks/level1/98_no_inputs.py:"));
  EXPECT_THAT(result.err, HasSubstr(": function get_inputs() is missing\n"));
  EXPECT_THAT(result.out, HasSubstr("max over 4"));
  EXPECT_THAT(result.out, HasSubstr("fast_2 (modelled)"));
  EXPECT_THAT(result.out, HasSubstr("pass@1"));
  const auto json = nlohmann::json::parse(ReadFile(dir_ + "/out/results.json").value());
  EXPECT_EQ(json["tasks"], 1);
  EXPECT_EQ(json["samples"], 4);
  EXPECT_EQ(json["modelled"], true);
  EXPECT_EQ(json["response_style"], "thinking");  // the mini policy's tokenizer has </think>
  EXPECT_EQ(json["code_block"], "only");
  EXPECT_THAT(result.err, HasSubstr("Responses are read as thinking (its tokenizer.json has"));
  EXPECT_THAT(result.err, HasSubstr("Prompts: mini, 0 tokens of fixed text; the longest of 1"));
  EXPECT_THAT(result.err, HasSubstr("Rules: strict, judge: none.\n"));
  // The maximum over the samples of one task is 0 or 1; the mean is between 0 and 1.
  const double best = json["correct"], mean = json["pass_at"]["1"]["correct"];
  EXPECT_EQ(best, mean > 0 ? 1.0 : 0.0);
  EXPECT_EQ(json["pass_at"]["4"]["correct"], best);
  EXPECT_GE(json["valid"], json["compiled"]);
  EXPECT_GE(json["compiled"], json["correct"]);

  // The second run reuses the stored verdicts and prints the same table.
  const CommandResult again = Run(flags);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, result.out);

  // What was generated is judged again, to the same figures.
  const std::vector<std::string> stored_flags = {"--generations=" + dir_ + "/out",
                                                 "--tasks=" + dir_ + "/tasks",
                                                 "--set=workers=1",
                                                 "--set=device_model=l40s_mini",
                                                 "--set=trials=2",
                                                 "--output=" + dir_ + "/again",
                                                 "--without_robust"};
  const CommandResult stored = Run(stored_flags);
  ASSERT_EQ(stored.exit_code, 0) << stored.err;
  EXPECT_THAT(stored.out, HasSubstr("max over the first 4"));
  EXPECT_THAT(stored.out, HasSubstr("fast_2 (modelled)"));
  const auto figures = nlohmann::json::parse(ReadFile(dir_ + "/again/results.json").value());
  EXPECT_EQ(figures["samples_per_task"], 4);
  EXPECT_EQ(figures["tasks_version"], "unknown");
  for (const auto& row : figures["estimates"]) {
    if (row["k"] == 4) {
      EXPECT_EQ(row["correct"][0], best);
    }
    EXPECT_GE(row["open_correct"][0], row["correct"][0]);
    if (row["k"] == 1 && row["estimator"] == "unbiased") {
      EXPECT_EQ(row["correct"][0], mean);
    }
  }
  EXPECT_EQ(Run(stored_flags).out, stored.out);
}

TEST_F(KernelbenchTest, WrongGenerationsAreNamed) {
  const std::string file = dir_ + "/generations.jsonl";
  ASSERT_TRUE(WriteFileAtomic(file, R"({"task": "level1/none", "sample": 0, "code": "x = 1"})"
                                    "\n")
                  .ok());
  const std::string tasks = "--tasks=" + Runfile("tasks/mini/heldout").value();
  const CommandResult unknown = Run({"--generations=" + file, tasks});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("level1/none"));
  EXPECT_THAT(unknown.err, HasSubstr("line 1"));
  const CommandResult both = Run({"--generations=" + file, tasks, "--model=model/mini"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("not both"));
}

TEST_F(KernelbenchTest, AModelSpreadOverTwoRanksGivesTheSameTable) {
  const std::string tasks = Runfile("tasks/mini/heldout").value();
  const std::vector<std::string> flags = {
      "--model=model/mini",           "--tasks=" + tasks, "--max_tasks=1", "--k=2",
      "--prompt_style=mini",          "--max_num_seqs=2", "--threads=1",   "--set=workers=1",
      "--set=device_model=l40s_mini", "--temperature=0",  "--set=trials=1"};
  const CommandResult one = Run(flags);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const CommandResult two = Run(flags, 2);
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(two.out, one.out);
  // An error that only rank 0 can have ends both ranks and is printed once.
  const CommandResult none = Run({"--model=model/mini", "--tasks=" + dir_ + "/none"}, 2);
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("error: rank 0: '" + dir_ + "/none' was found neither"));
}

// Fewer candidates than end the run (JudgeQueue::Health): the table says why they are missing.
TEST_F(KernelbenchTest, AJudgeThatIsDownIsNamed) {
  const std::string tasks = Runfile("tasks/mini/heldout").value();
  const CommandResult result = Run(
      {"--model=model/mini", "--tasks=" + tasks, "--max_tasks=8", "--k=3", "--prompt_style=mini",
       "--max_num_seqs=8", "--threads=1", "--set=workers=1", "--set=device_model=l40s_mini",
       "--set=trials=1", "--set=judge.endpoint=http://127.0.0.1:1/v1", "--set=judge.model=big",
       "--set=judge.retries=0"});
  EXPECT_THAT(result.out, HasSubstr(". The first: the judge big has no opinion: the "
                                    "endpoint http://127.0.0.1:1/v1"))
      << result.err;
}

TEST_F(KernelbenchTest, WithoutAnyVerifiedSampleThereIsNoTable) {
  const std::string tasks = Runfile("tasks/mini/heldout").value();
  const CommandResult result =
      Run({"--model=model/mini", "--tasks=" + tasks, "--max_tasks=2", "--k=1",
           "--prompt_style=mini", "--temperature=0", "--max_num_seqs=8", "--threads=1",
           "--set=workers=1", "--set=device_model=l40s_mini", "--set=trials=1",
           "--set=judge.endpoint=http://127.0.0.1:1/v1", "--set=judge.model=big",
           "--set=judge.retries=0", "--output=" + dir_ + "/out"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("error: no sample could be verified because of infrastructure "
                                    "errors: 2 samples of 2 tasks were dropped. The first: the "
                                    "judge big has no opinion: the endpoint http://127.0.0.1:1/"));
  EXPECT_FALSE(FileExists(dir_ + "/out/results.json"));
}

TEST_F(KernelbenchTest, BadFlagsAreNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--tasks=x"}, "--model is missing"},
      {{"--model=x"}, "--tasks is missing"},
      {{"--model=x", "--tasks=y", "--prompt_style=odd"}, "odd"},
      {{"--model=x", "--tasks=y", "--response_style=odd"}, "response_style \"odd\" is unknown"},
      {{"--model=x", "--tasks=y", "--code_block=odd"}, "code_block \"odd\" is unknown"},
      {{"--model=x", "--tasks=y", "--prompt_file=/no/prompt.txt"}, "/no/prompt.txt"},
      {{"--model=x", "--tasks=y", "--set=wrokers=1"}, "wrokers"},
      {{"--model=x", "--tasks=y", "--rules=exact"}, "STRICT, PAPER, ROBUST"},
  };
  for (const auto& [flags, part] : cases) {
    const CommandResult result = Run(flags);
    EXPECT_EQ(result.exit_code, 2) << part;
    EXPECT_THAT(result.err, HasSubstr(part));
  }
  const CommandResult result = Run({"--model=/no/model", "--tasks=" + dir_, "--k=1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("/no/model"));
}

TEST_F(KernelbenchTest, FoldersThatCannotBeLoadedAreNamed) {
  const std::string tasks = "--tasks=" + Runfile("tasks/mini/heldout/level1").value();
  const std::string shard = WriteMiniWithMissingShard(dir_ + "/shard");
  WriteMiniWithTemplate(dir_ + "/raises", kRaisingTemplate);
  const std::pair<std::string, std::string> cases[] = {
      {"/shard", "error: " + shard + ": is missing, though model.safetensors.index.json lists it"},
      {"/raises", "error: policy.chat: " + RaisingTemplateError(dir_ + "/raises")},
  };
  for (const auto& [folder, sentence] : cases) {
    const CommandResult result =
        Run({"--model=" + dir_ + folder, tasks, "--k=1", "--threads=1", "--set=workers=1"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr(sentence));
  }
}

// On disks of several sizes: a sample that was generated is kept, and never generated again.
TEST_F(KernelbenchTest, AFullDiskLosesNoTable) {
  const auto command = [&](const std::string& out) {
    return std::vector<std::string>{Runfile("eval/kernelbench").value(),
                                    "--model=" + Runfile("model/mini").value(),
                                    "--tasks=" + Runfile("tasks/mini/heldout/level1").value(),
                                    "--max_tasks=3",
                                    "--k=2",
                                    "--prompt_style=mini",
                                    "--max_response_tokens=20",
                                    "--max_num_seqs=2",
                                    "--threads=1",
                                    "--set=workers=1",
                                    "--set=device_model=l40s_mini",
                                    "--output=" + out};
  };
  const auto whole = RunCommand(command(dir_ + "/whole"), {.timeout = absl::Seconds(200)});
  ASSERT_TRUE(whole.ok() && whole->exit_code == 0) << whole->err;
  const std::string table = whole->out.substr(0, whole->out.find("Written to"));
  // A group needs 2 kB for its samples and 16 kB for their verdicts, in pages of 4 KiB.
  for (const int64_t bytes : {4096, 24576, 28672, 32768, 40960}) {
    const std::string name = absl::StrCat(dir_, "/", bytes), out = dir_ + "/out";
    ASSERT_TRUE(CreateDirectories(name).ok());
    const auto runs = RunOnASmallDisk(command(out), out, bytes, name + "/full", name + "/done");
    ASSERT_TRUE(runs.ok()) << runs.status();
    if (!runs->possible) GTEST_SKIP() << "this test needs the right to mount a file system";
    if (bytes == 4096) {
      EXPECT_EQ(runs->first, 1) << runs->first_err;
    }
    if (runs->first != 0) {
      EXPECT_THAT(runs->first_err, HasSubstr("error: cannot write " + out + "/"));
      EXPECT_THAT(runs->first_err, HasSubstr("No space left on device; "));
      EXPECT_THAT(runs->first_err, HasSubstr("make room there and run the same command again"));
    }
    EXPECT_EQ(runs->second, 0) << runs->second_err;
    EXPECT_EQ(runs->second_out.find(table), 0) << runs->second_out;
    EXPECT_TRUE(FileExists(name + "/done/results.json"));
    const std::string before = ReadFile(name + "/full/generated.jsonl").value_or("");
    const std::string after = ReadFile(name + "/done/generated.jsonl").value_or("");
    EXPECT_EQ(after.find(before), 0) << "a kept sample is lost";
    EXPECT_EQ(std::count(after.begin(), after.end(), '\n'), 6) << "a sample was generated twice";
  }
}

}  // namespace
}  // namespace tritonrl
