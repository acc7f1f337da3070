#include "verify/cli/case_reader.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

class CasesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("cases");
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *folder;
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }

  void Write(const std::string& name, const std::string& text) {
    const std::string path = JoinPath(folder_, name);
    ASSERT_TRUE(CreateDirectories(DirName(path)).ok());
    ASSERT_TRUE(WriteFileAtomic(path, text).ok());
  }

  std::vector<Case> ReadAll(const std::string& path, int64_t* total = nullptr) {
    auto reader = CaseReader::Open(path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<Case> cases;
    if (!reader.ok()) return cases;
    if (total != nullptr) *total = (*reader)->total();
    while (true) {
      auto next = (*reader)->Next();
      EXPECT_TRUE(next.ok()) << next.status();
      if (!next.ok() || !next->has_value()) return cases;
      cases.push_back(**next);
    }
  }

  std::string folder_;
};

TEST_F(CasesTest, LinesGoodAndBroken) {
  const std::string sources = R"("reference_source":"r","candidate_source":"c")";
  Write("cases.jsonl", absl::StrCat("{\"id\":\"a\",", sources, ",\"more\":[1]}\n",   // 1
                                    "{\"id\":7,", sources, ",\"task\":\"relu\"}\n",  // 2
                                    "\n",                                            // 3
                                    "{\"id\":\"7\",", sources, "}\n",                // 4
                                    "not json\n",                                    // 5
                                    "[1]\n",                                         // 6
                                    "{", sources, "}\n",                             // 7
                                    "{\"id\":true,", sources, "}\n",                 // 8
                                    "{\"id\":\"b\",\"reference_source\":\"r\"}\n",   // 9
                                    "{\"id\":\"c\",\"reference_source\":1}\n",       // 10
                                    "{\"id\":\"a\",", sources, "}\n",                // 11
                                    "{\"id\":\"\xFF\",", sources, "}\n",             // 12
                                    "{\"id\":1e40,", sources, "}\n",                 // 13
                                    std::string(kMaxCaseBytes + 1, 'x'), "\n",       // 14
                                    "{\"id\":\"last\",", sources, "}"));             // 15
  int64_t total = 0;
  const auto cases = ReadAll(JoinPath(folder_, "cases.jsonl"), &total);
  ASSERT_EQ(cases.size(), 14);
  EXPECT_EQ(total, 14);
  EXPECT_EQ(cases[0].id_json, "\"a\"");
  EXPECT_EQ(cases[0].task, "a");
  EXPECT_EQ(cases[0].reference_source, "r");
  EXPECT_EQ(cases[0].candidate_source, "c");
  EXPECT_EQ(cases[1].id_json, "7");
  EXPECT_EQ(cases[1].task, "relu");
  EXPECT_EQ(cases[2].id_json, "\"7\"");
  EXPECT_EQ(cases[2].line, 4);
  EXPECT_EQ(cases[2].error, "") << "the number 7 and the string 7 are two ids";
  EXPECT_NE(cases[3].error.find("not a JSON object"), std::string::npos);
  EXPECT_EQ(cases[3].where, JoinPath(folder_, "cases.jsonl") + ", line 5");
  EXPECT_EQ(cases[4].error, "not a JSON object");
  EXPECT_EQ(cases[5].error, "'id' is missing");
  EXPECT_NE(cases[6].error.find("'id' must be"), std::string::npos);
  EXPECT_EQ(cases[7].error, "'candidate_source' is missing");
  EXPECT_EQ(cases[7].id_json, "\"b\"");
  EXPECT_EQ(cases[8].error, "'reference_source' is not a string");
  EXPECT_EQ(cases[9].error, "id \"a\" was already given in line 1");
  EXPECT_NE(cases[10].error.find("UTF-8"), std::string::npos);
  EXPECT_NE(cases[11].error.find("'id' must be"), std::string::npos);
  EXPECT_NE(cases[12].error.find("longer than"), std::string::npos);
  EXPECT_EQ(cases[13].error, "");
  EXPECT_EQ(cases[13].line, 15);
}

TEST_F(CasesTest, ResponsesInTheirStyle) {
  const auto parse = [](const std::string& members, const std::string& style = "auto",
                        const std::string& block = "auto") {
    return ParseCase(absl::StrCat(R"({"id":"a","reference_source":"r",)", members, "}"),
                     {.response_style = style, .code_block = block});
  };
  const std::string thought = R"("response":"<think>p</think>\n```\nx\n```")";
  const std::string two = R"("response":"```\nx\n```\n```\ny\n```")";
  EXPECT_EQ(parse(thought).candidate_source, "x\n");
  EXPECT_EQ(parse(thought).response, "<think>p</think>\n```\nx\n```");
  EXPECT_EQ(parse(two).candidate_source, "") << "thinking needs a plan";
  EXPECT_EQ(parse(two, "plain").candidate_source, "x\n");
  EXPECT_EQ(parse(two, "plain", "last").candidate_source, "y\n");
  const std::string recorded = two + R"(,"response_style":"plain","code_block":"joined")";
  EXPECT_EQ(parse(recorded).candidate_source, "x\ny\n");
  EXPECT_EQ(parse(recorded, "auto", "first").candidate_source, "x\n");
  EXPECT_EQ(parse(recorded, "thinking").candidate_source, "");
  EXPECT_FALSE(parse(two).truncated);
  EXPECT_TRUE(parse(two + R"(,"truncated":true)").truncated);
  EXPECT_TRUE(parse(two + R"(,"finish_reason":"length")").truncated);
  EXPECT_FALSE(parse(two + R"(,"finish_reason":"stop")").truncated);

  EXPECT_EQ(parse(R"("response":1)").error, "'response' is not a string");
  EXPECT_EQ(parse(two + R"(,"response_style":"deep")").error,
            "response_style \"deep\" is unknown; use \"auto\", \"thinking\" or \"plain\"");
  EXPECT_NE(parse(two + R"(,"code_block":7)").error.find("code_block \"7\" is unknown"),
            std::string::npos);
  EXPECT_EQ(parse(R"("candidate_source":"c","response":"x")").candidate_source, "c");
}

TEST_F(CasesTest, SamplesOfARunWithTheirTasks) {
  const std::string source =
      "class Model:\n    def forward(self, x):\n        return x\n"
      "def get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n";
  Write("tasks/level1/1_a.py", source);
  Write("tasks/level1/2_b.py", "broken");
  const std::string sample =
      R"({"slot":3,"sample":1,"task":"level1/1_a","response":"</think>```\nx\n```"})";
  Write("samples.jsonl",
        absl::StrCat(sample, "\n", R"({"slot":0,"sample":0,"task":"gone","response":""})", "\n"));
  std::vector<std::string> problems;
  const auto options = MakeCaseOptions("auto", "auto", JoinPath(folder_, "tasks"), &problems);
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(problems.size(), 1);
  EXPECT_NE(problems[0].find("2_b.py"), std::string::npos);
  auto reader = CaseReader::Open(JoinPath(folder_, "samples.jsonl"), *options).value();
  const Case first = **reader->Next(), second = **reader->Next();
  EXPECT_EQ(first.error, "");
  EXPECT_EQ(first.id, "level1/1_a/3/1");
  EXPECT_EQ(first.id_json, "\"level1/1_a/3/1\"");
  EXPECT_EQ(first.task, "level1/1_a");
  EXPECT_EQ(first.reference_source, source);
  EXPECT_EQ(first.candidate_source, "x\n");
  EXPECT_EQ(second.error, "'task' is \"gone\", which is not among the tasks given");
  EXPECT_EQ(ParseCase(sample).error,
            "'reference_source' is missing; for samples of a run, give their folder to --tasks");
  EXPECT_FALSE(MakeCaseOptions("odd", "auto", "", &problems).ok());
  EXPECT_TRUE(absl::IsNotFound(
      MakeCaseOptions("auto", "auto", JoinPath(folder_, "no"), &problems).status()));
}

TEST_F(CasesTest, DeepNestingAndOddTextOnlyBreakTheirLine) {
  EXPECT_FALSE(ParseCase(std::string(1 << 20, '[')).error.empty());
  EXPECT_FALSE(ParseCase("{\"id\":" + std::string(1 << 20, '[')).error.empty());
  EXPECT_FALSE(ParseCase(std::string("\0\0", 2)).error.empty());
  EXPECT_FALSE(ParseCase("{\"id\":\"\\ud800\"}").error.empty());
}

TEST_F(CasesTest, FolderForms) {
  Write("softmax_reference.py", "r1");
  Write("softmax_fast.py", "c1");
  Write("softmax_log_reference.py", "r2");
  Write("softmax_log_a.py", "c2");
  Write("gelu/reference.py", "r3");
  Write("gelu/candidate.py", "c3");
  Write("gelu/second.py", "c4");
  Write("alone.py", "c5");
  Write("unused_reference.py", "r6");
  Write("sub/no_reference.py", "c7");
  Write("gelu/bytes.py", "\xFF");
  Write("notes/readme.txt", "not a program");
  const auto cases = ReadAll(folder_);
  ASSERT_EQ(cases.size(), 8);
  const auto expect = [&](int i, const std::string& id, const std::string& reference,
                          const std::string& candidate, const std::string& error) {
    EXPECT_EQ(cases[i].id, id);
    EXPECT_EQ(cases[i].line, 0);
    if (error.empty()) {
      EXPECT_EQ(cases[i].error, "");
      EXPECT_EQ(cases[i].reference_source, reference);
      EXPECT_EQ(cases[i].candidate_source, candidate);
    } else {
      EXPECT_NE(cases[i].error.find(error), std::string::npos) << cases[i].error;
    }
  };
  expect(0, "alone", "", "", "no reference belongs to it");
  expect(1, "gelu/bytes", "", "", "is not UTF-8 text");
  expect(2, "gelu/candidate", "r3", "c3", "");
  expect(3, "gelu/second", "r3", "c4", "");
  expect(4, "softmax_fast", "r1", "c1", "");
  expect(5, "softmax_log_a", "r2", "c2", "");
  expect(6, "sub/no_reference", "", "", "no reference belongs to it");
  expect(7, "unused_reference", "", "", "no candidate belongs");
}

// A fence in a program file is a user's copying mistake; a source in a JSONL file is checked
// unchanged.
TEST_F(CasesTest, FilesWithMarkdownFences) {
  Write("a_reference.py", "x = 1\n");
  Write("a_new.py", "Sure:\n```python\nx = 1\n```\n");
  Write("b_reference.py", "```python\nx = 1\n```\n");
  Write("b_new.py", "x = 1\n");
  Write("c_reference.py", "x = 1\n");
  Write("c_quoted.py", "'''\n```\n'''\nx = 1\n");
  const auto cases = ReadAll(folder_);
  ASSERT_EQ(cases.size(), 3);
  EXPECT_NE(cases[0].error.find("a_new.py:2: a Markdown fence"), std::string::npos);
  EXPECT_NE(cases[1].error.find("b_reference.py:1: a Markdown fence"), std::string::npos);
  EXPECT_EQ(cases[2].error, "");
  const std::string json =
      R"({"id":1,"reference_source":"r","candidate_source":"```python\nx = 1\n```\n"})";
  EXPECT_EQ(ParseCase(json).error, "");
}

TEST_F(CasesTest, WhatIsNoInputAtAll) {
  EXPECT_TRUE(absl::IsNotFound(CaseReader::Open(JoinPath(folder_, "no.jsonl")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(CaseReader::Open(folder_).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(CaseReader::Open("/dev/null").status()));
}

}  // namespace
}  // namespace tritonrl
