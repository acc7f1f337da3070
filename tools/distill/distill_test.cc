// The program distill against a mock endpoint, and with the mini policy as the teacher.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/endpoint/testing/mock_endpoint.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/subprocess.h"
#include "base/testing/small_disk.h"
#include "model/testing/mini_folders.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string Data(const std::string& path) {
  const auto file = Runfile(path);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.value_or("");
}

class DistillTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("distill_");
    ASSERT_TRUE(folder.ok()) << folder.status();
    dir_ = *folder;
    out_ = dir_ + "/out";
    program_ = Data("tools/distill/distill");
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  // A folder with `count` tasks that are all softmax, each with a comment of its own.
  std::string Tasks(int count) {
    const std::string source = *ReadFile(Data("verify/examples/softmax_reference.py"));
    const std::string folder = dir_ + "/tasks";
    EXPECT_TRUE(CreateDirectories(folder).ok());
    for (int i = 0; i < count; ++i) {
      const std::string text = absl::StrCat(source, "\nTASK_NUMBER = ", i, "\n");
      EXPECT_TRUE(WriteFileAtomic(absl::StrCat(folder, "/task_", i, ".py"), text).ok());
    }
    return folder;
  }

  std::vector<std::string> Command(const std::vector<std::string>& flags) const {
    std::vector<std::string> argv = {program_, "--out=" + out_};
    argv.insert(argv.end(), flags.begin(), flags.end());
    return argv;
  }
  CommandResult Run(const std::vector<std::string>& flags) const {
    const auto result = RunCommand(Command(flags), {.timeout = absl::Minutes(10)});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(CommandResult());
  }

  std::vector<json> Lines(const std::string& file) const {
    std::vector<json> lines;
    const auto text = ReadFile(out_ + "/" + file);
    EXPECT_TRUE(text.ok()) << text.status();
    for (absl::string_view line : absl::StrSplit(text.value_or(""), '\n', absl::SkipEmpty())) {
      lines.push_back(json::parse(line));
    }
    return lines;
  }

  std::string dir_, out_, program_;
};

std::string Program(const std::string& name) {
  return absl::StrCat("```python\n", *ReadFile(Data("verify/examples/softmax_" + name + ".py")),
                      "```\n");
}

TEST_F(DistillTest, WritesWhatTheTeacherDidWell) {
  const std::string honest = Program("honest"), cheat = Program("cheat");
  // By the request's place: an honest program, a cheat, a cut answer, an answer without code.
  MockEndpoint endpoint([&](const MockRequest& request) {
    if (absl::StrContains(request.prompt, "TASK_NUMBER = 1\n")) {
      return MockReply::Chat(cheat, "a plan");
    }
    if (absl::StrContains(request.prompt, "TASK_NUMBER = 2\n")) {
      return MockReply::Chat(honest, "a plan", "length");
    }
    if (absl::StrContains(request.prompt, "TASK_NUMBER = 3\n")) {
      return MockReply::Chat("I cannot do that.");
    }
    return MockReply::Chat(honest, "a plan");
  });
  const CommandResult result =
      Run({"--tasks=" + Tasks(10), "--endpoint=" + endpoint.url(), "--model=deepseek-reasoner",
           "--teacher=r1", "--samples=2", "--eval_share=0.2", "--price_out=2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(endpoint.requests(), 20);
  const MockRequest asked = endpoint.log()[0];
  EXPECT_EQ(asked.body["temperature"], 0.6);
  EXPECT_EQ(asked.body["top_p"], 0.95);
  EXPECT_EQ(asked.body["max_tokens"], 16384);
  EXPECT_EQ(asked.model(), "deepseek-reasoner");
  std::set<int64_t> seeds;
  for (const MockRequest& request : endpoint.log())
    seeds.insert(request.body["seed"].get<int64_t>());
  EXPECT_EQ(seeds.size(), 20);

  const std::vector<json> train = Lines("sft_train.jsonl"), eval = Lines("sft_eval.jsonl");
  ASSERT_EQ(train.size() + eval.size(), 14);
  std::set<std::string> train_tasks, eval_tasks;
  for (const json& line : train) train_tasks.insert(line["task"].get<std::string>());
  for (const json& line : eval) eval_tasks.insert(line["task"].get<std::string>());
  EXPECT_EQ(train_tasks.size() + eval_tasks.size(), 7);  // no task is in both
  const json& line = train[0];
  EXPECT_EQ(line["response"], absl::StrCat("<think>\na plan\n</think>\n\n", honest));
  EXPECT_THAT(line["prompt"].get<std::string>(), HasSubstr("TASK_NUMBER"));
  EXPECT_EQ(line["teacher"], "r1");
  EXPECT_EQ(line["model"], "mock-model");
  EXPECT_EQ(line["temperature"], 0.6);
  EXPECT_EQ(line["verdict"]["verify"], "syntax");
  EXPECT_EQ(line["verdict"]["valid"], true);

  std::set<std::string> reasons;
  for (const json& left : Lines("left_out.jsonl"))
    reasons.insert(left["reason"].get<std::string>());
  ASSERT_EQ(reasons.size(), 3);
  EXPECT_THAT(reasons, testing::Contains("response form: no_think_close"));
  EXPECT_THAT(reasons, testing::Contains(HasSubstr("cut off")));
  const json summary = json::parse(*ReadFile(out_ + "/summary.json"));
  EXPECT_EQ(summary["responses"], 20);
  EXPECT_EQ(summary["cut_off"], 2);
  EXPECT_EQ(summary["valid"], 14);
  EXPECT_EQ(summary["tasks_without_sample"], 3);
  EXPECT_NEAR(summary["cost"].get<double>(), 0.04, 1e-9);
  EXPECT_THAT(result.out, HasSubstr("14 (70.0%)"));
  EXPECT_THAT(result.out, HasSubstr("$0.04"));

  // More samples ask only for what is missing, and the rule can change without asking at all.
  ASSERT_EQ(Run({"--tasks=" + dir_ + "/tasks", "--endpoint=" + endpoint.url(),
                 "--model=deepseek-reasoner", "--teacher=r1", "--samples=3", "--keep=syntax"})
                .exit_code,
            0);
  EXPECT_EQ(endpoint.requests(), 30);
  EXPECT_EQ(Lines("sft_train.jsonl").size() + Lines("sft_eval.jsonl").size(), 24);
}

TEST_F(DistillTest, AKilledRunGoesOnWithoutAskingTwice) {
  const std::string honest = Program("honest");
  MockEndpoint endpoint([&](const MockRequest&) {
    MockReply reply = MockReply::Chat(honest, "a plan");
    reply.delay = absl::Milliseconds(50);
    return reply;
  });
  const std::vector<std::string> flags = {"--tasks=" + Tasks(40), "--endpoint=" + endpoint.url(),
                                          "--model=m", "--max_in_flight=4", "--verify=none"};
  SubprocessOptions options;
  options.argv = Command(flags);
  options.err = Stdio::Null();
  auto process = Subprocess::Start(options);
  ASSERT_TRUE(process.ok()) << process.status();
  const absl::Time deadline = absl::Now() + absl::Minutes(10);
  while (endpoint.requests() < 12 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  process->Signal(SIGKILL);
  process->Wait(absl::Seconds(30));
  const size_t kept = Lines("responses.jsonl").size();
  const int64_t asked = endpoint.requests();
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 40);
  EXPECT_LE(asked - static_cast<int64_t>(kept), 4);  // what was in flight
  const CommandResult result = Run(flags);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(endpoint.requests(), asked + 40 - static_cast<int64_t>(kept));
  EXPECT_EQ(Lines("sft_train.jsonl").size() + Lines("sft_eval.jsonl").size(), 40);
}

TEST_F(DistillTest, ASignalStopsAndTheSameCommandGoesOn) {
  const std::string honest = Program("honest");
  MockEndpoint endpoint([&](const MockRequest&) {
    MockReply reply = MockReply::Chat(honest, "a plan");
    reply.delay = absl::Milliseconds(50);
    return reply;
  });
  const std::vector<std::string> flags = {"--tasks=" + Tasks(40), "--endpoint=" + endpoint.url(),
                                          "--model=m", "--max_in_flight=2", "--verify=none"};
  SubprocessOptions options;
  options.argv = Command(flags);
  options.err = Stdio::Null();
  auto process = Subprocess::Start(options);
  ASSERT_TRUE(process.ok()) << process.status();
  const absl::Time deadline = absl::Now() + absl::Minutes(10);
  while (endpoint.requests() < 6 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
  process->Signal(SIGTERM);
  const auto exit = process->Wait(absl::Seconds(60));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->exit_code, 75) << exit->ToString();
  EXPECT_EQ(Lines("responses.jsonl").size(), endpoint.requests());  // nothing paid for is lost
  EXPECT_FALSE(FileExists(out_ + "/sft_train.jsonl"));
  ASSERT_EQ(Run(flags).exit_code, 0);
  EXPECT_EQ(endpoint.requests(), 40);
}

TEST_F(DistillTest, ACeilingEndsTheAskingAndWritesWhatIsThere) {
  const std::string honest = Program("honest");
  MockEndpoint endpoint([&](const MockRequest&) { return MockReply::Chat(honest, "a plan"); });
  // A response costs 0.01, and could cost 0.0102.
  const CommandResult result =
      Run({"--tasks=" + Tasks(10), "--endpoint=" + endpoint.url(), "--model=m", "--price_out=10",
           "--max_tokens=1020", "--max_cost=0.0451", "--eval_share=0"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("the cost ceiling of $0.05 is reached"));
  EXPECT_EQ(endpoint.requests(), 4);
  EXPECT_EQ(Lines("sft_train.jsonl").size(), 4);
}

TEST_F(DistillTest, FullVerificationRunsTheSamples) {
  const std::string honest = Program("honest"), wrong = Program("wrong");
  MockEndpoint endpoint([&](const MockRequest& request) {
    return MockReply::Chat(absl::StrContains(request.prompt, "TASK_NUMBER = 1\n") ? wrong : honest,
                           "a plan");
  });
  const CommandResult result =
      Run({"--tasks=" + Tasks(3), "--endpoint=" + endpoint.url(), "--model=m", "--verify=full",
           "--eval_share=0", "--set=workers=1", "--set=trials=1", "--set=backend=INTERPRETER"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<json> train = Lines("sft_train.jsonl");
  ASSERT_EQ(train.size(), 2);
  EXPECT_EQ(train[0]["verdict"]["correct"], true);
  EXPECT_GT(train[0]["verdict"]["speedup"].get<double>(), 0);
  const std::vector<json> left_out = Lines("left_out.jsonl");
  ASSERT_EQ(left_out.size(), 1);
  EXPECT_EQ(left_out[0]["key"], "task_1#0");
  EXPECT_THAT(left_out[0]["reason"].get<std::string>(), HasSubstr("mismatch"));
}

TEST_F(DistillTest, TheMiniPolicyIsATeacher) {
  const CommandResult result =
      Run({"--tasks=" + Data("tasks/mini/heldout/level1"), "--policy=" + Data("model/mini"),
           "--policy_flags=--device=cpu --max_num_seqs=8 --threads=1", "--prompt_file=mini",
           "--temperature=1", "--top_p=1", "--max_tokens=600", "--samples=2", "--eval_share=0.1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json summary = json::parse(*ReadFile(out_ + "/summary.json"));
  EXPECT_EQ(summary["teacher"], "mini");
  EXPECT_EQ(summary["responses"], summary["samples_asked"]);
  EXPECT_THAT(result.err, HasSubstr("Prompts: mini, 0 tokens of fixed text; the longest of "));
  // Its answers have the response form nearly always.
  EXPECT_GT(summary["response_form"].get<int>(), summary["responses"].get<int>() / 2);
  for (const json& line : Lines("sft_train.jsonl")) {
    EXPECT_THAT(line["response"].get<std::string>(), HasSubstr("<think>"));
  }
}

TEST_F(DistillTest, MistakesAreOneSentence) {
  const std::string tasks = "--tasks=" + Tasks(1);
  const std::string endpoint = "--endpoint=http://127.0.0.1:1/v1", model = "--model=m";
  unsetenv("TEST_DISTILL_KEY");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{endpoint, model}, "--tasks is missing"},
      {{tasks, model}, "--endpoint is missing"},
      {{tasks, endpoint}, "--model is missing"},
      {{tasks, endpoint, model, "--samples=11"}, "--samples must be 1 to 10"},
      {{tasks, endpoint, model, "--temperature=3"}, "--temperature must be 0 to 2"},
      {{tasks, endpoint, model, "--top_p=0"}, "--top_p must be above 0"},
      {{tasks, endpoint, model, "--eval_share=1"}, "--eval_share must be 0 or more"},
      {{tasks, endpoint, model, "--teacher=r2"}, "--teacher=r2 is unknown"},
      {{tasks, endpoint, model, "--verify=most"}, "--verify=most is unknown"},
      {{tasks, endpoint, model, "--keep=correct"}, "--keep=correct needs --verify=full"},
      {{tasks, endpoint, model, "--api=odd"}, "--api=odd is unknown"},
      {{tasks, endpoint, model, "--max_cost=1"}, "the cost ceiling needs the endpoint's prices"},
      {{tasks, endpoint, model, "--api_key_variable=TEST_DISTILL_KEY"},
       "TEST_DISTILL_KEY, which is not set"},
      {{tasks, endpoint, model, "--extra=[]"}, "no JSON object"},
      {{tasks, endpoint, model, "--set=wrokers=1"}, "wrokers"},
      {{tasks, endpoint, "--policy=/no/model"}, "either --endpoint or --policy"},
      {{tasks, "--policy=/no/model"}, "--policy=/no/model is no folder"},
      {{tasks, "--tasks=/no/tasks", endpoint, model}, "--tasks: "},
  };
  for (const auto& [flags, part] : cases) {
    const CommandResult result = Run(flags);
    EXPECT_EQ(result.exit_code, 2) << part << result.err;
    EXPECT_THAT(result.err, HasSubstr(part));
  }
}

TEST_F(DistillTest, AnEndpointThatIsDownAndAWrongKeyAreSaid) {
  const CommandResult down = Run(
      {"--tasks=" + Tasks(1), "--endpoint=http://127.0.0.1:1/v1", "--model=m", "--max_attempts=1"});
  EXPECT_EQ(down.exit_code, 1);
  EXPECT_THAT(down.err,
              HasSubstr("distill: the teacher gave no response; the first request failed: "
                        "task_0#0: the endpoint http://127.0.0.1:1/v1 gave no usable answer in 1 "
                        "attempt: "));
  EXPECT_THAT(down.err, HasSubstr("; the same command asks again\n"));
  MockEndpoint endpoint([](const MockRequest&) { return MockReply::Chat("x"); }, "right");
  setenv("TEST_DISTILL_KEY", "wrong", 1);
  const CommandResult refused = Run({"--tasks=" + dir_ + "/tasks", "--endpoint=" + endpoint.url(),
                                     "--model=m", "--api_key_variable=TEST_DISTILL_KEY"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("refuses the key in the variable TEST_DISTILL_KEY"));
  EXPECT_EQ(endpoint.requests(), 1);
}

TEST_F(DistillTest, ATaskWithoutInputsIsLeftOutByName) {
  const std::string tasks = Tasks(2);
  const std::string source = *ReadFile(tasks + "/task_1.py");
  ASSERT_TRUE(WriteFileAtomic(tasks + "/task_1.py",
                              absl::StrReplaceAll(source, {{"def get_inputs", "def inputs"}}))
                  .ok());
  const std::string honest = Program("honest");
  MockEndpoint endpoint([&](const MockRequest&) { return MockReply::Chat(honest, "a plan"); });
  const CommandResult result =
      Run({"--tasks=" + tasks, "--endpoint=" + endpoint.url(), "--model=m", "--eval_share=0"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("left out: " + tasks + "/task_1.py:"));
  EXPECT_THAT(result.err, HasSubstr(": function get_inputs() is missing\n"));
  EXPECT_EQ(endpoint.requests(), 1);
  EXPECT_EQ(Lines("sft_train.jsonl").size(), 1);
}

TEST_F(DistillTest, AFullDiskKeepsWhatWasAnswered) {
  const std::string honest = Program("honest");
  // An answer takes more than a page of the disk, which has room for a few.
  MockEndpoint endpoint(
      [&](const MockRequest&) { return MockReply::Chat(honest, std::string(5000, 'p')); });
  const auto runs = RunOnASmallDisk(Command({"--tasks=" + Tasks(20), "--endpoint=" + endpoint.url(),
                                             "--model=m", "--max_in_flight=2", "--verify=none"}),
                                    out_, 32768, dir_ + "/full", dir_ + "/done");
  ASSERT_TRUE(runs.ok()) << runs.status();
  if (!runs->possible) GTEST_SKIP() << "this test needs the right to mount a file system";
  EXPECT_EQ(runs->first, 1) << runs->first_err;
  EXPECT_THAT(runs->first_err,
              HasSubstr("distill: cannot write " + out_ +
                        "/responses.jsonl: No space left on "
                        "device; make room there and run the same command again; "));
  EXPECT_THAT(runs->first_err, HasSubstr(" lost and will be asked again\n"));
  EXPECT_EQ(runs->second, 0) << runs->second_err;
  out_ = dir_ + "/full";
  const size_t kept = Lines("responses.jsonl").size();
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 20);
  // What was not written: at most what is submitted at the same time.
  EXPECT_LE(endpoint.requests(), 20 + 2 * 2);
  out_ = dir_ + "/done";
  std::set<std::string> keys;
  for (const json& line : Lines("responses.jsonl")) keys.insert(line["key"].get<std::string>());
  EXPECT_EQ(keys.size(), 20);
  EXPECT_EQ(Lines("responses.jsonl").size(), 20);
  EXPECT_EQ(Lines("sft_train.jsonl").size() + Lines("sft_eval.jsonl").size(), 20);
}

TEST_F(DistillTest, APolicyThatCannotBeServedIsSaid) {
  const std::string shard = WriteMiniWithMissingShard(dir_ + "/shard");
  WriteMiniWithTemplate(dir_ + "/raises", kRaisingTemplate);
  const std::vector<std::string> flags = {"--tasks=" + Tasks(1), "--policy_flags=--device=cpu",
                                          "--prompt_file=mini"};
  const std::pair<std::string, std::string> cases[] = {
      {"/shard", shard + ": is missing, though model.safetensors.index.json lists it"},
      {"/raises", RaisingTemplateError(dir_ + "/raises")},
  };
  for (const auto& [folder, sentence] : cases) {
    const CommandResult result = Run({flags[0], flags[1], flags[2], "--policy=" + dir_ + folder});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("serve: " + sentence));
    EXPECT_THAT(result.err, HasSubstr("distill: the server of --policy ended before it was ready; "
                                      "see its message above\n"));
  }
}

}  // namespace
}  // namespace tritonrl
