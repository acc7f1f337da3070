#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "eval/sources/file_source.h"
#include "eval/sources/testing/input_folder.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class FileSourceErrorsTest : public InputFolderTest {
 protected:
  // The error of a file with these lines.
  std::string LinesError(const std::string& text, const LoadOptions& options = {}) {
    return Error(Write("f.jsonl", text), options);
  }
};

TEST_F(FileSourceErrorsTest, DuplicatesNameBothPlaces) {
  const std::string line = R"({"task":"level1/1_add","sample":4,"code":"a"})";
  EXPECT_EQ(LinesError(line + "\n\n" + line + "\n"),
            "DIR/f.jsonl, line 3: sample 4 of task \"level1/1_add\" was already given in "
            "DIR/f.jsonl, line 1; give one run, or number the samples apart");
  EXPECT_THAT(LinesError(line + "\n" + R"({"level":1,"problem_id":1,"sample":4,"code":"b"})"),
              HasSubstr("line 2: sample 4 of task \"level1/1_add\" was already given"));
  const std::string turn = R"({"task":"level1/1_add","sample":4,"turn":2,"code":"a"})";
  EXPECT_THAT(LinesError(turn + "\n" + turn),
              HasSubstr("sample 4 of task \"level1/1_add\", turn 2, was already given"));
  const std::string slot = R"({"task":"level1/1_add","slot":3,"sample":0,"response":"a"})";
  const std::string other = R"({"task":"level1/1_add","slot":5,"sample":0,"response":"a"})";
  EXPECT_THAT(LinesError(slot + "\n" + other + "\n" + slot), HasSubstr("line 3: sample 0 of"));
  Write("runs/a/level_1_problem_1_sample_0_kernel.py", "a");
  Write("runs/b/level_1_problem_01_sample_00_kernel.py", "b");
  EXPECT_THAT(Error(Path("runs")),
              HasSubstr("DIR/runs/b/level_1_problem_01_sample_00_kernel.py: sample 0 of task "
                        "\"level1/1_add\" was already given in "
                        "DIR/runs/a/level_1_problem_1_sample_0_kernel.py"));
}

TEST_F(FileSourceErrorsTest, UnknownTasksNameTheNearest) {
  EXPECT_EQ(LinesError(R"({"task":"level1/19_Relu","sample":0,"code":"a"})"),
            "DIR/f.jsonl, line 1: task \"level1/19_Relu\" is not among the 3 tasks given; the "
            "nearest is \"level1/19_ReLU\"; give the tasks that the generations were made for, or "
            "correct it");
  EXPECT_THAT(LinesError(R"({"task":"1_add","sample":0,"code":"a"})"),
              HasSubstr("the nearest is \"level1/1_add\""));
  EXPECT_THAT(LinesError(absl::StrCat(R"({"task":")", std::string(100'000, 'x'),
                                      R"(","sample":0,"code":"a"})"))
                  .size(),
              testing::Lt(600));
  EXPECT_THAT(LinesError(R"({"level":1,"problem_id":17,"sample":0,"code":"a"})"),
              HasSubstr("problem 17 of level 1 is not among the 3 tasks given; the nearest number "
                        "is that of \"level1/19_ReLU\""));
  Write("run/level_1_problem_2_sample_0_kernel.py", "a");
  EXPECT_THAT(Error(Path("run")),
              StartsWith("DIR/run/level_1_problem_2_sample_0_kernel.py: problem 2 of level 1 is "
                         "not among the 3 tasks given"));
  EXPECT_EQ(LinesError(R"({"task":"level4/1_x","sample":0,"code":"a"})"),
            "DIR/f.jsonl (JSON Lines) has no generation of the 3 tasks given; DIR/f.jsonl: 1 "
            "generations of level 4 are left out, because no task of it is given");
}

TEST_F(FileSourceErrorsTest, NumbersThatFitSeveralTasks) {
  tasks_.push_back(MakeTask("level1/19_ReLU_v2", 1));
  EXPECT_THAT(LinesError(R"({"level":1,"problem_id":19,"sample":0,"code":"a"})"),
              HasSubstr("line 1: problem 19 of level 1 may be any of 2 tasks, such as "
                        "\"level1/19_ReLU\" and \"level1/19_ReLU_v2\"; give tasks with one file "
                        "for each number"));
}

TEST_F(FileSourceErrorsTest, CountsThatDiffer) {
  std::string text;
  for (int sample = 0; sample < 3; ++sample) {
    absl::StrAppend(&text, R"({"task":"level1/1_add","code":"a","sample":)", sample, "}\n");
  }
  text += R"({"task":"level1/19_ReLU","code":"a","sample":0})";
  EXPECT_EQ(LinesError(text),
            "DIR/f.jsonl: task \"level1/1_add\" has 3 generations, task \"level1/19_ReLU\" 1; "
            "--k=1 takes the first 1 of each");
  EXPECT_EQ(LinesError(text, {.k = 2}),
            "DIR/f.jsonl: --k is 2, but task \"level1/19_ReLU\" has 1 generations; it may be at "
            "most 1");
  EXPECT_THAT(LinesError(text, {.k = -1}), HasSubstr("k is negative"));
}

TEST_F(FileSourceErrorsTest, FieldsOfALine) {
  const auto expect = [this](const std::string& line, const std::string& message) {
    EXPECT_THAT(LinesError("\n" + line + "\n"), HasSubstr("DIR/f.jsonl, line 2: " + message));
  };
  expect(R"({"sample":0,"code":"a"})", "there is neither 'task'");
  expect(R"({"task":"","sample":0,"code":"a"})", "field 'task' is empty");
  expect(R"({"task":["x"],"sample":0,"code":"a"})",
         "field 'task' is an array; it must be a string");
  expect(R"({"level":1,"sample":0,"code":"a"})", "field 'problem_id' is missing");
  expect(R"({"level":0,"problem_id":1,"sample":0,"code":"a"})", "field 'level' is 0; it must be");
  expect(R"({"task":"level1/1_add","code":"a"})",
         "field 'sample' is missing; it must be an integer");
  for (const std::string wrong :
       {"-1", "1.5", "\"1\"", "1e3", "99999999999999999999", "10000001"}) {
    expect(absl::StrCat(R"({"task":"level1/1_add","sample":)", wrong, R"(,"code":"a"})"),
           "field 'sample' is ");
  }
  expect(R"({"task":"level1/1_add","sample":0})", "there is neither 'response'");
  expect(R"({"task":"level1/1_add","sample":0,"code":"a","response":"b"})", "there are both");
  expect(R"({"task":"level1/1_add","sample":0,"code":7})",
         "field 'code' is 7; it must be a string");
  expect(R"({"task":"level1/1_add","sample":0,"response":"a","truncated":1})", "field 'truncated'");
  expect(R"({"task":"level1/1_add","sample":0,"response":"a","response_style":"odd"})",
         "response_style \"odd\"");
}

TEST_F(FileSourceErrorsTest, BrokenLines) {
  const std::string good = R"({"task":"level1/1_add","sample":0,"code":"a"})"
                           "\n";
  EXPECT_THAT(LinesError(good + "{\"task\": \n"), HasSubstr("f.jsonl, line 2: this is no JSON"));
  EXPECT_THAT(LinesError(good + R"({"task":"lev)"),
              HasSubstr("(the file ends in this line: was it cut off?)"));
  EXPECT_THAT(LinesError(good + "7\n"),
              HasSubstr("line 2: wanted one JSON object, but this is number"));
  EXPECT_THAT(LinesError("[" + good + "]"), HasSubstr("line 1: this is a JSON array; wanted one"));
  EXPECT_THAT(LinesError(good + "{\"task\":\"\xFF\"}\n"),
              HasSubstr("line 2: the line is not UTF-8 text"));
  EXPECT_THAT(LinesError(good + std::string("{\0}\n", 4)), HasSubstr("line 2: the line has a NUL"));
  EXPECT_THAT(LinesError(good + std::string((4 << 20) + 1, ' ') + "\n"),
              HasSubstr("line 2: the line is longer than 4194304 bytes"));
  EXPECT_THAT(LinesError(std::string(1 << 20, '[')), HasSubstr("JSON array"));
  EXPECT_THAT(LinesError("{\"task\":" + std::string(1 << 20, '[')), HasSubstr("no JSON"));
  EXPECT_THAT(LinesError(good + "{\"task\":1e400}\n"), HasSubstr("line 2: this is no JSON"));
  EXPECT_THAT(LinesError("version https://git-lfs.github.com/spec/v1\noid sha256:1\n"),
              HasSubstr("Git LFS pointer"));
  const std::string nested = std::string(1 << 20, '[') + std::string(1 << 20, ']');
  EXPECT_THAT(LinesError("{\"task\":" + nested + "}"), HasSubstr("field 'task' is an array"));
  EXPECT_EQ(LinesError(""), "DIR/f.jsonl is empty; wanted one JSON object a line");
  EXPECT_EQ(LinesError(" \n\n"), "DIR/f.jsonl is empty; wanted one JSON object a line");
}

TEST_F(FileSourceErrorsTest, PathsWithoutGenerations) {
  EXPECT_THAT(Error(Path("no")), StartsWith("DIR/no does not exist; wanted a KernelBench run"));
  ASSERT_TRUE(CreateDirectories(Path("empty")).ok());
  EXPECT_THAT(Error(Path("empty")), StartsWith("folder DIR/empty is empty; wanted"));
  Write("other/readme.txt", "x");
  EXPECT_THAT(Error(Path("other")),
              StartsWith("folder DIR/other has 1 files, but no generation among them; wanted"));
  Write("training/samples/eval_000080.jsonl", "{}");
  EXPECT_THAT(Error(Path("training")),
              HasSubstr("is the folder of a training run, with the samples "
                        "of many steps; give one of its files, such as "
                        "DIR/training/samples/eval_000080.jsonl"));
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(Error(Path("pipe")), HasSubstr("not a plain file"));
}

TEST_F(FileSourceErrorsTest, FilesOfARun) {
  const std::string bad = "run/level_1_problem_x_sample_0_kernel.py";
  Write(bad, "a");
  EXPECT_THAT(Error(Path("run")),
              HasSubstr("DIR/" + bad + ": wanted the name level_LEVEL_problem_PROBLEM_sample_"));
  Write("long/level_1_problem_1_sample_0_kernel.py", std::string((4 << 20) + 1, 'x'));
  EXPECT_THAT(Error(Path("long")),
              HasSubstr("has 4194305 bytes; a file with one program has at most 4194304"));
  Write("binary/level_1_problem_1_sample_0_kernel.py", std::string("a\0b", 3));
  EXPECT_THAT(Error(Path("binary")), HasSubstr("_kernel.py has a NUL byte"));
  Write("bytes/level_1_problem_1_sample_0_kernel.py", "\xFF");
  EXPECT_THAT(Error(Path("bytes")), HasSubstr("_kernel.py is not UTF-8 text"));
  Write("two/level_1_problem_1_sample_0_kernel.py", "a");
  Write("two/level1/m/problem_1/sample_0/kernel.json", "{}");
  EXPECT_THAT(Error(Path("two")), HasSubstr("has files of two layouts"));
  Write("pipes/level_1_problem_1_sample_0_kernel.py", "a");
  ASSERT_EQ(mkfifo(Path("pipes/level_1_problem_19_sample_0_kernel.py").c_str(), 0600), 0);
  EXPECT_THAT(Error(Path("pipes")), HasSubstr("is neither a file nor a folder; remove it"));
}

TEST_F(FileSourceErrorsTest, FilesOfPublishedSamples) {
  const auto error = [this](const std::string& name, const std::string& text) {
    Write(absl::StrCat(name, "/level1/m/problem_1/sample_0/kernel.json"), text);
    return Error(Path(name));
  };
  EXPECT_THAT(error("a", R"({"kernel":"x","problem_id":2})"),
              HasSubstr("kernel.json: field 'problem_id' is 2, but the folder says 1"));
  EXPECT_THAT(error("b", R"({"level":1})"), HasSubstr("kernel.json: field 'kernel' is missing"));
  EXPECT_THAT(error("c", "{"), HasSubstr("kernel.json: this is no JSON"));
  Write("d/level1/m/problem_1/kernel.json", "{}");
  EXPECT_THAT(Error(Path("d")), HasSubstr("wanted the folders levelLEVEL/MODEL/problem_PROBLEM/"));
  Write("e/level1/m/problem_1/sample_0/kernel.json", R"({"kernel":"x"})");
  Write("e/level1/n/problem_1/sample_0/kernel.json", R"({"kernel":"x"})");
  EXPECT_THAT(Error(Path("e")), HasSubstr("has the generations of 2 models (m, n); name one"));
  EXPECT_THAT(Error(Path("e"), {.model = "o"}),
              HasSubstr("has no generations of the model \"o\"; it has those of m, n"));
}

TEST_F(FileSourceErrorsTest, LinksOutOfTheFolder) {
  Write("secret.py", "a");
  const auto link = [this](const std::string& target, const std::string& name) {
    ASSERT_TRUE(CreateDirectories(DirName(Path(name))).ok());
    ASSERT_EQ(symlink(target.c_str(), Path(name).c_str()), 0);
  };
  link("../secret.py", "a/level_1_problem_1_sample_0_kernel.py");
  EXPECT_EQ(Error(Path("a")),
            "DIR/a/level_1_problem_1_sample_0_kernel.py is a symbolic link out of the folder; copy "
            "the folder with the files themselves (cp -rL FROM TO), and give the copy");
  link("/", "b/root");
  EXPECT_THAT(Error(Path("b")), HasSubstr("DIR/b/root is a symbolic link out of the folder"));
  link("nothing", "c/dangling");
  EXPECT_THAT(Error(Path("c")), HasSubstr("is a symbolic link to nothing"));
  link(".", "d/e/loop");
  EXPECT_THAT(Error(Path("d")), HasSubstr("DIR/d/e/loop is a symbolic link to a folder"));
  Write("gg/x.py", "a");
  link("../gg/x.py", "g/level_1_problem_1_sample_0_kernel.py");
  EXPECT_THAT(Error(Path("g")), HasSubstr("out of the folder")) << "its name begins alike";
}

TEST_F(FileSourceErrorsTest, FoldersThatAreTooDeep) {
  std::string name = "deep";
  for (int i = 0; i < 20; ++i) name += "/d";
  Write(name + "/level_1_problem_1_sample_0_kernel.py", "a");
  EXPECT_THAT(Error(Path("deep")), HasSubstr("is more than 16 folders deep"));
}

TEST_F(FileSourceErrorsTest, LinesOfCudaL1) {
  const std::string reference = R"("ref_code":"class Model:\n    def forward(self, x):\n)"
                                R"(        return x\ndef get_inputs():\n    return [1]\n)"
                                R"(def get_init_inputs():\n    return []\n")";
  const std::string good =
      absl::StrCat(R"({"level_id":1,"task_id":1,"custom_code":"a",)", reference, "}\n");
  EXPECT_THAT(LinesError(good + good),
              HasSubstr("line 2: task 1 of level 1 was already given in DIR/f.jsonl, line 1"));
  EXPECT_THAT(LinesError(good + R"({"level_id":1,"task_id":2,"ref_code":"x = 1"})"
                                "\n"),
              HasSubstr("line 2: field 'ref_code':1: "));
  EXPECT_THAT(LinesError(good + R"({"level_id":1,"task_id":"2"})"
                                "\n"),
              HasSubstr("line 2: field 'task_id' is \"2\""));
  tasks_ = {MakeTask("level2/5_other", 2)};
  EXPECT_THAT(LinesError(good), HasSubstr("(CUDA-L1) has none of the 1 tasks given"));
}

}  // namespace
}  // namespace tritonrl
