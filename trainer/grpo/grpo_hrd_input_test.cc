// Runs with bad input and with failures of the machine.
#include "model/testing/mini_folders.h"
#include "trainer/grpo/testing/grpo_hrd_fixture.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

// A bad configuration ends the program with exit code 2 and one sentence that names the error.
TEST_F(GrpoHrdTest, BadConfigurationIsOneSentence) {
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/bad.textproto", "steps: 3\nlerning_rate: 1\n").ok());
  CommandResult result = Run({program_, "--config=" + dir_ + "/bad.textproto"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("bad.textproto:2:"));
  EXPECT_THAT(result.err, HasSubstr("lerning_rate"));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"optimizer.lerning_rate=1", "lerning_rate"},
      {"steps=many", "steps"},
      {"group_size=0", "group_size"},
      {"tasks.response_style=odd", "response_style"},
  };
  for (const auto& [set, part] : cases) {
    result = Run(Command("x", {set}));
    EXPECT_EQ(result.exit_code, 2) << set;
    EXPECT_THAT(result.err, HasSubstr(part));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST_F(GrpoHrdTest, BadFilesAreNamed) {
  const std::string mini = Runfile("model/mini").value();
  for (const char* name : {"short", "shape"}) {
    ASSERT_TRUE(CreateDirectories(Out(name)).ok());
    const std::vector<std::string> files = ListDirectory(mini).value();
    for (const std::string& file : files) {
      ASSERT_TRUE(
          WriteFileAtomic(Out(name) + "/" + file, ReadFile(mini + "/" + file).value()).ok());
    }
  }
  ASSERT_EQ(truncate((Out("short") + "/model.safetensors").c_str(), 100000), 0);
  auto shape = nlohmann::json::parse(ReadFile(mini + "/config.json").value());
  shape["intermediate_size"] = shape["intermediate_size"].get<int>() + 8;
  ASSERT_TRUE(WriteFileAtomic(Out("shape") + "/config.json", shape.dump()).ok());

  const std::string shard = WriteMiniWithMissingShard(Out("shard"));
  WriteMiniWithTemplate(Out("raises"), kRaisingTemplate);

  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"policy.dir=" + dir_ + "/none"}, dir_ + "/none"},
      {{"policy.dir=" + Out("short")}, Out("short") + "/model.safetensors"},
      {{"policy.dir=" + Out("shape")}, "mlp."},
      {{"policy.dir=" + Out("shard")}, shard + ": is missing, though"},
      {{"policy.dir=" + Out("raises")}, "policy.chat: " + RaisingTemplateError(Out("raises"))},
      {{"tasks.train=" + dir_ + "/notasks"}, dir_ + "/notasks"},
      {{"tasks.prompt_style=FULL", "tasks.prompt_file=" + dir_ + "/none.txt"}, dir_ + "/none.txt"},
      {{"sampling.max_response_tokens=100000"}, "positions"},
      {{"rollout_ranks=1"},
       "rollout_ranks is 1, but the job has 1 rank and one at least must learn"},
  };
  for (const auto& [sets, part] : cases) {
    const CommandResult result = Run(Command("x", sets));
    EXPECT_EQ(result.exit_code, 1) << part << "\n" << result.err;
    EXPECT_THAT(result.err, HasSubstr("error: "));
    EXPECT_THAT(result.err, HasSubstr(part));
    ASSERT_TRUE(RemoveTree(Out("x")).ok());
  }
  // No permission: even root cannot create folders in /sys.
  std::vector<std::string> forbidden = Command("x");
  forbidden.back() = "--set=output_dir=/sys/tritonrl_run";
  const CommandResult result = Run(forbidden);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("/sys/tritonrl_run: "));
}

TEST_F(GrpoHrdTest, TasksThatDoNotRunAreNamedAndLeftOut) {
  const std::string good = Runfile("tasks/mini/train/level1").value();
  const std::vector<std::string> names = ListDirectory(good).value();
  ASSERT_TRUE(CreateDirectories(Out("tasks/level1")).ok());
  const std::string raising =
      "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n    def forward(self, "
      "x):\n"
      "        return torch.relu(x) + torch.zeros(3, 5)\n\n\ndef get_inputs():\n"
      "    return [torch.randn(16, 64)]\n\n\ndef get_init_inputs():\n    return []\n";
  ASSERT_TRUE(WriteFileAtomic(Out("tasks/level1/1_raises.py"), raising).ok());
  ASSERT_TRUE(WriteFileAtomic(Out("tasks/level1/2_broken.py"), "def f(:\n").ok());
  ASSERT_TRUE(WriteFileAtomic(Out("tasks/level1/4_no_inputs.py"),
                              absl::StrReplaceAll(raising, {{"def get_inputs", "def inputs"}}))
                  .ok());
  const std::vector<std::string> sets = {"tasks.train=" + Out("tasks"), "eval.samples=0",
                                         "eval.greedy=false", "steps=1", "group_size=8"};
  // With these tasks alone there is nothing to learn from.
  CommandResult result = Run(Command("alone", sets));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("2_broken.py"));
  EXPECT_THAT(result.err, HasSubstr("4_no_inputs.py:"));
  EXPECT_THAT(result.err, HasSubstr(": function get_inputs() is missing"));
  EXPECT_THAT(result.err, HasSubstr("level1/1_raises"));
  // With a good task in addition the samples of the failing task are left out and counted.
  ASSERT_TRUE(
      WriteFileAtomic(Out("tasks/level1/3_good.py"), ReadFile(good + "/" + names[0]).value()).ok());
  // The two tasks are an epoch of one step.
  std::vector<std::string> epoch = sets;
  epoch.insert(epoch.end(), {"steps=0", "epochs=1"});
  result = Run(Command("beside", epoch));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Lines(Out("beside") + "/metrics.jsonl"), 1);
  EXPECT_THAT(result.err, HasSubstr("dropped (infra errors)"));
}

TEST_F(GrpoHrdTest, AFullDiskLosesNothing) {
  // A file system with space for one checkpoint but not two, which is then enlarged.
  const std::string disk = Out("disk");
  ASSERT_TRUE(CreateDirectories(disk).ok());
  std::string run;
  for (const std::string& part : Command("disk/run", {"eval.samples=0", "eval.greedy=false"})) {
    absl::StrAppend(&run, " '", part, "'");
  }
  const std::string script = absl::StrCat("mount -t tmpfs -o size=19m none ", disk, " || exit 90\n",
                                          run, "; echo first $?\n", "mount -o remount,size=200m ",
                                          disk, " || exit 91\n", run, "; echo second $?\n");
  std::vector<std::string> argv = {"unshare", "-m", "sh", "-c", script};
  if (getuid() != 0) argv[1] = "-rm";
  const CommandResult result = Run(argv);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("first 1"));
  EXPECT_THAT(result.err, HasSubstr("No space left on device"));
  EXPECT_THAT(result.err, HasSubstr("Resuming after step 1 of 3."));
  EXPECT_THAT(result.out, HasSubstr("second 0"));
}

TEST_F(GrpoHrdTest, WorkersThatDoNotStartEndTheRun) {
  // A Python interpreter that fails at once, and one that hangs.
  CommandResult result = Run(Command("false"), {{"TRITONRL_PYTHON", "/bin/false"}});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("error: "));
  const std::string hang = dir_ + "/hanging_python";
  ASSERT_TRUE(WriteFileAtomic(hang, "#!/bin/sh\nexec sleep 1000\n").ok());
  ASSERT_EQ(chmod(hang.c_str(), 0755), 0);
  ASSERT_EQ(chmod(dir_.c_str(), 0755), 0);
  result = Run(Command("hang", {"step_timeout_s=3"}), {{"TRITONRL_PYTHON", hang}});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("step 1: "));
  EXPECT_THAT(result.err, HasSubstr("not verified within the time allowed"));
}

// Without opinions the run would learn from the samples that no judge has to see.
TEST_F(GrpoHrdTest, AJudgeThatIsDownEndsTheRun) {
  const CommandResult result =
      Run(Command("judge", {"verifier.rules=PAPER", "verifier.judge.mode=REQUIRED",
                            "verifier.judge.endpoint=http://127.0.0.1:1/v1",
                            "verifier.judge.model=big", "verifier.judge.retries=0"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("the judge big has no opinion: the endpoint "
                                    "http://127.0.0.1:1/v1"));
  EXPECT_THAT(result.err, HasSubstr("error: "));
}

}  // namespace
}  // namespace tritonrl
