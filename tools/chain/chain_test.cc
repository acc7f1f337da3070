// The whole way from KernelBook to a trained policy in miniature, by the programs that a user calls
// and without a network: import, distillation from a served policy, labels, variants, SFT, RL.
//
// The mini policy is trained on the mini suite. The tasks of this test have other forms: nested
// calls, inputs of four dimensions, parameters. To those with two tensors it mostly answers in the
// right form (a plan, then one program), to the others seldom, and a correct answer would be luck.
// So each task has several samples, which are kept by their form. Their syntax and functionality
// are checked and recorded, some of them pass through all layers of the verifier, and no step needs
// a correct one. The held-out tasks of the reinforcement learning are from the mini suite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/endpoint/testing/mock_endpoint.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "nlohmann/json.hpp"
#include "tasks/loader.h"
#include "tools/chain/testing/chain_fixture.h"
#include "tools/chain/testing/scripted_models.h"
#include "tools/distill/policy_server.h"

namespace tritonrl {
namespace {

using ::nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kTasks = 200;  // of the file of rows, those that the import keeps
constexpr int kSamples = 3;  // of each task

std::string SampleName(const json& line) {
  return absl::StrCat(line["task"].get<std::string>(), "#", line["sample"].get<int>());
}

std::set<std::string> TaskNames(const std::vector<json>& lines) {
  std::set<std::string> names;
  for (const json& line : lines) names.insert(line["task"].get<std::string>());
  return names;
}

class ChainTest : public ChainFixture {
 protected:
  std::vector<std::string> DistillFlags(const std::string& url) const {
    return {absl::StrCat("--endpoint=", url),
            "--model=mini",
            absl::StrCat("--api_key_variable=", kKeyVariable),
            "--prompt_file=mini",
            "--temperature=1",
            "--top_p=1",
            "--max_tokens=640",
            absl::StrCat("--samples=", kSamples),
            "--eval_share=0.1",
            "--keep=response"};
  }

  // The steps, in their order; each reads what the ones before it wrote.
  void Import() const;
  void Distill() const;
  void CheckTraces() const;
  void VerifyFully(const std::vector<std::string>& flags) const;
  void Label() const;
  void Augment() const;
  void Sft() const;
  void ReinforcementLearning() const;
  void CheckRun(const std::string& run, int training_tasks) const;
};

void ChainTest::Import() const {
  const auto python = FindPythonEnv();
  ASSERT_TRUE(python.ok()) << python.status();
  const std::string rows = dir_ + "/rows.parquet", kernelbench = dir_ + "/kernelbench";
  const auto made =
      RunCommand({python->interpreter, Data("tools/kernelbook/testing/make_kernelbook.py"),
                  "--out=" + rows, "--kernelbench=" + kernelbench},
                 {.env = python->Environment()});
  ASSERT_TRUE(made.ok() && made->ok()) << (made.ok() ? End(made->err) : "");
  const json expected = json::parse(made->out);
  ASSERT_GT(expected["rows"].get<int>(), kTasks);
  Run("tools/kernelbook/kernelbook", {"--in=" + rows, "--out=" + data_, "--workers=2",
                                      "--kernelbench=" + kernelbench, "--task_seconds=10"});
  const json summary = json::parse(Text(data_ + "/summary.json"));
  EXPECT_EQ(summary["rows"], expected["rows"]);
  EXPECT_EQ(summary["kept"], kTasks);
  std::map<std::string, int> left_out;
  int remaining = expected["rows"].get<int>();
  for (const json& stage : summary["stages"]) {
    for (const auto& [reason, count] : stage["reasons"].items()) {
      left_out[reason] = count.get<int>();
    }
    remaining -= stage["left_out"].get<int>();
    EXPECT_EQ(stage["remaining"], remaining) << stage["stage"];
  }
  EXPECT_EQ(left_out, (expected["left_out"].get<std::map<std::string, int>>()));
  EXPECT_EQ(TasksOf(data_ + "/tasks").size(), kTasks);
}

void ChainTest::Distill() const {
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/key", kKey, /*mode=*/0600).ok());
  auto server = PolicyServer::Start(
      Data("model/mini"),
      absl::StrCat("--device=cpu --max_num_seqs=64 --api_key_file=", dir_, "/key"),
      absl::Minutes(3));
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ((*server)->model(), "mini");
  const std::string traces = data_ + "/traces_mini";
  std::vector<std::string> flags = DistillFlags((*server)->url());
  const std::vector<std::string> all = {"--tasks=" + data_ + "/tasks", "--out=" + traces,
                                        "--verify=syntax"};
  // The key is needed.
  Run("tools/distill/distill",
      With(flags, {all[0], "--out=" + dir_ + "/refused", "--api_key_variable="}), /*exit_code=*/1);
  EXPECT_FALSE(FileExists(dir_ + "/refused/sft_train.jsonl"));

  Run("tools/distill/distill", With(flags, all));
  ASSERT_NO_FATAL_FAILURE(CheckTraces());

  // The same command asks nothing again: there is nobody to ask.
  server->reset();
  std::map<std::string, std::string> before;
  for (const char* file : {"/responses.jsonl", "/sft_train.jsonl", "/sft_eval.jsonl"}) {
    before[file] = Text(traces + file);
  }
  Run("tools/distill/distill", With(flags, all));
  for (const auto& [file, text] : before) EXPECT_TRUE(Text(traces + file) == text) << file;
  ASSERT_NO_FATAL_FAILURE(VerifyFully(flags));
}

void ChainTest::CheckTraces() const {
  const std::string traces = data_ + "/traces_mini";
  const std::vector<json> train = Lines(traces + "/sft_train.jsonl");
  const std::vector<json> eval = Lines(traces + "/sft_eval.jsonl");
  EXPECT_EQ(train.size() + eval.size() + Lines(traces + "/left_out.jsonl").size(),
            kSamples * kTasks);
  EXPECT_GE(train.size(), 16);  // enough to train on
  EXPECT_FALSE(eval.empty());
  const json summary = json::parse(Text(traces + "/summary.json"));
  EXPECT_EQ(summary["responses"], kSamples * kTasks);
  EXPECT_GT(summary["completion_tokens"].get<int>(), kSamples * kTasks);

  const std::set<std::string> train_tasks = TaskNames(train), eval_tasks = TaskNames(eval);
  EXPECT_LE(eval_tasks.size(), kTasks / 10);
  for (const std::string& task : eval_tasks) EXPECT_EQ(train_tasks.count(task), 0) << task;
  for (const std::vector<json>& lines : {train, eval}) {
    for (const json& line : lines) {
      EXPECT_TRUE(
          FileExists(absl::StrCat(data_, "/tasks/", line["task"].get<std::string>(), ".py")));
      EXPECT_EQ(line["teacher"], "mini");
      EXPECT_EQ(line["model"], "mini");
      EXPECT_EQ(line["temperature"], 1.0);
      EXPECT_EQ(line["top_p"], 1.0);
      EXPECT_LT(line["sample"].get<int>(), kSamples);
      EXPECT_EQ(line["verdict"]["verify"], "syntax");
      EXPECT_TRUE(line["verdict"]["valid"].is_boolean());
      EXPECT_THAT(line["response"].get<std::string>(), HasSubstr("</think>"));
      // The body of the class that the task's last line names, and not the class.
      EXPECT_THAT(line["prompt"].get<std::string>(), HasSubstr("[torch.rand([4, 4, 4, 4]) - 0.5"));
      EXPECT_THAT(line["prompt"].get<std::string>(), Not(HasSubstr("class Net")));
    }
  }
}

// All layers of the verifier for the samples of a few tasks, from the responses that are there.
void ChainTest::VerifyFully(const std::vector<std::string>& flags) const {
  constexpr size_t kFew = 4;
  const std::string traces = data_ + "/traces_mini", few = dir_ + "/few";
  std::vector<json> samples = Lines(traces + "/sft_train.jsonl");
  // First those that the later layers run.
  std::stable_sort(samples.begin(), samples.end(), [](const json& a, const json& b) {
    return a["verdict"]["valid"].get<bool>() && !b["verdict"]["valid"].get<bool>();
  });
  std::set<std::string> tasks;
  std::map<std::string, bool> valid;  // by sample
  for (const json& sample : samples) {
    const std::string task = sample["task"].get<std::string>();
    if (tasks.size() < kFew) tasks.insert(task);
    if (tasks.count(task) > 0) valid[SampleName(sample)] = sample["verdict"]["valid"].get<bool>();
  }
  ASSERT_EQ(tasks.size(), kFew);
  ASSERT_TRUE(CreateDirectories(few + "/tasks").ok());
  ASSERT_TRUE(CreateDirectories(few + "/out").ok());
  for (const std::string& task : tasks) {
    const std::string file = absl::StrCat("/tasks/", task, ".py");
    ASSERT_TRUE(WriteFileAtomic(few + file, Text(data_ + file)).ok());
  }
  ASSERT_TRUE(
      WriteFileAtomic(few + "/out/responses.jsonl", Text(traces + "/responses.jsonl")).ok());
  Run("tools/distill/distill",
      With(flags, {"--tasks=" + few + "/tasks", "--out=" + few + "/out", "--verify=full",
                   "--set=workers=2", "--set=trials=1", "--set=backend=NATIVE"}));
  std::vector<json> lines = Lines(few + "/out/sft_train.jsonl");
  for (json& line : Lines(few + "/out/sft_eval.jsonl")) lines.push_back(std::move(line));
  EXPECT_EQ(lines.size(), valid.size());
  for (const json& line : lines) {
    const json& verdict = line["verdict"];
    EXPECT_EQ(verdict["verify"], "full");
    EXPECT_TRUE(verdict["compiled"].is_boolean() && verdict["correct"].is_boolean()) << verdict;
    ASSERT_EQ(valid.count(SampleName(line)), 1) << line;
    // At run time a program can still turn out to be invalid, but not the other way round.
    if (verdict["valid"].get<bool>()) {
      EXPECT_TRUE(valid.at(SampleName(line))) << verdict;
    }
  }
}

void ChainTest::Label() const {
  const std::string out = data_ + "/labelled";
  MockEndpoint endpoint(Labeller);
  Run("tools/label_difficulty/label_difficulty",
      {"--tasks=" + data_ + "/tasks", "--out=" + out, "--endpoint=" + endpoint.url(),
       "--model=labeller"});
  EXPECT_EQ(endpoint.requests(), kTasks + 2);
  EXPECT_EQ(Lines(out + "/labels.jsonl").size(), kTasks);
  const std::vector<Task> tasks = TasksOf(out);
  EXPECT_EQ(tasks.size(), kTasks);
  for (const Task& task : tasks) {
    const std::string name = BaseName(task.id);
    EXPECT_EQ(task.level, LevelOfNet(NumberAfter("_Net", name))) << task.id;
    EXPECT_EQ(task.id, absl::StrCat("level", task.level, "/", name));
    EXPECT_EQ(task.source, Text(absl::StrCat(data_, "/tasks/", name, ".py")));
  }
}

void ChainTest::Augment() const {
  const std::string out = data_ + "/augmented";
  MockEndpoint endpoint(InputWriter);
  Run("tools/augment_inputs/augment_inputs",
      {"--tasks=" + data_ + "/labelled", "--out=" + out, "--endpoint=" + endpoint.url(),
       "--model=writer", "--variants=2", "--workers=2"});
  EXPECT_EQ(endpoint.requests(), kTasks);
  int fail = 0, same = 0;
  for (int number = 0; number < kTasks; ++number) {
    fail += GetsWrongWidth(number) ? 1 : 0;
    same += !GetsWrongWidth(number) && LevelOfNet(number) == 1 ? 1 : 0;
  }
  const json summary = json::parse(Text(out + "/summary.json"));
  EXPECT_EQ(summary["broken"], 0);
  EXPECT_EQ(summary["proposed"], kTasks + same);
  EXPECT_EQ(summary["left_out"], (json{{"run_error", fail}, {"same shapes", same}}));
  EXPECT_EQ(summary["kept"], kTasks - fail);
  // Each variant is a task beside the labelled ones, of its task's level.
  const std::vector<Task> variants = TasksOf(out);
  EXPECT_EQ(variants.size(), kTasks - fail);
  for (const Task& variant : variants) {
    EXPECT_EQ(variant.level, LevelOfNet(NumberAfter("_Net", variant.id))) << variant.id;
    EXPECT_TRUE(absl::EndsWith(variant.id, "_v1")) << variant.id;
  }
  for (const json& variant : Lines(out + "/variants.jsonl")) {
    EXPECT_EQ(variant["inputs"][0], "float32[2, 3, 5, 4]") << variant;
  }
}

void ChainTest::Sft() const {
  constexpr int kSteps = 4;
  const std::string run = dir_ + "/sft", traces = data_ + "/traces_mini";
  Run("trainer/sft/sft",
      {"--config=trainer/configs/sft_mini.textproto", "--set=policy.random_init=false",
       "--set=policy.device=cpu", "--set=generated.samples=0",
       "--set=train_data=" + traces + "/sft_train.jsonl",
       "--set=eval_data=" + traces + "/sft_eval.jsonl", "--set=optimizer.learning_rate=1e-4",
       "--set=optimizer.warmup_steps=0", absl::StrCat("--set=steps=", kSteps), "--set=batch_size=8",
       "--set=log_every=1", "--set=output_dir=" + run});
  const std::vector<json> metrics = Lines(run + "/metrics.jsonl");
  ASSERT_EQ(metrics.size(), kSteps);
  for (const json& line : metrics) {
    const double loss = line["loss"].get<double>();
    EXPECT_TRUE(std::isfinite(loss) && loss > 0) << line;
    EXPECT_GT(line["response_tokens"].get<int>(), 0);
    EXPECT_EQ(line["dropped"], 0);
    EXPECT_EQ(line["skipped"], false);
  }
  EXPECT_TRUE(metrics.back().contains("eval_loss")) << metrics.back();
  ExpectModel(run + "/model");
  EXPECT_FALSE(Text(run + "/model/model.safetensors") ==
               Text(Data("model/mini/model.safetensors")));
}

void ChainTest::ReinforcementLearning() const {
  const std::string run = dir_ + "/rl", labelled = data_ + "/labelled",
                    augmented = data_ + "/augmented";
  for (const char* task : {"level1/02_sin.py", "level2/04_rsub_hardswish.py"}) {
    const std::string file = absl::StrCat(dir_, "/held_out/", task);
    ASSERT_TRUE(CreateDirectories(DirName(file)).ok());
    ASSERT_TRUE(WriteFileAtomic(file, Text(Data(absl::StrCat("tasks/mini/heldout/", task)))).ok());
  }
  const int tasks = static_cast<int>(TasksOf(labelled).size() + TasksOf(augmented).size());
  ASSERT_GT(tasks, 0);
  // Six prompts are two steps of four.
  const double epochs = 6.0 / tasks;
  const CommandResult result =
      Run("trainer/grpo/grpo_hrd",
          {"--config=trainer/configs/grpo_hrd_mini.textproto",
           "--set=policy.dir=" + dir_ + "/sft/model", "--set=policy.device=cpu",
           absl::StrCat("--set=tasks.train=", labelled, ",", augmented),
           "--set=tasks.held_out=" + dir_ + "/held_out", "--set=tasks.level_mixture=0.5,0.25,0.25",
           "--set=tasks.sampling=PASSES", "--set=sampling.max_prompt_tokens=384", "--set=steps=0",
           absl::StrFormat("--set=epochs=%.9f", epochs), "--set=prompts_per_step=4",
           "--set=group_size=4", "--set=verifier.workers=2", "--set=verifier.trials=1",
           "--set=verifier.backend=NATIVE", "--set=eval.samples=2", "--set=eval.greedy=false",
           "--set=eval.at_start=false", "--set=output_dir=" + run});
  EXPECT_THAT(result.err, HasSubstr(absl::StrCat(tasks,
                                                 " training tasks, 2 held out; 2 steps of 4 "
                                                 "prompts x 4 samples")));
  EXPECT_THAT(result.err, Not(HasSubstr("left out: ")));  // all prompts fit
  ASSERT_NO_FATAL_FAILURE(CheckRun(run, tasks));
}

void ChainTest::CheckRun(const std::string& run, int training_tasks) const {
  std::set<std::string> ids;
  for (const char* folder : {"/labelled", "/augmented"}) {
    for (const Task& task : TasksOf(data_ + folder)) ids.insert(task.id);
  }
  EXPECT_EQ(ids.size(), training_tasks);
  const std::vector<json> metrics = Lines(run + "/metrics.jsonl");
  ASSERT_EQ(metrics.size(), 2);
  for (int step = 1; step <= 2; ++step) {
    const json& line = metrics[step - 1];
    EXPECT_EQ(line["step"], step);
    EXPECT_EQ(line["samples"].get<int>() + line["infra_errors"].get<int>(), 16) << line;
    EXPECT_NEAR(line["epoch"].get<double>(), 4.0 * step / training_tasks, 1e-9);
    EXPECT_TRUE(line["loss"].is_number()) << line;
    int of_levels = 0;
    for (int level = 1; level <= 3; ++level) {
      of_levels += line.value(absl::StrCat("level", level, "_samples"), 0);
    }
    EXPECT_EQ(of_levels, line["samples"].get<int>()) << line;
    const std::vector<json> samples =
        Lines(absl::StrFormat("%s/samples/step_%06d.jsonl", run, step));
    EXPECT_EQ(samples.size(), 16);
    for (const json& sample : samples) {
      const std::string id = sample["task"].get<std::string>();
      EXPECT_EQ(ids.count(id), 1) << id;
      EXPECT_EQ(sample["level"], LevelOfNet(NumberAfter("_Net", id))) << id;
    }
  }
  const std::vector<json> evaluations = Lines(run + "/evaluations.jsonl");
  ASSERT_EQ(evaluations.size(), 1);
  EXPECT_EQ(evaluations[0]["step"], 2);
  EXPECT_EQ(evaluations[0]["level1_tasks"], 1) << evaluations[0];
  EXPECT_EQ(evaluations[0]["level2_tasks"], 1) << evaluations[0];
  ExpectModel(run + "/model");
}

TEST_F(ChainTest, FromRowsOfKernelBookToATrainedPolicy) {
  ASSERT_NO_FATAL_FAILURE(Import());
  ASSERT_NO_FATAL_FAILURE(Distill());
  ASSERT_NO_FATAL_FAILURE(Label());
  ASSERT_NO_FATAL_FAILURE(Augment());
  ASSERT_NO_FATAL_FAILURE(Sft());
  ASSERT_NO_FATAL_FAILURE(ReinforcementLearning());
}

}  // namespace
}  // namespace tritonrl
