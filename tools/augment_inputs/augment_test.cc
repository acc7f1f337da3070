// The program augment_inputs against a mock endpoint: what it asks, keeps and says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/endpoint/testing/mock_endpoint.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/testing/small_disk.h"
#include "nlohmann/json.hpp"
#include "tasks/loader.h"
#include "tools/augment_inputs/testing/augment_fixture.h"

namespace tritonrl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

using AugmentTest = AugmentFixture;

TEST_F(AugmentTest, KeepsVariantsThatRunAndDiffer) {
  Add("broken", absl::StrCat(kLinear, "\nraise RuntimeError('no')\n"));
  MockEndpoint endpoint([](const MockRequest&) {
    return MockReply::Chat(absl::StrCat(
        Block("[torch.rand(batch + 3, 8)]"), Block("[torch.rand(2, 9)]"),  // 9 features: fails
        Block("[torch.rand(4, 8)]"),                                       // the original's shape
        Block("[torch.rand(7, 8) + 1]"),                                   // the first one's shape
        Block("[torch.rand(64, 8)]"), Block("[torch.rand(3, 5, 8)]"),      // other dimensions
        Block("[torch.rand(4, 8), 1]"),  // one input too many: fails
        Block("[torch.rand(1, 8)]")));
  });
  const std::vector<std::string> flags = {"--endpoint=" + endpoint.url(), "--variants=10"};
  const CommandResult result = Run(flags);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(endpoint.log()[0].prompt, HasSubstr("Write 10 other versions"));
  const auto set = LoadTasks(out_);
  ASSERT_TRUE(set.ok()) << set.status();
  std::set<std::string> ids;
  for (const Task& task : set->tasks) {
    ids.insert(task.id);
    EXPECT_EQ(task.level, 1);
  }
  EXPECT_EQ(ids,
            (std::set<std::string>{"level1/linear_v1", "level1/linear_v2", "level1/linear_v3"}));
  EXPECT_THAT(*ReadFile(out_ + "/level1/linear_v1.py"), HasSubstr("torch.rand(batch + 3, 8)"));
  const std::vector<json> variants = Lines("variants.jsonl");
  ASSERT_EQ(variants.size(), 3);
  EXPECT_EQ(variants[0]["inputs"], json::array({"float32[7, 8]"}));
  EXPECT_EQ(variants[1]["inputs"], json::array({"float32[64, 8]"}));
  const json summary = json::parse(*ReadFile(out_ + "/summary.json"));
  EXPECT_EQ(summary["broken"], 1);
  EXPECT_EQ(summary["proposed"], 16);
  EXPECT_EQ(summary["kept"], 3);
  EXPECT_EQ(summary["left_out"]["same shapes"], 2);
  EXPECT_EQ(summary["left_out"]["other inputs"], 1);
  EXPECT_EQ(summary["left_out"]["run_error"], 2);

  // The same command asks and runs nothing again; fewer variants remove what is too much.
  const std::string checks = *ReadFile(out_ + "/checks.jsonl");
  ASSERT_EQ(Run(flags).exit_code, 0);
  EXPECT_EQ(endpoint.requests(), 2);
  EXPECT_EQ(*ReadFile(out_ + "/checks.jsonl"), checks);
}

TEST_F(AugmentTest, AnAnswerInAnotherFormIsKeptAskedForAgainAndThenSaid) {
  std::atomic<bool> knows = false;
  MockEndpoint endpoint([&](const MockRequest&) {
    return MockReply::Chat(knows ? Block("[torch.rand(7, 8)]") : "Vary the batch.");
  });
  const std::vector<std::string> flags = {"--endpoint=" + endpoint.url(), "--max_attempts=2"};
  const CommandResult result = Run(flags);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(endpoint.requests(), 2);
  EXPECT_NE(endpoint.log()[0].body["seed"], endpoint.log()[1].body["seed"]);
  EXPECT_THAT(result.err, HasSubstr("the answer has no code block"));
  const std::vector<json> refused = Lines("responses.jsonl");
  ASSERT_EQ(refused.size(), 2);
  for (const json& response : refused) {
    EXPECT_EQ(response["choices"][0]["text"], "Vary the batch.");
    EXPECT_THAT(response["refused"].get<std::string>(), HasSubstr("has no code block"));
  }
  knows = true;
  const CommandResult again = Run(flags);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Lines("responses.jsonl").size(), 3);
  EXPECT_TRUE(FileExists(out_ + "/level1/linear_v1.py"));
}

TEST_F(AugmentTest, ATaskWithoutInputsIsLeftOutByNameAndADecoratedFunctionIsOne) {
  Add("no_inputs", absl::StrReplaceAll(kLinear, {{"def get_inputs", "def inputs"}}));
  Add("level1/linear",
      absl::StrReplaceAll(kLinear, {{"def get_inputs", "@torch.no_grad()\ndef get_inputs"}}));
  MockEndpoint endpoint(
      [](const MockRequest&) { return MockReply::Chat(Block("[torch.rand(7, 8)]")); });
  const CommandResult result = Run({"--endpoint=" + endpoint.url()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("left out: " + tasks_ + "/no_inputs.py:"));
  EXPECT_THAT(result.err, HasSubstr(": function get_inputs() is missing\n"));
  EXPECT_EQ(endpoint.requests(), 1);
  EXPECT_THAT(*ReadFile(out_ + "/level1/linear_v1.py"),
              HasSubstr("@torch.no_grad()\ndef get_inputs():\n    return [torch.rand(7, 8)]\n"));
}

TEST_F(AugmentTest, AnEndpointThatIsDownAndAWrongKeyAreSaid) {
  const CommandResult down = Run({"--endpoint=http://127.0.0.1:1/v1", "--max_attempts=1"});
  EXPECT_EQ(down.exit_code, 1);
  EXPECT_THAT(down.err, HasSubstr("level1/linear: the endpoint http://127.0.0.1:1/v1 gave no "));
  EXPECT_THAT(down.err, HasSubstr("augment_inputs: 1 request got no response, for the reasons "
                                  "above; the same command asks again\n"));
  MockEndpoint endpoint(
      [](const MockRequest&) { return MockReply::Chat(Block("[torch.rand(7, 8)]")); }, "right");
  const std::vector<std::string> flags = {"--endpoint=" + endpoint.url(),
                                          "--api_key_variable=TEST_AUGMENT_KEY"};
  setenv("TEST_AUGMENT_KEY", "wrong", 1);
  const CommandResult refused = Run(flags);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("augment_inputs: the endpoint " + endpoint.url() +
                                     " refuses the key in the variable TEST_AUGMENT_KEY"));
  setenv("TEST_AUGMENT_KEY", "right", 1);
  EXPECT_EQ(Run(flags).exit_code, 0);
  EXPECT_EQ(Lines("variants.jsonl").size(), 1);
}

// A variant's file would replace the other task's.
TEST_F(AugmentTest, ATaskWithTheNameOfAVariantIsRefusedBeforeAnyRequest) {
  Add("level1/linear_v3", kLinear);
  MockEndpoint endpoint(
      [](const MockRequest&) { return MockReply::Chat(Block("[torch.rand(7, 8)]")); });
  const std::string url = "--endpoint=" + endpoint.url();
  const CommandResult result = Run({url, "--with_originals"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err,
              HasSubstr("the task level1/linear_v3 would have the name of a variant of the task "
                        "level1/linear; rename one, or leave out --with_originals\n"));
  EXPECT_EQ(endpoint.requests(), 0);
  EXPECT_EQ(Run({url}).exit_code, 0);
  EXPECT_TRUE(FileExists(out_ + "/level1/linear_v1.py"));
  EXPECT_TRUE(FileExists(out_ + "/level1/linear_v3_v1.py"));
}

TEST_F(AugmentTest, AFullDiskLosesNoAnswer) {
  MockEndpoint endpoint(
      [](const MockRequest&) { return MockReply::Chat(Block("[torch.rand(7, 8)]")); });
  // Room for the answer alone: each file has a page of 4 KiB.
  const auto runs = RunOnASmallDisk(Command({"--endpoint=" + endpoint.url(), "--max_tokens=1"}),
                                    out_, 4096, dir_ + "/full", dir_ + "/done");
  ASSERT_TRUE(runs.ok()) << runs.status();
  if (!runs->possible) GTEST_SKIP() << "this test needs the right to mount a file system";
  EXPECT_EQ(runs->first, 1) << runs->first_err;
  EXPECT_THAT(runs->first_err,
              HasSubstr("augment_inputs: cannot write " + out_ +
                        "/checks.jsonl: No space left on "
                        "device; make room there and run the same command again\n"));
  EXPECT_EQ(runs->second, 0) << runs->second_err;
  EXPECT_EQ(endpoint.requests(), 1) << "an answer that was there was asked for again";
  EXPECT_TRUE(FileExists(dir_ + "/done/level1/linear_v1.py"));
}

TEST_F(AugmentTest, MistakesAreOneSentence) {
  const std::string url = "--endpoint=http://127.0.0.1:1/v1";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "--endpoint is missing"},
      {{url, "--variants=11"}, "--variants must be 1 to 10"},
      {{url, "--rounds=0"}, "--rounds must be 1 to 10"},
      {{url, "--time_limit=0"}, "--time_limit must be above 0"},
      {{url, "--memory_gb=0"}, "--memory_gb must be above 0"},
      {{url, "--out=" + tasks_ + "/"}, "--out and --tasks are the same folder"},
      {{url, "--prompt_file=/no/such/file"}, "/no/such/file"},
  };
  for (const auto& [flags, part] : cases) {
    const CommandResult result = Run(flags);
    EXPECT_NE(result.exit_code, 0) << part;
    EXPECT_THAT(result.err, HasSubstr(part));
  }
}

}  // namespace
}  // namespace tritonrl
