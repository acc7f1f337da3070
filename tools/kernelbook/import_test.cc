// Whole imports of a small file in KernelBook's form, in the real sandbox.
#include "tools/kernelbook/import.h"

#include <signal.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "base/subprocess.h"
#include "base/testing/small_disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/loader.h"
#include "tools/task_check/findings_journal.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Json = nlohmann::json;

std::vector<std::string> Lines(const std::string& path) {
  const auto text = ReadFile(path);
  return text.ok() ? absl::StrSplit(*text, '\n', absl::SkipEmpty()) : std::vector<std::string>();
}

// The names and texts of the files of a folder.
std::map<std::string, std::string> Files(const std::string& folder) {
  std::map<std::string, std::string> files;
  const auto names = ListDirectory(folder);
  EXPECT_TRUE(names.ok()) << names.status();
  if (!names.ok()) return files;
  for (const std::string& name : *names) files[name] = *ReadFile(JoinPath(folder, name));
  return files;
}

class ImportTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *MakeTempDirectory("import"); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }

  std::string Path(const std::string& name) const { return JoinPath(folder_, name); }

  // Writes a file of rows and returns the counts that its import has to find.
  Json Make(const std::string& name, const std::vector<std::string>& more) const {
    const auto python = FindPythonEnv();
    const auto generator = Runfile("tools/kernelbook/testing/make_kernelbook.py");
    EXPECT_TRUE(python.ok() && generator.ok());
    std::vector<std::string> argv = {python->interpreter, *generator,
                                     absl::StrCat("--out=", Path(name))};
    argv.insert(argv.end(), more.begin(), more.end());
    const auto result = RunCommand(argv, {.env = python->Environment()});
    EXPECT_TRUE(result.ok() && result->ok()) << (result.ok() ? result->err : "");
    return Json::parse(result->out, nullptr, /*allow_exceptions=*/false);
  }

  ImportOptions Options(const std::string& in) const {
    ImportOptions options;
    options.in = Path(in);
    options.out = Path("out");
    options.check.workers = 2;
    options.check.wall_seconds = 10;
    return options;
  }

  // The command of an import of the first rows of `in`, in which every task is sound.
  std::vector<std::string> Command(const std::string& in, const std::string& out) const {
    return {*Runfile("tools/kernelbook/kernelbook"), absl::StrCat("--in=", Path(in)),
            absl::StrCat("--out=", Path(out)), "--workers=1", "--limit=30"};
  }

  // Starts the command, sends `signal` when three more tasks have run, and waits.
  ExitStatus RunAndSignal(const std::vector<std::string>& argv, int signal,
                          const std::string& journal) const {
    const size_t enough = Lines(journal).size() + 3;
    auto child = Subprocess::Start({.argv = argv});
    EXPECT_TRUE(child.ok()) << child.status();
    const absl::Time deadline = absl::Now() + absl::Minutes(5);
    while (Lines(journal).size() < enough && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    child->Signal(signal);
    const auto status = child->Wait(absl::Minutes(2));
    EXPECT_TRUE(status.has_value());
    return status.value_or(ExitStatus());
  }

  std::string folder_;
};

TEST_F(ImportTest, EveryQuirkHasItsReason) {
  const Json expected = Make("rows.parquet", {absl::StrCat("--kernelbench=", Path("bench"))});
  ImportOptions options = Options("rows.parquet");
  options.kernelbench = Path("bench");
  const auto summary = ImportKernelBook(options);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->rows, expected["rows"].get<int64_t>());
  EXPECT_EQ(summary->kept, expected["kept"].get<int64_t>());
  const auto counts = expected["left_out"].get<std::map<std::string, int64_t>>();
  const std::vector<std::string> left_out = Lines(Path("out/left_out.jsonl"));
  if (summary->left_out != counts) {
    for (const std::string& line : left_out) std::printf("%s\n", line.c_str());
  }
  EXPECT_EQ(summary->left_out, counts);
  EXPECT_EQ(left_out.size(), summary->rows - summary->kept);
  for (const std::string& line : left_out) {
    const Json json = Json::parse(line);
    EXPECT_FALSE(json["message"].get<std::string>().empty()) << line;
    EXPECT_GT(json["row"].get<int64_t>(), 0) << line;
  }
  const auto tasks = LoadTasks(Path("out/tasks"));
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  EXPECT_THAT(tasks->problems, IsEmpty());
  EXPECT_EQ(tasks->tasks.size(), summary->kept);
  EXPECT_EQ(tasks->tasks[0].id, "1000_Net0");
  EXPECT_TRUE(absl::StartsWith(tasks->tasks[0].source, "import torch\n")) << tasks->tasks[0].source;
  const std::vector<std::string> origins = Lines(Path("out/origins.jsonl"));
  ASSERT_EQ(origins.size(), summary->kept);
  const Json origin = Json::parse(origins[0]);
  EXPECT_EQ(origin["task"], "1000_Net0");
  EXPECT_EQ(origin["uuid"], "1000");
  EXPECT_EQ(origin["repo_name"], "owner/repository-0");
  EXPECT_EQ(origin["sha"], std::string(40, '0'));
  EXPECT_EQ(origin["licenses"], "Apache-2.0, MIT");
  EXPECT_TRUE(absl::EndsWith(tasks->tasks[0].source, "\nModel = Net0\n"));
  const Json stored = Json::parse(*ReadFile(Path("out/summary.json")));
  EXPECT_EQ(stored["kept"], summary->kept);
  EXPECT_EQ(stored["stages"].back()["remaining"], summary->kept);
  EXPECT_THAT(ImportTable(*summary), HasSubstr("near_kernelbench"));

  // Again: every finding is known, and the result is the same.
  const auto files = Files(Path("out/tasks"));
  const auto again = ImportKernelBook(options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ran, 0);
  EXPECT_EQ(again->left_out, summary->left_out);
  EXPECT_EQ(Files(Path("out/tasks")), files);
}

TEST_F(ImportTest, AKilledImportGoesOn) {
  Make("rows.jsonl", {"--good=40"});
  const std::string journal = Path("killed/journal.jsonl");
  EXPECT_EQ(RunAndSignal(Command("rows.jsonl", "killed"), SIGKILL, journal).signal, SIGKILL);
  EXPECT_FALSE(FileExists(Path("killed/tasks")));
  const size_t before = Lines(journal).size();
  EXPECT_EQ(RunAndSignal(Command("rows.jsonl", "killed"), SIGINT, journal).exit_code, 75);
  const auto result = RunCommand(Command("rows.jsonl", "killed"), {.timeout = absl::Minutes(5)});
  ASSERT_TRUE(result.ok() && result->ok()) << result->err;
  EXPECT_THAT(result->out, HasSubstr("30 tasks in"));
  EXPECT_EQ(result->out.find("ran 30 tasks"), std::string::npos) << result->out;
  std::set<std::string> keys;
  for (const std::string& line : Lines(journal)) keys.insert(Json::parse(line)["key"]);
  EXPECT_EQ(keys.size(), 30);
  EXPECT_EQ(Lines(journal).size(), 30) << "no task ran twice";
  EXPECT_GE(before, 3);

  const auto whole = RunCommand(Command("rows.jsonl", "whole"), {.timeout = absl::Minutes(5)});
  ASSERT_TRUE(whole.ok() && whole->ok()) << whole->err;
  EXPECT_EQ(Files(Path("killed/tasks")), Files(Path("whole/tasks")));
}

TEST_F(ImportTest, AFullDiskKeepsWhatWasRun) {
  Make("rows.jsonl", {"--good=40"});
  // Too small for 30 tasks, each of which has a page of 4 KiB.
  const auto runs = RunOnASmallDisk(Command("rows.jsonl", "small"), Path("small"), 65536,
                                    Path("full"), Path("done"));
  ASSERT_TRUE(runs.ok()) << runs.status();
  if (!runs->possible) GTEST_SKIP() << "this test needs the right to mount a file system";
  EXPECT_EQ(runs->first, 1);
  EXPECT_THAT(runs->first_err, HasSubstr("kernelbook: cannot write " + Path("small")));
  EXPECT_THAT(runs->first_err,
              HasSubstr("No space left on device; make room there and run the same command again; "
                        "what was run is kept\n"));
  EXPECT_EQ(Lines(Path("full/journal.jsonl")).size(), 30);
  EXPECT_FALSE(FileExists(Path("full/tasks")));
  EXPECT_EQ(runs->second, 0) << runs->second_err;
  EXPECT_THAT(runs->second_out, HasSubstr("30 tasks in"));
  EXPECT_THAT(runs->second_out, HasSubstr("ran 0 tasks"));
  EXPECT_EQ(Files(Path("done/tasks")).size(), 30);
}

TEST_F(ImportTest, ASecondImportIntoTheSameFolderIsRefused) {
  Make("rows.jsonl", {"--good=40"});
  ASSERT_TRUE(CreateDirectories(Path("out")).ok());
  const auto journal = FindingsJournal::Open(Path("out/journal.jsonl"));
  ASSERT_TRUE(journal.ok()) << journal.status();
  const auto summary = ImportKernelBook(Options("rows.jsonl"));
  EXPECT_TRUE(absl::IsFailedPrecondition(summary.status())) << summary.status();
  EXPECT_THAT(Message(summary.status()), HasSubstr("journal.jsonl"));
}

TEST_F(ImportTest, AFolderTakesNoImportOfAnotherFile) {
  Make("first.jsonl", {"--good=40"});
  Make("second.jsonl", {"--good=41"});
  const auto run = [&](const std::string& in, const std::string& limit) {
    std::vector<std::string> argv = Command(in, "out");
    argv.back() = limit;
    const auto result = RunCommand(argv, {.timeout = absl::Minutes(5)});
    EXPECT_TRUE(result.ok()) << result.status();
    return *result;
  };
  ASSERT_EQ(run("first.jsonl", "--limit=3").exit_code, 0);
  const auto files = Files(Path("out/tasks"));
  const std::string summary = *ReadFile(Path("out/summary.json"));
  const CommandResult other = run("second.jsonl", "--limit=3");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_EQ(other.err.substr(other.err.rfind("kernelbook: ")),
            absl::StrCat("kernelbook: ", Path("out"), " holds the import of ", Path("first.jsonl"),
                         ", not of ", Path("second.jsonl"),
                         "; give another --out, or remove the folder\n"));
  EXPECT_EQ(Files(Path("out/tasks")), files);
  EXPECT_EQ(*ReadFile(Path("out/summary.json")), summary);
  // More rows of the same file, also under another name, go on.
  ASSERT_TRUE(RenameFile(Path("first.jsonl"), Path("moved.jsonl")).ok());
  const CommandResult more = run("moved.jsonl", "--limit=4");
  EXPECT_EQ(more.exit_code, 0) << more.err;
  EXPECT_THAT(more.out, HasSubstr("ran 1 tasks"));
}

TEST(ClaimFolderTest, TheFileCountsAndNotItsName) {
  const std::string folder = *MakeTempDirectory("claim");
  const std::string in = JoinPath(folder, "in"), other = JoinPath(folder, "other");
  ASSERT_TRUE(WriteFileAtomic(in, "rows").ok());
  ASSERT_TRUE(WriteFileAtomic(other, "rows").ok());
  EXPECT_TRUE(ClaimFolder(folder, in).ok());
  EXPECT_TRUE(ClaimFolder(folder, other).ok());
  ASSERT_TRUE(WriteFileAtomic(other, "more rows").ok());
  const absl::Status changed = ClaimFolder(folder, other);
  EXPECT_TRUE(absl::IsFailedPrecondition(changed));
  EXPECT_EQ(Message(changed), absl::StrCat(folder, " holds the import of ", other,
                                           " as it was before, not of ", other,
                                           " as it is now; give another --out, or remove the "
                                           "folder"));
  EXPECT_TRUE(ClaimFolder(folder, in).ok());
  // A folder with a summary alone.
  ASSERT_TRUE(RemoveTree(JoinPath(folder, "source.json")).ok());
  ASSERT_TRUE(
      WriteFileAtomic(JoinPath(folder, "summary.json"), absl::StrCat("{\"in\": \"", in, "\"}"))
          .ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ClaimFolder(folder, other)));
  EXPECT_TRUE(ClaimFolder(folder, in).ok());
  EXPECT_TRUE(RemoveTree(folder).ok());
}

TEST_F(ImportTest, BadFlagsAndFilesEndWithOneSentence) {
  const std::string program = *Runfile("tools/kernelbook/kernelbook");
  const auto failure = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> argv = {program, absl::StrCat("--out=", Path("out"))};
    argv.insert(argv.end(), flags.begin(), flags.end());
    const auto result = RunCommand(argv, {.timeout = absl::Minutes(1)});
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_NE(result->exit_code, 0);
    return result->err;
  };
  EXPECT_THAT(failure({}), HasSubstr("kernelbook: pass --in=FILE; see --help\n"));
  EXPECT_THAT(failure({"--in=x", "--limit=-1"}), HasSubstr("--limit must not be negative"));
  EXPECT_THAT(failure({"--in=x", "--near_duplicates=0"}), HasSubstr("must be above 0"));
  EXPECT_THAT(failure({absl::StrCat("--in=", Path("none.parquet"))}),
              HasSubstr("none.parquet does not exist\n"));
  ASSERT_TRUE(WriteFileAtomic(Path("text.parquet"), "uuid,code\n1,x\n").ok());
  EXPECT_THAT(failure({absl::StrCat("--in=", Path("text.parquet"))}),
              HasSubstr(absl::StrCat("kernelbook: ", Path("text.parquet"),
                                     " is no Parquet file: it does not begin with PAR1\n")));
  ASSERT_TRUE(
      WriteFileAtomic(Path("names.jsonl"), "{\"code\": \"x\", \"entry_point\": \"A\"}\n").ok());
  EXPECT_THAT(failure({absl::StrCat("--in=", Path("names.jsonl"))}),
              HasSubstr(absl::StrCat("kernelbook: ", Path("names.jsonl"),
                                     " has no column python_code; its columns are code, "
                                     "entry_point. A KernelBook file has at least python_code and "
                                     "entry_point.\n")));
  Make("rows.jsonl", {"--good=40"});
  EXPECT_THAT(failure({absl::StrCat("--in=", Path("rows.jsonl")), "--limit=5",
                       absl::StrCat("--kernelbench=", Path("nowhere"))}),
              HasSubstr("nowhere does not exist\n"));
}

// Uuids may differ in characters that file names do not have.
TEST(WriteImportTest, RowsWithTheSameNameAreTasksOfTheirOwn) {
  const std::string folder = *MakeTempDirectory("names");
  std::vector<KernelBookRow> rows(4);
  const char* const uuids[] = {"a b", "a_b", "a.b", "a:b"};
  const char* const classes[] = {"Net", "Net_row3", "Net", "Net"};
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].number = static_cast<int64_t>(i) + 1;
    rows[i].uuid = uuids[i];
    rows[i].entry_point = classes[i];
    rows[i].python_code = absl::StrCat("row = ", i);
  }
  ASSERT_TRUE(WriteImport(folder, "rows.jsonl", rows, {}, {}).ok());
  const auto files = Files(JoinPath(folder, "tasks"));
  ASSERT_EQ(files.size(), rows.size());
  EXPECT_THAT(files.at("a_b_Net.py"), StartsWith("row = 0\n"));
  EXPECT_THAT(files.at("a_b_Net_row3.py"), StartsWith("row = 1\n"));
  EXPECT_THAT(files.at("a_b_Net_row3_row3.py"), StartsWith("row = 2\n"));
  EXPECT_THAT(files.at("a_b_Net_row4.py"), StartsWith("row = 3\n"));
  EXPECT_TRUE(RemoveTree(folder).ok());
}

TEST(TaskTextTest, NamesTheModelUnlessItIsCalledSo) {
  KernelBookRow row;
  row.number = 12;
  row.entry_point = "Net";
  row.python_code = "class Net: pass";
  EXPECT_EQ(TaskText(row), "class Net: pass\n\n\nModel = Net\n");
  EXPECT_EQ(TaskName(row), "row12_Net");
  row.entry_point = "Model";
  row.uuid = "a/b 7";
  EXPECT_EQ(TaskText(row), "class Net: pass\n");
  EXPECT_EQ(TaskName(row), "a_b_7_Model");
}

}  // namespace
}  // namespace tritonrl
