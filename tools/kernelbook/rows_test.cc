#include "tools/kernelbook/rows.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

class RowsTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *MakeTempDirectory("rows"); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }

  std::string Path(const std::string& name) const { return JoinPath(folder_, name); }
  std::string Write(const std::string& name, const std::string& contents) const {
    EXPECT_TRUE(WriteFileAtomic(Path(name), contents).ok());
    return Path(name);
  }
  // The one sentence with which a file is refused.
  std::string Refusal(const std::string& name, const std::string& contents) const {
    const auto rows = ReadKernelBook(Write(name, contents), 0);
    EXPECT_FALSE(rows.ok());
    const std::string message = Message(rows.status());
    EXPECT_THAT(message, HasSubstr(Path(name)));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  // Runs a program of the Python environment.
  void Python(const std::vector<std::string>& arguments) const {
    const auto python = FindPythonEnv();
    ASSERT_TRUE(python.ok()) << python.status();
    std::vector<std::string> argv = {python->interpreter};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const auto result = RunCommand(argv, {.env = python->Environment()});
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(result->ok()) << result->err;
  }

  std::string folder_;
};

constexpr char kRow[] =
    R"({"python_code": "code", "entry_point": "Net", "uuid": 7, "licenses": ["MIT", "BSD"],)"
    R"( "repo_name": "a/b", "sha": "12ab", "triton_code": "x"})";

void ExpectRow(const KernelBookRow& row) {
  EXPECT_EQ(row.python_code, "code");
  EXPECT_EQ(row.entry_point, "Net");
  EXPECT_EQ(row.uuid, "7");
  EXPECT_EQ(row.licenses, "MIT, BSD");
  EXPECT_EQ(row.repo_name, "a/b");
  EXPECT_EQ(row.sha, "12ab");
}

TEST_F(RowsTest, ReadsLinesAndArrays) {
  for (const std::string& text :
       {absl::StrCat(kRow, "\n\n", kRow, "\n"), absl::StrCat("[", kRow, ",\n", kRow, "]")}) {
    const auto rows = ReadKernelBook(Write("rows.json", text), 0);
    ASSERT_TRUE(rows.ok()) << rows.status();
    ASSERT_EQ(rows->rows.size(), 2);
    ExpectRow(rows->rows[1]);
    EXPECT_EQ(rows->rows[1].number, 2);
    EXPECT_EQ(ReadKernelBook(Path("rows.json"), 1)->rows.size(), 1);
  }
}

TEST_F(RowsTest, ReadsTheSameFromParquetAsFromJson) {
  const auto generator = Runfile("tools/kernelbook/testing/make_kernelbook.py");
  ASSERT_TRUE(generator.ok()) << generator.status();
  for (const char* name : {"rows.parquet", "rows.jsonl", "rows.json"}) {
    Python({*generator, absl::StrCat("--out=", Path(name))});
  }
  const auto parquet = ReadKernelBook(Path("rows.parquet"), 0);
  ASSERT_TRUE(parquet.ok()) << parquet.status();
  EXPECT_GT(parquet->rows.size(), 200);
  EXPECT_EQ(parquet->bad.size(), 3);
  for (const char* name : {"rows.jsonl", "rows.json"}) {
    const auto json = ReadKernelBook(Path(name), 0);
    ASSERT_TRUE(json.ok()) << json.status();
    EXPECT_EQ(json->bad.size(), parquet->bad.size());
    ASSERT_EQ(json->rows.size(), parquet->rows.size());
    for (size_t i = 0; i < json->rows.size(); ++i) {
      EXPECT_EQ(json->rows[i].number, parquet->rows[i].number);
      EXPECT_EQ(json->rows[i].python_code, parquet->rows[i].python_code);
      EXPECT_EQ(json->rows[i].uuid, parquet->rows[i].uuid);
      EXPECT_EQ(json->rows[i].licenses, parquet->rows[i].licenses);
    }
  }
  EXPECT_EQ(ReadKernelBook(Path("rows.parquet"), 5)->rows.size(), 5);
}

TEST_F(RowsTest, NamesBrokenRows) {
  const auto rows = ReadKernelBook(
      Write(
          "rows.jsonl",
          absl::StrCat(kRow, "\n{\"python_code\": \n[]\n",
                       R"({"python_code": 3, "entry_point": "A"})", "\n", R"({"entry_point": "A"})",
                       "\n", R"({"python_code": "x", "entry_point": "a b"})", "\n", "{\"cut")),
      0);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->rows.size(), 1);
  ASSERT_EQ(rows->bad.size(), 6);
  const char* const sentences[] = {
      ":2 is no valid JSON",
      ":3 is no JSON object",
      ":4 has a python_code that is no text or empty",
      ":5 has no python_code",
      ":6 has an entry_point that is no name of a class",
      ":7 is no valid JSON: the file ends within it",
  };
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(rows->bad[i].message, absl::StrCat(Path("rows.jsonl"), sentences[i]));
    EXPECT_EQ(rows->bad[i].row.number, static_cast<int64_t>(i) + 2);
  }
}

TEST_F(RowsTest, RefusesFilesWithOneSentence) {
  EXPECT_THAT(Refusal("a.parquet", "name,code\n"), HasSubstr("is no Parquet file"));
  EXPECT_THAT(Refusal("b.parquet", "PAR1 and then nothing of it"),
              HasSubstr("no sound Parquet file"));
  EXPECT_THAT(Refusal("c.parquet", "version https://git-lfs.github.com/spec/v1\noid x\n"),
              HasSubstr("git lfs pull"));
  EXPECT_THAT(Refusal("d.csv", "uuid,code\n"), HasSubstr("neither Parquet"));
  EXPECT_THAT(Refusal("e.json", ""), HasSubstr("is empty"));
  EXPECT_THAT(Refusal("f.json", "[]"), HasSubstr("holds no row"));
  EXPECT_THAT(Refusal("g.json", absl::StrCat("[", kRow, ", {\"python")),
              HasSubstr("(example 2): the file ends within the JSON array"));
  EXPECT_THAT(Refusal("h.jsonl", R"({"code": "x", "entry_point": "A"})"),
              HasSubstr("has no column python_code; its columns are code, entry_point"));
  EXPECT_THAT(Message(ReadKernelBook(Path("missing.json"), 0).status()),
              HasSubstr("missing.json does not exist"));
  EXPECT_THAT(Message(ReadKernelBook(folder_, 0).status()), HasSubstr("is a folder"));
}

TEST_F(RowsTest, RefusesParquetWithoutANeededColumn) {
  const std::string program = Write(
      "write.py",
      "import sys, pyarrow\nfrom pyarrow import parquet\n"
      "parquet.write_table(pyarrow.table({'python_code': ['x'], 'name': ['A']}), sys.argv[1])\n");
  Python({program, Path("rows.parquet")});
  EXPECT_THAT(Message(ReadKernelBook(Path("rows.parquet"), 0).status()),
              HasSubstr("has no column entry_point; its columns are python_code, name"));
}

}  // namespace
}  // namespace tritonrl
