// The program label_difficulty against a mock endpoint.
#include "tools/label_difficulty/label.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/endpoint/testing/mock_endpoint.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/testing/small_disk.h"
#include "nlohmann/json.hpp"
#include "tasks/loader.h"

namespace tritonrl {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

MockReply Level(int level) {
  return MockReply::Chat(absl::StrCat("Hm.\nReason: because\nLevel: ", level));
}

class LabelTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("label_");
    ASSERT_TRUE(folder.ok()) << folder.status();
    dir_ = *folder;
    out_ = dir_ + "/out";
    tasks_ = dir_ + "/tasks";
    const auto source = Runfile("tasks/mini/heldout/level1/07_var.py");
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *ReadFile(*source);
    for (const char* name : {"level1/conv", "level1/fused", "net"}) Add(name);
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  void Add(const std::string& name) {
    const std::string file = absl::StrCat(tasks_, "/", name, ".py");
    ASSERT_TRUE(CreateDirectories(DirName(file)).ok());
    ASSERT_TRUE(
        WriteFileAtomic(file, absl::StrCat(source_, "\nNAME = \"", BaseName(name), "\"\n")).ok());
  }

  std::vector<std::string> Command(const std::vector<std::string>& flags) const {
    std::vector<std::string> argv = {*Runfile("tools/label_difficulty/label_difficulty"),
                                     "--tasks=" + tasks_, "--out=" + out_, "--model=labeller"};
    argv.insert(argv.end(), flags.begin(), flags.end());
    return argv;
  }
  CommandResult Run(const std::vector<std::string>& flags) {
    const auto result = RunCommand(Command(flags), {.timeout = absl::Minutes(5)});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(CommandResult());
  }

  std::vector<json> Lines(const std::string& file) {
    std::vector<json> lines;
    const std::string text = ReadFile(out_ + "/" + file).value_or("");
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      lines.push_back(json::parse(line));
    }
    return lines;
  }
  std::map<std::string, json> Labels() {
    std::map<std::string, json> labels;
    for (const json& label : Lines("labels.jsonl")) {
      labels[label["task"].get<std::string>()] = label;
    }
    return labels;
  }
  // The responses in another form.
  static std::vector<json> Refused(const std::vector<json>& responses) {
    std::vector<json> refused;
    for (const json& response : responses) {
      if (response.contains("refused")) refused.push_back(response);
    }
    return refused;
  }

  std::string dir_, out_, tasks_, source_;
};

// The appendix "Training Hyperparameters and Details".
TEST(LabelOptionsTest, ThePapersSamplingIsTheDefault) {
  EXPECT_EQ(LabelOptions().ask.temperature, 0.7);
  EXPECT_EQ(LabelOptions().ask.top_p, 0.8);
}

TEST_F(LabelTest, WritesTheFoldersThatTheTrainerReads) {
  // An answer in another form is asked for again.
  std::atomic<int> fused = 0;
  MockEndpoint endpoint([&](const MockRequest& request) {
    if (absl::StrContains(request.prompt, "\"conv\"")) return Level(1);
    if (absl::StrContains(request.prompt, "\"fused\"")) {
      return ++fused == 1 ? MockReply::Chat("level two, I think") : Level(2);
    }
    return Level(3);
  });
  const CommandResult result =
      Run({"--endpoint=" + endpoint.url(), "--max_in_flight=1", "--max_attempts=5"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const MockRequest asked = endpoint.log()[0];
  EXPECT_EQ(asked.body["temperature"], 0.7);
  EXPECT_EQ(asked.body["top_p"], 0.8);
  EXPECT_THAT(asked.prompt, HasSubstr("class Model"));
  const auto set = LoadTasks(out_);
  ASSERT_TRUE(set.ok()) << set.status();
  std::map<std::string, int> levels;
  for (const Task& task : set->tasks) levels[task.id] = task.level;
  EXPECT_EQ(levels, (std::map<std::string, int>{
                        {"level1/conv", 1}, {"level2/fused", 2}, {"level3/net", 3}}));
  EXPECT_EQ(*ReadFile(out_ + "/level2/fused.py"), *ReadFile(tasks_ + "/level1/fused.py"));
  EXPECT_EQ(Labels()["level1/fused"]["reasons"], json::array({"because"}));
  const std::vector<json> responses = Lines("responses.jsonl");
  EXPECT_EQ(responses.size(), 4);
  const std::vector<json> refused = Refused(responses);
  ASSERT_EQ(refused.size(), 1);
  EXPECT_EQ(refused[0]["key"], "level1/fused#0");
  EXPECT_EQ(refused[0]["choices"][0]["text"], "level two, I think");
  EXPECT_EQ(json::parse(*ReadFile(out_ + "/summary.json"))["completion_tokens"], 4000);
  EXPECT_THAT(result.out, HasSubstr("level 3"));
}

TEST_F(LabelTest, TheMajorityCountsAndMoreVotesMoveATask) {
  MockEndpoint endpoint([](const MockRequest& request) {
    // The first answers say 3, the later ones 1.
    return Level(request.number <= 3 ? 3 : 1);
  });
  const std::string url = "--endpoint=" + endpoint.url();
  ASSERT_EQ(Run({url, "--votes=1"}).exit_code, 0);
  EXPECT_TRUE(FileExists(out_ + "/level3/net.py"));
  ASSERT_EQ(Run({url, "--votes=3"}).exit_code, 0);
  EXPECT_EQ(endpoint.requests(), 9);  // the first votes are not asked for again
  EXPECT_FALSE(FileExists(out_ + "/level3/net.py"));
  EXPECT_TRUE(FileExists(out_ + "/level1/net.py"));
  EXPECT_EQ(Labels()["net"]["level"], 1);
  const json summary = json::parse(*ReadFile(out_ + "/summary.json"));
  EXPECT_EQ(summary["level1"], 3);
  EXPECT_EQ(summary["divided"], 3);
}

TEST_F(LabelTest, ATaskWithoutAnAnswerIsLeftOutUntilThereIsOne) {
  std::atomic<bool> knows = false;
  MockEndpoint endpoint([&](const MockRequest& request) {
    const bool net = absl::StrContains(request.prompt, "\"net\"");
    return net && !knows ? MockReply::Chat("no idea") : Level(1);
  });
  const std::vector<std::string> flags = {"--endpoint=" + endpoint.url(), "--max_attempts=2"};
  const CommandResult result = Run(flags);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("net#0: the endpoint " + endpoint.url() +
                                    " gave 2 responses in another form; the last: "
                                    "the answer has no line \"Level: N\""));
  EXPECT_THAT(result.err, HasSubstr("1 request got no response"));
  EXPECT_EQ(Labels().size(), 2);
  EXPECT_EQ(json::parse(*ReadFile(out_ + "/summary.json"))["without_label"], 1);
  EXPECT_EQ(Refused(Lines("responses.jsonl")).size(), 2);
  knows = true;
  EXPECT_EQ(Run(flags).exit_code, 0);
  EXPECT_EQ(endpoint.requests(), 5);
  EXPECT_EQ(Labels()["net"]["level"], 1);
  EXPECT_EQ(Labels().size(), 3);
}

TEST_F(LabelTest, ATaskWithoutInputsIsLeftOutByName) {
  MockEndpoint endpoint([](const MockRequest&) { return Level(2); });
  const std::string url = "--endpoint=" + endpoint.url();
  const std::string bad = tasks_ + "/level1/no_inputs.py";
  ASSERT_TRUE(
      WriteFileAtomic(bad, absl::StrReplaceAll(source_, {{"def get_inputs", "def inputs"}})).ok());
  const CommandResult result = Run({url});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("left out: " + bad + ":"));
  EXPECT_THAT(result.err, HasSubstr(": function get_inputs() is missing\n"));
  EXPECT_EQ(Labels().size(), 3);
  // Without any task there is nothing to ask.
  const CommandResult alone = Run({url, "--tasks=" + bad, "--out=" + dir_ + "/alone"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("label_difficulty: --tasks: " + bad + ":"));
  EXPECT_THAT(alone.err, HasSubstr("function get_inputs() is missing"));
  EXPECT_EQ(endpoint.requests(), 3);
}

TEST_F(LabelTest, OnlyWhatIsWrittenIsSaidToBeWritten) {
  MockEndpoint refused([](const MockRequest&) { return MockReply::Chat("hard to say"); });
  const CommandResult none = Run({"--endpoint=" + refused.url(), "--max_attempts=1"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.out, HasSubstr("Written to " + out_ +
                                  ": labels.jsonl, summary.json; no task has a label\n"));
  EXPECT_FALSE(FileExists(out_ + "/level1"));
  MockEndpoint second([](const MockRequest&) { return Level(2); });
  const CommandResult some = Run({"--endpoint=" + second.url()});
  EXPECT_EQ(some.exit_code, 0) << some.err;
  EXPECT_THAT(some.out, HasSubstr("Written to " + out_ + ": level2, labels.jsonl, summary.json\n"));
}

TEST_F(LabelTest, AnEndpointThatIsDownAndAWrongKeyLoseNoLabel) {
  MockEndpoint first([](const MockRequest&) { return Level(1); });
  ASSERT_EQ(Run({"--endpoint=" + first.url()}).exit_code, 0);
  const CommandResult down =
      Run({"--endpoint=http://127.0.0.1:1/v1", "--votes=2", "--max_attempts=1"});
  EXPECT_EQ(down.exit_code, 1);
  EXPECT_THAT(down.err, HasSubstr("net#1: the endpoint http://127.0.0.1:1/v1 gave no usable "));
  EXPECT_THAT(down.err, HasSubstr("label_difficulty: 3 requests got no response, for the reasons "
                                  "above; the same command asks again\n"));
  EXPECT_EQ(Labels().size(), 3);

  MockEndpoint second([](const MockRequest&) { return Level(1); }, "right");
  const std::vector<std::string> flags = {"--endpoint=" + second.url(), "--votes=2",
                                          "--api_key_variable=TEST_LABEL_KEY", "--max_in_flight=1"};
  setenv("TEST_LABEL_KEY", "wrong", 1);
  const CommandResult refused = Run(flags);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("label_difficulty: the endpoint " + second.url() +
                                     " refuses the key in the variable TEST_LABEL_KEY"));
  EXPECT_EQ(Labels().size(), 3);
  const int64_t asked = second.requests();
  setenv("TEST_LABEL_KEY", "right", 1);
  EXPECT_EQ(Run(flags).exit_code, 0);
  EXPECT_EQ(second.requests(), asked + 3);
  EXPECT_EQ(Labels()["net"]["votes"], json::array({1, 1}));
}

TEST_F(LabelTest, AFullDiskLosesNoAnswer) {
  MockEndpoint endpoint([](const MockRequest&) { return Level(2); });
  // Room for the answers and one task file: each file has a page of 4 KiB.
  const auto runs = RunOnASmallDisk(Command({"--endpoint=" + endpoint.url(), "--max_tokens=1"}),
                                    out_, 8192, dir_ + "/full", dir_ + "/done");
  ASSERT_TRUE(runs.ok()) << runs.status();
  if (!runs->possible) GTEST_SKIP() << "this test needs the right to mount a file system";
  EXPECT_EQ(runs->first, 1) << runs->first_err;
  EXPECT_THAT(runs->first_err, HasSubstr("label_difficulty: cannot write " + out_ + "/level"));
  EXPECT_THAT(runs->first_err,
              HasSubstr(".py: No space left on device; make room there and run the same command "));
  EXPECT_EQ(runs->second, 0) << runs->second_err;
  EXPECT_EQ(endpoint.requests(), 3) << "an answer that was there was asked for again";
  EXPECT_EQ(LoadTasks(dir_ + "/done")->tasks.size(), 3);
}

TEST_F(LabelTest, MistakesAreOneSentence) {
  const std::string url = "--endpoint=http://127.0.0.1:1/v1";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "--endpoint is missing"},
      {{url, "--votes=0"}, "--votes must be 1 to 15"},
      {{url, "--top_p=2"}, "--top_p must be above 0"},
      {{url, "--prompt_file=/dev/null"}, "lacks {task}"},
      {{url, "--out=" + tasks_}, "--out and --tasks are the same folder"},
      {{url, "word"}, "'word' is no flag"},
  };
  for (const auto& [flags, part] : cases) {
    const CommandResult result = Run(flags);
    EXPECT_EQ(result.exit_code, 2) << part << result.err;
    EXPECT_THAT(result.err, HasSubstr(part));
  }
  Add("level2/net");
  const CommandResult same = Run({url});
  EXPECT_EQ(same.exit_code, 2);
  EXPECT_THAT(same.err, HasSubstr("the tasks level2/net and net would get the same name"));
}

}  // namespace
}  // namespace tritonrl
