// Runs the program //trainer:grpo_hrd as a person would: whole runs, kills, signals, MPI, bad
// input. The policy is the committed one, the kernels are really compiled and executed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/subprocess.h"
#include "nlohmann/json.hpp"
#include "parallel/mpi_launch.h"
#include "trainer/grpo/sample_record.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kSteps = 3;

class GrpoHrdTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = MakeTempDirectory("grpo").value();
    program_ = Runfile("trainer/grpo/grpo_hrd").value();
    const std::string config = absl::StrCat(
        "policy { dir: 'model/mini' device: 'cpu' save_dtype: FLOAT32 }\n"
        "tasks { train: 'tasks/mini/train' held_out: 'tasks/mini/heldout' }\n"
        "sampling { max_prompt_tokens: 256 max_response_tokens: 640 slots: 16 }\n"
        "verifier { workers: 1 trials: 2 device_model: 'l40s_mini' }\n"
        "eval { samples: 2 max_tasks: 2 greedy: true }\n"
        "checkpoint { every: 1 keep: 2 }\n"
        "steps: ",
        kSteps, "\nprompts_per_step: 2\ngroup_size: 4\nthreads: 1\n");
    ASSERT_TRUE(WriteFileAtomic(dir_ + "/c.textproto", config).ok());
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  std::string Out(const std::string& out) const { return dir_ + "/" + out; }

  std::vector<std::string> Command(const std::string& out,
                                   const std::vector<std::string>& sets = {}) const {
    std::vector<std::string> argv = {program_, "--config=" + dir_ + "/c.textproto"};
    for (const std::string& set : sets) argv.push_back("--set=" + set);
    argv.push_back("--set=output_dir=" + Out(out));
    return argv;
  }

  CommandResult Run(const std::vector<std::string>& argv,
                    std::vector<std::pair<std::string, std::string>> env = {}) const {
    RunCommandOptions options;
    options.timeout = absl::Seconds(280);
    options.env = MpiTestEnvironment();
    options.env.insert(options.env.end(), env.begin(), env.end());
    const auto result = RunCommand(argv, options);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->timed_out) << result->err;
    return *result;
  }

  // Starts the program and sends `signal` as soon as `moment` is true.
  ExitStatus SignalWhen(const std::string& out, int signal,
                        const std::function<bool()>& moment) const {
    return SignalWhen(Command(out), signal, moment);
  }
  ExitStatus SignalWhen(const std::vector<std::string>& argv, int signal,
                        const std::function<bool()>& moment) const {
    SubprocessOptions options;
    options.argv = argv;
    options.env = MpiTestEnvironment();
    options.out = options.err = Stdio::File(dir_ + "/signalled.log");
    auto process = Subprocess::Start(options);
    EXPECT_TRUE(process.ok()) << process.status();
    for (int i = 0; i < 40000 && !moment(); ++i) {
      if (process->Wait(absl::Milliseconds(5)).has_value()) break;
    }
    EXPECT_TRUE(moment()) << ReadFile(dir_ + "/signalled.log").value();
    process->Signal(signal);
    const auto status = process->Wait(absl::Seconds(120));
    EXPECT_TRUE(status.has_value());
    return status.value_or(ExitStatus());
  }

  int Lines(const std::string& path) const {
    const auto text = ReadFile(path);
    return text.ok() ? static_cast<int>(std::count(text->begin(), text->end(), '\n')) : 0;
  }

  // metrics.jsonl without what depends on the clock.
  std::vector<std::string> Metrics(const std::string& out) const {
    std::vector<std::string> lines;
    const std::string text = ReadFile(Out(out) + "/metrics.jsonl").value();
    const std::vector<std::string> all = absl::StrSplit(text, '\n', absl::SkipEmpty());
    for (const std::string& line : all) {
      auto object = nlohmann::json::parse(line);
      for (const char* field :
           {"tokens_per_s", "seconds_rollout", "seconds_verify", "seconds_verify_run",
            "seconds_learn", "seconds_step", "cache_hit_rate"}) {
        EXPECT_EQ(object.erase(field), 1) << field;
      }
      lines.push_back(object.dump());
    }
    return lines;
  }

  // What is the same in two runs of which one was interrupted.
  void ExpectSameRun(const std::string& a, const std::string& b) const {
    ExpectSameFiles(a, b);
    EXPECT_EQ(Metrics(a), Metrics(b));
  }

  // The trained policy, the optimizer's state and all samples.
  void ExpectSameFiles(const std::string& a, const std::string& b) const {
    for (const char* file : {"/model/model.safetensors", "/checkpoints/step_000003/optimizer.bin",
                             "/checkpoints/step_000003/model/model.safetensors"}) {
      EXPECT_TRUE(ReadFile(Out(a) + file).value() == ReadFile(Out(b) + file).value()) << file;
    }
    const auto files = ListDirectory(Out(a) + "/samples").value();
    EXPECT_EQ(files, ListDirectory(Out(b) + "/samples").value());
    for (const std::string& file : files) {
      EXPECT_EQ(Samples(a, file), Samples(b, file)) << file;
    }
  }

  // Numbers may differ by so much of themselves, and a hundredth of that.
  void ExpectNearMetrics(const std::string& one, const std::string& other, double tolerance) const {
    const std::vector<std::string> a = Metrics(one), b = Metrics(other);
    ASSERT_EQ(a.size(), b.size());
    for (size_t step = 0; step < a.size(); ++step) {
      const auto left = nlohmann::json::parse(a[step]), right = nlohmann::json::parse(b[step]);
      EXPECT_EQ(left["samples"], 8);
      for (const auto& [field, value] : left.items()) {
        if (!value.is_number()) continue;
        EXPECT_NEAR(value.get<double>(), right[field].get<double>(),
                    tolerance * (0.01 + std::abs(value.get<double>())))
            << field << " of step " << step + 1;
      }
    }
  }

  std::vector<std::string> Samples(const std::string& out, const std::string& file) const {
    std::vector<std::string> samples;
    const auto records = MergeRecords({ReadFile(Out(out) + "/samples/" + file).value()});
    EXPECT_TRUE(records.ok()) << records.status();
    for (const SampleRecord& record : *records) {
      samples.push_back(absl::StrCat(record.task_id, " ", record.index, " ", record.response, " ",
                                     record.verdict.outcome(), " ", record.reward_plan, " ",
                                     record.reward_code));
    }
    return samples;
  }

  std::string dir_, program_;
};

TEST_F(GrpoHrdTest, WholeRunThenKillsAndASignalChangeNothing) {
  const CommandResult whole = Run(Command("whole"));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  // What a person sees: a line a step, both evaluations, the table and where the files are.
  EXPECT_THAT(whole.err, HasSubstr("3/3"));
  EXPECT_THAT(whole.err, HasSubstr("speedup"));
  EXPECT_THAT(whole.err, HasSubstr("Held-out tasks after 0 steps"));
  EXPECT_THAT(whole.out, HasSubstr("before      after    change"));
  EXPECT_THAT(whole.out, HasSubstr("(modelled)"));
  EXPECT_THAT(whole.out, HasSubstr("report.html"));
  for (const char* file : {"/report.html", "/config.textproto", "/versions.json",
                           "/model/config.json", "/model/tokenizer.json", "/tensorboard"}) {
    EXPECT_TRUE(FileExists(Out("whole") + file)) << file;
  }
  EXPECT_EQ(Lines(Out("whole") + "/metrics.jsonl"), kSteps);
  EXPECT_EQ(Lines(Out("whole") + "/samples/step_000001.jsonl"), 8);
  EXPECT_EQ(Lines(Out("whole") + "/samples/eval_000003.jsonl"), 4);
  // The policy was trained: samples were right and wrong, and the weights moved.
  std::set<std::string> outcomes;
  const auto records =
      MergeRecords({ReadFile(Out("whole") + "/samples/step_000001.jsonl").value()});
  ASSERT_TRUE(records.ok()) << records.status();
  for (const SampleRecord& record : *records) {
    outcomes.insert(record.verdict.outcome());
  }
  EXPECT_GT(outcomes.size(), 1);
  EXPECT_TRUE(outcomes.count("correct") == 1);
  EXPECT_FALSE(
      ReadFile(Out("whole") + "/checkpoints/step_000002/model/model.safetensors").value() ==
      ReadFile(Out("whole") + "/model/model.safetensors").value());

  const std::string cut = Out("cut");
  // Killed in the middle of the first step, then with steps done, then asked to stop.
  EXPECT_EQ(
      SignalWhen("cut", SIGKILL, [&] { return Lines(cut + "/journal/verdicts_0.jsonl") >= 3; })
          .signal,
      SIGKILL);
  EXPECT_EQ(Lines(cut + "/metrics.jsonl"), 0);
  EXPECT_EQ(SignalWhen("cut", SIGKILL, [&] { return Lines(cut + "/metrics.jsonl") >= 2; }).signal,
            SIGKILL);
  const ExitStatus asked = SignalWhen("cut", SIGUSR1, [&] {
    return FileExists(cut + "/checkpoints/step_000003") ||
           Lines(cut + "/journal/verdicts_0.jsonl") > 1000;
  });
  EXPECT_EQ(asked.exit_code, 75);
  const CommandResult last = Run(Command("cut"));
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_THAT(last.err, HasSubstr("Going on after step 3 of 3."));
  ExpectSameRun("whole", "cut");

  // The same command once more: nothing is trained, the table is shown again.
  const CommandResult again = Run(Command("cut"));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("before      after    change"));
  ExpectSameRun("whole", "cut");

  // Another learning rate in the same folder is refused.
  const CommandResult other = Run(Command("cut", {"optimizer.learning_rate=1e-3"}));
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("begun with another configuration"));
  EXPECT_THAT(other.err, HasSubstr("learning_rate"));
}

// The next step's samples are begun early and outlive an update. Step 1 is before an evaluation of
// the weights it began with, so step 3 is the first that finds any.
TEST_F(GrpoHrdTest, SamplesBegunAheadSayHowOldTheirTokensAre) {
  for (const bool keep : {false, true}) {
    SCOPED_TRACE(keep ? "old cache" : "new cache");
    const std::string out = keep ? "keep" : "forget";
    const CommandResult run =
        Run(Command(out, {"sampling.ahead=true", absl::StrCat("sampling.keep_old_cache=", keep),
                          "sampling.max_guesses=4", "objective.importance_cap=2",
                          absl::StrCat("objective.optimizer_steps_per_epoch=", keep ? 2 : 1)}));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const std::string text = ReadFile(Out(out) + "/metrics.jsonl").value();
    std::vector<nlohmann::json> steps;
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      steps.push_back(nlohmann::json::parse(line));
    }
    ASSERT_EQ(steps.size(), 3u);
    for (int i = 0; i < 3; ++i) {
      const double stale = steps[i]["stale_token_rate"];
      EXPECT_EQ(stale > 0, i == 2) << i;
      EXPECT_LE(stale, 1);
      EXPECT_NEAR(steps[i]["importance"], 1, 0.1);
      EXPECT_EQ(steps[i]["truncated_fraction"], 0);
    }
    for (int i = 0; i < 3; ++i) {
      // Keys of older weights move what newer ones say a little.
      EXPECT_LT(steps[i]["logprob_max_diff"], keep && i == 2 ? 0.5 : 1e-3) << i;
    }
  }
}

TEST_F(GrpoHrdTest, TwoRanksGiveTheLossesOfOne) {
  const std::vector<std::string> sets = {"steps=2", "eval.samples=0", "eval.greedy=false"};
  const CommandResult one = Run(Command("one", sets));
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const CommandResult two = Run(MpirunCommand(2, Command("two", sets)));
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(Metrics("one").size(), 2);
  ExpectNearMetrics("one", "two", 1e-3);  // sums of single precision in another order
  EXPECT_EQ(Samples("one", "step_000001.jsonl"), Samples("two", "step_000001.jsonl"));

  // The same two ranks, for which a third one generates.
  std::vector<std::string> fed = sets;
  fed.push_back("rollout_ranks=1");
  const CommandResult three = Run(MpirunCommand(3, Command("three", fed)));
  ASSERT_EQ(three.exit_code, 0) << three.err;
  const char* model = "/model/model.safetensors";
  EXPECT_TRUE(ReadFile(Out("two") + model).value() == ReadFile(Out("three") + model).value());
}

// One rank learns what two others generate, through an interruption: all files are those of one
// process.
TEST_F(GrpoHrdTest, RanksThatOnlyGenerateChangeNothing) {
  const CommandResult one = Run(Command("one"));
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const std::vector<std::string> apart = MpirunCommand(3, Command("apart", {"rollout_ranks=2"}));
  SignalWhen(apart, SIGUSR1, [&] { return FileExists(Out("apart") + "/checkpoints/step_000001"); });
  EXPECT_LT(Lines(Out("apart") + "/metrics.jsonl"), kSteps);
  const CommandResult rest = Run(apart);
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("Going on after step"));
  ExpectSameFiles("one", "apart");
  ExpectNearMetrics("one", "apart", 1e-12);  // sums over the ranks in another order
}

// Samples of the next step are generated on one rank while another learns.
TEST_F(GrpoHrdTest, ARankThatOnlyGeneratesMayGoAhead) {
  const CommandResult run =
      Run(MpirunCommand(2, Command("ahead", {"rollout_ranks=1", "sampling.ahead=true",
                                             "eval.samples=0", "eval.greedy=false"})));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::vector<std::string> steps = Metrics("ahead");
  ASSERT_EQ(steps.size(), 3);
  for (int i = 0; i < 3; ++i) {
    const auto step = nlohmann::json::parse(steps[i]);
    EXPECT_EQ(step["samples"], 8);
    EXPECT_EQ(step["stale_token_rate"] > 0, i > 0) << i;
  }
}

// Each entry: what is wrong, the overrides, the exit code and a part of the one sentence.
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

  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"policy.dir=" + dir_ + "/none"}, dir_ + "/none"},
      {{"policy.dir=" + Out("short")}, Out("short") + "/model.safetensors"},
      {{"policy.dir=" + Out("shape")}, "mlp."},
      {{"tasks.train=" + dir_ + "/notasks"}, dir_ + "/notasks"},
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
  // No permission: not even root makes folders in /sys.
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
  const std::vector<std::string> sets = {"tasks.train=" + Out("tasks"), "eval.samples=0",
                                         "eval.greedy=false", "steps=1", "group_size=8"};
  // Alone it leaves nothing to learn from.
  CommandResult result = Run(Command("alone", sets));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("2_broken.py"));
  EXPECT_THAT(result.err, HasSubstr("level1/1_raises"));
  // Beside a good one its samples are left out and counted.
  ASSERT_TRUE(
      WriteFileAtomic(Out("tasks/level1/3_good.py"), ReadFile(good + "/" + names[0]).value()).ok());
  result = Run(Command("beside", sets));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("left out (our faults)"));
}

TEST_F(GrpoHrdTest, AFullDiskLosesNothing) {
  // A file system that holds one checkpoint but not two, then a larger one.
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
  EXPECT_THAT(result.err, HasSubstr("Going on after step 1 of 3."));
  EXPECT_THAT(result.out, HasSubstr("second 0"));
}

TEST_F(GrpoHrdTest, WorkersThatDoNotStartEndTheRun) {
  // An interpreter that fails at once, and one that hangs.
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

}  // namespace
}  // namespace tritonrl
