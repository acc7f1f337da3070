#include "base/records/record_reader.h"

#include <zlib.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/records/lenient_json.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

class RecordReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto dir = MakeTempDirectory("record_reader");
    ASSERT_TRUE(dir.ok());
    dir_ = *dir;
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  std::string Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomic(dir_ + "/" + name, text).ok());
    return dir_ + "/" + name;
  }

  static std::string Gzip(const std::string& text) {
    z_stream stream = {};
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(deflateBound(&stream, text.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
  }

  // Writes a Parquet file by pyarrow from the Python expression of a dict of columns; "" without
  // pyarrow.
  std::string WriteParquet(const std::string& name, const std::string& columns) {
    const std::string path = dir_ + "/" + name;
    const auto python = FindPythonEnv();
    EXPECT_TRUE(python.ok()) << python.status();
    RunCommandOptions options;
    options.env = python->Environment();
    const auto result = RunCommand(
        {python->interpreter, "-c",
         absl::StrCat("import sys\ntry:\n  import pyarrow, pyarrow.parquet\nexcept ImportError:\n"
                      "  sys.exit(7)\n",
                      "pyarrow.parquet.write_table(pyarrow.table(", columns, "), sys.argv[1])"),
         path},
        options);
    EXPECT_TRUE(result.ok()) << result.status();
    if (result->exit_code == 7) return "";
    EXPECT_EQ(result->exit_code, 0) << result->err;
    return path;
  }

  // "place text" of each record; an error ends the list as "! message".
  static std::vector<std::string> ReadAll(const std::string& path,
                                          const std::vector<std::string>& columns = {}) {
    std::vector<std::string> all;
    const auto reader = RecordReader::Open(path, columns);
    if (!reader.ok()) return {absl::StrCat("! ", reader.status().message())};
    while (true) {
      const auto record = (*reader)->Next();
      if (!record.ok()) {
        all.push_back(absl::StrCat("! ", record.status().message()));
        return all;
      }
      if (!record->has_value()) return all;
      const std::string where = (*reader)->Where(**record);
      EXPECT_TRUE(absl::StartsWith(where, path));
      all.push_back(absl::StrCat(where.substr(path.size()), " ", (*record)->text));
    }
  }
  static std::string Kind(const std::string& path) {
    const auto reader = RecordReader::Open(path);
    return reader.ok() ? (*reader)->Describe() : std::string(reader.status().message());
  }

  std::string dir_;
};

using Records = std::vector<std::string>;

TEST_F(RecordReaderTest, JsonLinesMayHaveAByteOrderMarkBlankLinesAndWindowsLineEnds) {
  const std::string path =
      Write("a.jsonl", "\xEF\xBB\xBF\r\n{\"a\": 1}\r\n\n  \n {\"b\":2} \n{\"c\":3}");
  EXPECT_EQ(ReadAll(path), (Records{":2 {\"a\": 1}", ":5 {\"b\":2}", ":6 {\"c\":3}"}));
  EXPECT_EQ(Kind(path), "JSON Lines");
  EXPECT_TRUE(ReadAll(Write("empty.jsonl", "\n \r\n")).empty());
  EXPECT_TRUE(ReadAll(Write("none.jsonl", "")).empty());
}

TEST_F(RecordReaderTest, ReadsAnArrayInAnyLayout) {
  const std::string pretty =
      Write("a.json",
            "\n[\n  {\n    \"a\": \"], \\\" }\",\n    \"b\": [1, {}]\n  },\n\n  {\"c\": 3}\n]\n");
  EXPECT_EQ(ReadAll(pretty),
            (Records{":3 (example 1) {\n    \"a\": \"], \\\" }\",\n    \"b\": [1, {}]\n  }",
                     ":8 (example 2) {\"c\": 3}"}));
  EXPECT_EQ(Kind(pretty), "JSON array");
  EXPECT_EQ(ReadAll(Write("line.json", "[{\"a\":1},{\"b\":2}]")),
            (Records{":1 (example 1) {\"a\":1}", ":1 (example 2) {\"b\":2}"}));
  EXPECT_TRUE(ReadAll(Write("empty.json", "[ ]\n")).empty());
}

TEST_F(RecordReaderTest, RecordsMayBeLongerThanABlock) {
  const std::string long_record = "{\"a\": \"" + std::string(700'000, 'x') + "\"}";
  const Records lines = {":1 " + long_record, ":2 {}", ":3 " + long_record};
  EXPECT_EQ(ReadAll(Write("a.jsonl", absl::StrCat(long_record, "\n{}\n", long_record))), lines);
  const Records elements = {":1 (example 1) " + long_record, ":1 (example 2) " + long_record};
  EXPECT_EQ(ReadAll(Write("a.json", absl::StrCat("[", long_record, ",", long_record, "]"))),
            elements);
  const std::string zipped =
      Write("a.jsonl.gz", Gzip(absl::StrCat(long_record, "\n{}\n", long_record)));
  EXPECT_EQ(ReadAll(zipped), lines);
}

TEST_F(RecordReaderTest, ReadsGzipOfSeveralMembersWithPadding) {
  const std::string path =
      Write("a.gz", Gzip("{\"a\":1}\n") + Gzip("{\"b\":2}\n") + std::string(100, '\0'));
  EXPECT_EQ(ReadAll(path), (Records{":1 {\"a\":1}", ":2 {\"b\":2}"}));
  EXPECT_EQ(Kind(path), "JSON Lines, gzip");
  EXPECT_EQ(Kind(Write("b.gz", Gzip("[{}]"))), "JSON array, gzip");
}

TEST_F(RecordReaderTest, DamagedFilesAreNamed) {
  const auto expect = [&](const std::string& name, const std::string& text,
                          const std::string& part) {
    const std::string path = Write(name, text);
    const Records records = ReadAll(path);
    ASSERT_FALSE(records.empty()) << name;
    EXPECT_TRUE(absl::StartsWith(records.back(), "! ")) << records.back();
    EXPECT_TRUE(absl::StrContains(records.back(), part)) << records.back();
    EXPECT_TRUE(absl::StrContains(records.back(), path)) << records.back();
  };
  expect("cut.json", "[{\"a\": 1}, {\"b\"", ":1 (example 2): the file ends within the JSON array");
  expect("more.json", "[{\"a\": 1}]\n{\"b\": 2}\n",
         ":2: there is text behind the end of the JSON array");
  const std::string zipped = Gzip(std::string(10'000, 'x'));
  expect("cut.gz", zipped.substr(0, zipped.size() / 2), "the gzip data ends too early");
  std::string broken = zipped;
  broken[12] = static_cast<char>(broken[12] ^ 0x55);
  broken[14] = static_cast<char>(broken[14] ^ 0x55);
  expect("broken.gz", broken, "the gzip data is damaged");
  expect("a.zst", "\x28\xB5\x2F\xFDxxxx", "is a zstd file; decompress it");
  expect("utf16.jsonl", std::string("\xFF\xFE{\0", 4), "is written in UTF-16");
  expect("text.parquet", "{\"prompt\": 1}\n", "is no Parquet file: it does not begin with PAR1");
  EXPECT_EQ(ReadAll(dir_ + "/missing.jsonl"),
            (Records{"! cannot open " + dir_ + "/missing.jsonl: No such file or directory"}));
  EXPECT_EQ(ReadAll(dir_), (Records{"! cannot read " + dir_ + ": not a plain file"}));
}

TEST_F(RecordReaderTest, ReadsParquet) {
  const std::string path = WriteParquet("a.parquet",
                                        "{'messages': [[{'role': 'user', 'content': 'q\\u00e9'}, "
                                        "{'role': 'assistant', 'content': 'a'}],"
                                        " None], 'score': [1.5, float('nan')]}");
  if (path.empty()) GTEST_SKIP() << "the Python environment has no pyarrow";
  EXPECT_EQ(
      ReadAll(path, {"prompt", "messages"}),
      (Records{
          " (row 1) {\"messages\": [{\"role\": \"user\", \"content\": \"q\\u00e9\"}, {\"role\": "
          "\"assistant\", \"content\": \"a\"}]}",
          " (row 2) {\"messages\": null}"}));
  EXPECT_EQ(Kind(path), "Parquet");
  EXPECT_EQ((*RecordReader::Open(path, {"messages"}))->columns(), (Records{"messages", "score"}));
  const std::string other = WriteParquet("b.parquet", "{'question': ['q']}");
  EXPECT_EQ(ReadAll(other, {"prompt"}), (Records{" (row 1) {\"question\": null}"}));
  EXPECT_EQ(ReadAll(other), (Records{" (row 1) {\"question\": \"q\"}"}));
}

TEST_F(RecordReaderTest, ADamagedParquetFileIsNamed) {
  const std::string path = Write("a.parquet", "PAR1 and nothing else PAR1");
  const Records records = ReadAll(path);
  ASSERT_EQ(records.size(), 1);
  EXPECT_TRUE(absl::StartsWith(records[0], "! cannot read " + path + ": ")) << records[0];
  const std::string pointer =
      Write("b.parquet", "version https://git-lfs.github.com/spec/v1\noid x\n");
  EXPECT_TRUE(absl::StrContains(ReadAll(pointer).at(0), "git lfs pull")) << ReadAll(pointer).at(0);
}

TEST(LenientJsonTest, NumbersThatNoDoubleHoldsAreRefused) {
  EXPECT_TRUE(ParseLenientJson(R"({"x": NaN})").ok());
  EXPECT_EQ(ParseLenientJson("[1e400]").status().message(),
            "this is no JSON, because a number is too large");
}

}  // namespace
}  // namespace tritonrl
