// The program distill against a mock endpoint, and with the mini policy as the teacher.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/endpoint/testing/mock_endpoint.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/subprocess.h"
#include "nlohmann/json.hpp"
#include "tools/distill/testing/distill_fixture.h"

namespace tritonrl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST_F(DistillTest, WritesWhatTheTeacherDidWell) {
  const std::string honest = ExampleProgram("honest"), cheat = ExampleProgram("cheat");
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

TEST_F(DistillTest, ATeacherWithoutPlansIsReadAsPlain) {
  const std::string honest = ExampleProgram("honest");
  MockEndpoint endpoint([&](const MockRequest&) { return MockReply::Chat(honest); });
  std::vector<std::string> flags = {"--tasks=" + Tasks(3), "--endpoint=" + endpoint.url(),
                                    "--model=m", "--eval_share=0"};
  const CommandResult thinking = Run(flags);
  EXPECT_EQ(thinking.exit_code, 1);
  EXPECT_THAT(thinking.err,
              HasSubstr("Responses are read as thinking (as configured), code block: only."));
  EXPECT_THAT(thinking.err, HasSubstr("distill: none of 3 responses is for sft_train.jsonl"));
  EXPECT_THAT(thinking.err, HasSubstr("if the teacher gives none, try --response_style=plain"));
  EXPECT_FALSE(FileExists(out_ + "/sft_train.jsonl"));
  flags.push_back("--response_style=plain");
  const CommandResult plain = Run(flags);
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(endpoint.requests(), 3);  // nothing is asked twice
  const std::vector<json> train = Lines("sft_train.jsonl");
  ASSERT_EQ(train.size(), 3);
  EXPECT_EQ(train[0]["response"], honest);
  EXPECT_EQ(train[0]["response_style"], "plain");
  EXPECT_EQ(json::parse(*ReadFile(out_ + "/summary.json"))["response_style"], "plain");
}

TEST_F(DistillTest, ARunThatTeachesNothingSaysWhy) {
  const std::string honest = ExampleProgram("honest");
  MockEndpoint endpoint([&](const MockRequest& request) {
    return absl::StrContains(request.prompt, "TASK_NUMBER = 1\n")
               ? MockReply::Chat(honest, "a plan", "length")
               : MockReply::Chat("I cannot do that.");
  });
  const std::vector<std::string> flags = {"--tasks=" + Tasks(3), "--endpoint=" + endpoint.url(),
                                          "--model=m"};
  const CommandResult result = Run(flags);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("distill: none of 3 responses is for sft_train.jsonl (cut off: 1, response "
                        "form: 2), so nothing is written; " +
                        out_ + "/responses.jsonl keeps them; no plan ends with </think>: "));
  EXPECT_EQ(result.out, "");
  EXPECT_FALSE(FileExists(out_ + "/sft_train.jsonl"));
  EXPECT_EQ(Lines("responses.jsonl").size(), 3);
  // Another rule teaches what the journal holds.
  std::vector<std::string> all = flags;
  all.push_back("--keep=all");
  EXPECT_EQ(Run(all).exit_code, 0);
  EXPECT_EQ(endpoint.requests(), 3);
}

TEST_F(DistillTest, AKilledRunGoesOnWithoutAskingTwice) {
  const std::string honest = ExampleProgram("honest");
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
  const std::string honest = ExampleProgram("honest");
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
  const std::string honest = ExampleProgram("honest");
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
  const std::string honest = ExampleProgram("honest"), wrong = ExampleProgram("wrong");
  MockEndpoint endpoint([&](const MockRequest& request) {
    return MockReply::Chat(absl::StrContains(request.prompt, "TASK_NUMBER = 1\n") ? wrong : honest,
                           "a plan");
  });
  const CommandResult result =
      Run({"--tasks=" + Tasks(3), "--endpoint=" + endpoint.url(), "--model=m", "--verify=full",
           "--eval_share=0", "--set=workers=1", "--set=trials=1", "--set=backend=NATIVE"});
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
      Run({"--tasks=" + DistillData("tasks/mini/heldout/level1"),
           "--policy=" + DistillData("model/mini"),
           "--policy_flags=--device=cpu --max_num_seqs=8 --threads=1", "--prompt_file=mini",
           "--temperature=1", "--top_p=1", "--max_tokens=600", "--samples=2", "--eval_share=0.1",
           "--response_style=auto"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("Responses are read as thinking (its tokenizer.json has "));
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

}  // namespace
}  // namespace tritonrl
