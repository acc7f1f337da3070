#include "eval/sources/file_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "eval/sources/testing/input_folder.h"

namespace tritonrl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FileSourceTest : public InputFolderTest {};

TEST_F(FileSourceTest, KernelBenchRun) {
  Write("run/level_1_problem_19_sample_1_kernel.py", "d");
  Write("run/level_1_problem_19_sample_0_kernel.py", "c");
  Write("run/level_1_problem_1_sample_0_kernel.py", "a");
  Write("run/level_1_problem_1_sample_10_kernel.py", "b");
  Write("run/level_3_problem_7_sample_0_kernel.py", "x");
  Write("run/eval_results.json", "{\"1\": {\"correctness\": true}}");
  Write("run/generation_config.yaml", "level: 1");
  Write("run/level_1_problem_1_sample_0_prompt.txt", "prompt");
  Write("run/.cache/level_1_problem_1_sample_0_kernel.py", "hidden");
  const LoadedGenerations loaded = Load(Path("run"));
  EXPECT_EQ(loaded.layout, "KernelBench run");
  EXPECT_EQ(Text(loaded),
            "level1/1_add 0 0 a\nlevel1/1_add 10 0 b\n"
            "level1/19_ReLU 0 0 c\nlevel1/19_ReLU 1 0 d\n");
  EXPECT_EQ(loaded.k, 2);
  EXPECT_FALSE(loaded.generations[0].response.has_value());
  EXPECT_EQ(loaded.generations[0].source, "level_1_problem_1_sample_0_kernel.py");
  EXPECT_THAT(loaded.problems, ElementsAre(HasSubstr("1 generations of level 3 are left out")));
  EXPECT_THAT(loaded.tasks_without, IsEmpty()) << "level 2 has no generation at all";
}

TEST_F(FileSourceTest, TheFirstSamplesOfEachTask) {
  for (const int sample : {0, 2, 5}) {
    Write(absl::StrCat("run/level_1_problem_1_sample_", sample, "_kernel.py"), "a");
  }
  for (const int sample : {1, 3}) {
    Write(absl::StrCat("run/level_1_problem_19_sample_", sample, "_kernel.py"), "b");
  }
  const LoadedGenerations loaded = Load(Path("run"), {.k = 2});
  EXPECT_EQ(Text(loaded),
            "level1/1_add 0 0 a\nlevel1/1_add 2 0 a\n"
            "level1/19_ReLU 1 0 b\nlevel1/19_ReLU 3 0 b\n");
  EXPECT_EQ(loaded.k, 2);
}

TEST_F(FileSourceTest, TasksWithoutAGenerationAreNamed) {
  Write("run/level_1_problem_19_sample_0_kernel.py", "c");
  const LoadedGenerations loaded = Load(Path("run"));
  EXPECT_THAT(loaded.tasks_without, ElementsAre("level1/1_add"));
  EXPECT_THAT(loaded.problems,
              ElementsAre(HasSubstr("tasks without a generation: 1 (level1/1_add)")));
}

TEST_F(FileSourceTest, KernelBenchSamples) {
  const auto write = [this](const std::string& place, const std::string& text) {
    Write(absl::StrCat("all/baseline_eval/", place, "/kernel.json"), text);
  };
  write("level1/o1/problem_1/sample_0",
        R"({"kernel": "a", "level": 1, "problem_id": 1, "eval_result": {"runtime": NaN}})");
  write("level1/o1/problem_19/sample_0", R"({"kernel": "b"})");
  write("level2/o1/problem_1/sample_0", R"({"kernel": "c"})");
  write("level1/r1/problem_1/sample_0", R"({"kernel": "d"})");
  const LoadedGenerations loaded = Load(Path("all"), {.model = "o1"});
  EXPECT_EQ(loaded.layout, "KernelBench samples");
  EXPECT_EQ(Text(loaded), "level1/1_add 0 0 a\nlevel1/19_ReLU 0 0 b\nlevel2/1_fused 0 0 c\n");
  EXPECT_EQ(loaded.generations[0].source,
            "o1, baseline_eval/level1/o1/problem_1/sample_0/kernel.json");
  EXPECT_EQ(Text(Load(Path("all/baseline_eval/level1/r1"))), "level1/1_add 0 0 d\n");
  EXPECT_EQ(Text(Load(Path("all/baseline_eval/level1/r1/problem_1"))), "level1/1_add 0 0 d\n");
}

TEST_F(FileSourceTest, SamplesOfAnEvaluation) {
  const std::string rest =
      R"("level":1,"response_style":"plain","code_block":"first","tokens":7,"plan_tokens":1,)"
      R"("verdict":{"valid":true})";
  Write("out/samples.jsonl",
        absl::StrCat(R"({"slot":0,"sample":0,"task":"level1/1_add","prompt":"p","response":"a",)"
                     R"("finish_reason":"stop",)",
                     rest, "}\n", R"({"slot":1,"sample":0,"task":"level1/19_ReLU","response":"",)",
                     R"("finish_reason":"length",)", rest, "}\n"));
  Write("out/results.json", "{}");
  for (const std::string& path : {Path("out"), Path("out/samples.jsonl")}) {
    const LoadedGenerations loaded = Load(path);
    EXPECT_EQ(Text(loaded), "level1/1_add 0 0 a\nlevel1/19_ReLU 0 0 \n");
    ASSERT_EQ(loaded.generations.size(), 2);
    EXPECT_EQ(loaded.generations[0].style.plan, ResponseStyle::Plan::kPlain);
    EXPECT_EQ(loaded.generations[0].style.code_block, ResponseStyle::CodeBlock::kFirst);
    EXPECT_EQ(loaded.generations[0].tokens, 7);
    EXPECT_FALSE(loaded.generations[0].truncated);
    EXPECT_TRUE(loaded.generations[1].truncated);
    EXPECT_TRUE(loaded.generations[1].response.has_value()) << "an empty response is a response";
    EXPECT_EQ(loaded.generations[1].source, "samples.jsonl, line 2");
  }
}

TEST_F(FileSourceTest, ATaskThatAStepDrewTwiceHasAllItsSamples) {
  std::string text;
  for (const int slot : {9, 4}) {
    for (const int sample : {0, 1}) {
      absl::StrAppend(&text, R"({"task":"level1/1_add","response":")", slot, sample, R"(","slot":)",
                      slot, R"(,"sample":)", sample, "}\n");
    }
  }
  const LoadedGenerations loaded = Load(Write("step_000003.jsonl", text));
  EXPECT_EQ(Text(loaded),
            "level1/1_add 0 0 40\nlevel1/1_add 1 0 41\nlevel1/1_add 2 0 90\nlevel1/1_add 3 0 91\n");
}

TEST_F(FileSourceTest, LinesOfOthers) {
  const std::string path =
      Write("any.jsonl",
            "\n"
            R"({"level":1,"problem_id":19,"sample":0,"code":"b","score":1.5,"more":[NaN]})"
            "\n"
            R"({"task":"level1/1_add","sample":0,"response":"a"})"
            "\r\n"
            R"({"task":"level1/1_add","sample":0,"turn":1,"code":"a2","source":"me"})"
            "\n"
            R"({"level":2,"problem_id":1,"sample":3,"response":"c","code_block":"last"})");
  const ResponseStyle style = {.plan = ResponseStyle::Plan::kPlain,
                               .code_block = ResponseStyle::CodeBlock::kFirst};
  const LoadedGenerations loaded = Load(path, {.style = style});
  EXPECT_EQ(loaded.layout, "JSON Lines");
  EXPECT_EQ(Text(loaded),
            "level1/1_add 0 0 a\nlevel1/1_add 0 1 a2\nlevel1/19_ReLU 0 0 b\n"
            "level2/1_fused 3 0 c\n");
  EXPECT_EQ(loaded.k, 1);
  EXPECT_EQ(loaded.generations[0].style, style);
  EXPECT_EQ(loaded.generations[1].source, "me");
  EXPECT_EQ(loaded.generations[3].style.plan, ResponseStyle::Plan::kPlain);
  EXPECT_EQ(loaded.generations[3].style.code_block, ResponseStyle::CodeBlock::kLast);
}

TEST_F(FileSourceTest, CudaL1BringsItsOwnTasks) {
  const std::string reference = R"("ref_code":"class Model:\n    def forward(self, x):\n)"
                                R"(        return x\ndef get_inputs():\n    return [1]\n)"
                                R"(def get_init_inputs():\n    return []\n")";
  const auto line = [&](int level, int task, const std::string& code) {
    return absl::StrCat("{\"level_id\":", level, ",\"task_id\":", task, ",", reference,
                        ",\"custom_code\":", code, ",\"score_default\":1.5}\n");
  };
  const std::string path = Write("a100.json", line(1, 1, "\"a\"") + line(1, 19, "null") +
                                                  line(1, 20, "\"t\"") + line(3, 1, "\"m\""));
  const LoadedGenerations loaded = Load(path);
  EXPECT_EQ(loaded.layout, "CUDA-L1");
  EXPECT_EQ(Text(loaded), "level1/1 0 0 a\n") << "only the tasks given";
  ASSERT_EQ(loaded.own_tasks.size(), 2);
  EXPECT_EQ(loaded.own_tasks[0].id, "level1/1");
  EXPECT_EQ(loaded.own_tasks[0].level, 1);
  EXPECT_THAT(loaded.own_tasks[0].source, HasSubstr("return [1]"));
  EXPECT_THAT(loaded.tasks_without, ElementsAre("level1/19"));
  tasks_.clear();
  EXPECT_EQ(Text(Load(path)), "level1/1 0 0 a\nlevel1/20 0 0 t\nlevel3/1 0 0 m\n");
}

TEST_F(FileSourceTest, LinksInsideTheFolderAreFiles) {
  Write("run/kept/a.py", "a");
  ASSERT_EQ(symlink("kept/a.py", Path("run/level_1_problem_1_sample_0_kernel.py").c_str()), 0);
  EXPECT_EQ(Text(Load(Path("run"))), "level1/1_add 0 0 a\n");
  ASSERT_EQ(symlink(Path("run").c_str(), Path("link").c_str()), 0);
  EXPECT_EQ(Text(Load(Path("link"))), "level1/1_add 0 0 a\n") << "the folder may be a link";
}

TEST_F(FileSourceTest, AsASource) {
  const std::string path = Write("a.jsonl", R"({"task":"level1/1_add","sample":0,"code":"a"})"
                                            "\n"
                                            R"({"task":"level1/1_add","sample":1,"code":"b"})"
                                            "\n");
  const auto source = MakeFileSource(Load(path));
  EXPECT_FALSE(source->converses());
  EXPECT_EQ(source->Describe(), "2 generations (JSON Lines)");
  std::string emitted;
  const auto emit = [&](Generation generation) {
    emitted += generation.code;
    return absl::OkStatus();
  };
  const auto always = [] { return true; };
  const GenerationRequest first = {.task = "level1/1_add", .sample = 0};
  const GenerationRequest second = {.task = "level1/1_add", .sample = 1};
  EXPECT_TRUE(source->Generate({second, first}, emit, always).ok());
  EXPECT_EQ(emitted, "ba");
  EXPECT_TRUE(absl::IsCancelled(source->Generate({first}, emit, [] { return false; })));
  GenerationRequest later = first;
  later.turn = 1;
  EXPECT_TRUE(absl::IsNotFound(source->Generate({later}, emit, always)));
  const auto refuse = [](Generation) { return absl::DataLossError("full"); };
  EXPECT_TRUE(absl::IsDataLoss(source->Generate({first, second}, refuse, always)));
}

TEST_F(FileSourceTest, TheFingerprintIsThatOfTheContents) {
  const std::string text = R"({"task":"level1/1_add","sample":0,"code":"a"})";
  const std::string one = MakeFileSource(Load(Write("a.jsonl", text)))->Fingerprint();
  EXPECT_EQ(one.size(), 64);
  EXPECT_EQ(MakeFileSource(Load(Write("b/c.jsonl", "\n" + text)))->Fingerprint(), one);
  const std::string other = R"({"task":"level1/1_add","sample":0,"code":"b"})";
  EXPECT_NE(MakeFileSource(Load(Write("d.jsonl", other)))->Fingerprint(), one);
}

}  // namespace
}  // namespace tritonrl
