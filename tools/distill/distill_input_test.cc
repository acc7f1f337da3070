// What the program distill says of wrong flags, tasks, endpoints, folders and a full disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
#include "model/testing/mini_folders.h"
#include "nlohmann/json.hpp"
#include "tools/distill/testing/distill_fixture.h"

namespace tritonrl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

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
      {{tasks, endpoint, model, "--response_style=odd"}, "response_style \"odd\" is unknown"},
      {{tasks, endpoint, model, "--response_style=auto"}, "--response_style=auto needs --policy"},
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
  const std::string honest = ExampleProgram("honest");
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
  const std::string honest = ExampleProgram("honest");
  const std::string tasks = "--tasks=" + Tasks(20), out = out_;
  // An answer takes more than a page of the disk, which has room for a few.
  for (const int64_t bytes : {4096, 16384, 32768, 65536}) {
    const std::string name = absl::StrCat(dir_, "/", bytes);
    ASSERT_TRUE(CreateDirectories(name).ok());
    out_ = out;
    MockEndpoint endpoint(
        [&](const MockRequest&) { return MockReply::Chat(honest, std::string(5000, 'p')); });
    const auto runs =
        RunOnASmallDisk(Command({tasks, "--endpoint=" + endpoint.url(), "--model=m",
                                 "--max_in_flight=4", "--verify=none", "--max_tokens=500"}),
                        out_, bytes, name + "/full", name + "/done");
    ASSERT_TRUE(runs.ok()) << runs.status();
    if (!runs->possible) GTEST_SKIP() << "this test needs the right to mount a file system";
    EXPECT_EQ(runs->first, 1) << runs->first_err;
    EXPECT_THAT(
        runs->first_err,
        HasSubstr("distill: cannot write " + out_ +
                  "/responses.jsonl: No space left on device; it needs room for 9.0 kB; make "
                  "room there and run the same command again\n"));
    EXPECT_EQ(runs->second, 0) << runs->second_err;
    out_ = name + "/full";
    const size_t kept = Lines("responses.jsonl").size();
    EXPECT_EQ(kept > 0, bytes > 4096);
    EXPECT_LT(kept, 20);
    EXPECT_EQ(endpoint.requests(), 20) << "a response was lost";
    out_ = name + "/done";
    std::set<std::string> keys;
    for (const json& line : Lines("responses.jsonl")) keys.insert(line["key"].get<std::string>());
    EXPECT_EQ(keys.size(), 20);
    EXPECT_EQ(Lines("responses.jsonl").size(), 20);
    EXPECT_EQ(Lines("sft_train.jsonl").size() + Lines("sft_eval.jsonl").size(), 20);
  }
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
