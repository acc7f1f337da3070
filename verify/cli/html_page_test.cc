#include "verify/cli/html_page.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "exec/device_backend.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "verify/cli/batch.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

int Count(const std::string& text, const std::string& piece) {
  return static_cast<int>(std::vector<std::string>(absl::StrSplit(text, piece)).size()) - 1;
}

// The text between the first `from` and the next `to`.
std::string Between(const std::string& text, const std::string& from, const std::string& to) {
  const size_t begin = text.find(from);
  if (begin == std::string::npos) return "";
  const size_t start = begin + from.size();
  return text.substr(start, text.find(to, start) - start);
}

class HtmlPageTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("page");
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *folder;
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }

  // A line whose verdict has one evidence; LAYER_NONE makes a correct verdict.
  static BatchLine Line(const Json& id, Layer layer, Outcome::Reason reason,
                        const std::string& text, int line) {
    BatchLine batch_line;
    batch_line.id_json = id.dump();
    batch_line.verdict.set_key("key");
    LayerResult* result =
        MutableResult(layer == LAYER_NONE ? LAYER_CORRECT : layer, &batch_line.verdict);
    result->set_reason(reason);
    AddEvidence(result, "rule", text)->set_line(line);
    batch_line.verdict.set_failed_layer(layer);
    SetOutcome(reason, text, batch_line.verdict.mutable_outcome());
    return batch_line;
  }

  std::string Batch(const std::vector<std::pair<BatchLine, std::string>>& lines_and_codes,
                    const std::string& more_input = "") {
    std::string in, out;
    for (const auto& [line, code] : lines_and_codes) {
      const Json c = {{"id", Json::parse(line.id_json)},
                      {"reference_source", "r = 1"},
                      {"candidate_source", code}};
      absl::StrAppend(&in, c.dump(), "\n");
      absl::StrAppend(&out, BatchLineToJson(line), "\n");
    }
    EXPECT_TRUE(WriteFileAtomic(folder_ + "/in.jsonl", in + more_input).ok());
    EXPECT_TRUE(WriteFileAtomic(folder_ + "/out.jsonl", out).ok());
    const absl::Status status =
        WriteBatchPage(folder_ + "/in.jsonl", folder_ + "/out.jsonl", folder_ + "/page.html");
    EXPECT_TRUE(status.ok()) << status;
    auto page = ReadFile(folder_ + "/page.html");
    return page.ok() ? *page : "";
  }

  std::string folder_;
};

TEST_F(HtmlPageTest, EachCaseWithTotalsAndMarkedLines) {
  const std::string page =
      Batch({{Line("one", LAYER_FUNCTIONALITY, Outcome::TORCH_COMPUTE, "'*' computes", 2),
              "a = 1\nb = 2"},
             {Line(17, LAYER_NONE, Outcome::OK, "agrees", 0), "c = 3"}},
            "not json\n");
  EXPECT_TRUE(absl::StrContains(page, "2 cases: <span class=ok>1 correct</span>")) << page;
  EXPECT_TRUE(absl::StrContains(page, "1 not checked"));
  EXPECT_TRUE(
      absl::StrContains(page, "<tr><td>functionality</td><td>torch_compute</td><td>1</td></tr>"));
  EXPECT_TRUE(absl::StrContains(page, "   1  a = 1\n<mark>   2  b = 2</mark>"));
  EXPECT_TRUE(absl::StrContains(page, "<li>line 2: &#39;*&#39; computes"));
  EXPECT_TRUE(absl::StrContains(page, "<td>17</td>"));
  EXPECT_EQ(Count(page, "<tr data-key="), 2);
  EXPECT_EQ(Count(page, "<details>"), 2);
  EXPECT_EQ(Count(page, "<details open"), 0);
}

TEST_F(HtmlPageTest, TextOfStrangersStaysText) {
  const std::string attack =
      "</pre></details><script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=x>"
      "<!--\r\n<![CDATA[]]>&lt;script&gt; \xE2\x80\xAE reversed \x01";
  BatchLine line = Line(attack, LAYER_FUNCTIONALITY, Outcome::TORCH_COMPUTE, attack, 1);
  line.verdict.set_backend(attack);
  line.verdict.set_task_id(attack);
  line.verdict.mutable_worker()->set_device(attack);
  line.verdict.mutable_worker()->set_server(attack);
  line.verdict.mutable_worker()->set_gpu(attack);
  Evidence* evidence = line.verdict.mutable_layers(0)->mutable_evidence(0);
  evidence->set_rule(attack);
  evidence->set_name(attack);
  evidence->set_kernel(attack);
  const std::string page = Batch({{line, attack}});
  EXPECT_EQ(Count(page, "<script"), 1) << "only the page's own";
  for (const char* piece : {"<img", "<svg", "<!--", "<![CDATA", "onerror=alert(2)>", "\xE2\x80\xAE",
                            "\x01", "&lt;script&gt; "}) {
    EXPECT_FALSE(absl::StrContains(page, piece)) << piece;
  }
  EXPECT_TRUE(absl::StrContains(page, "&lt;script&gt;alert(1)&lt;/script&gt;"));
  EXPECT_TRUE(absl::StrContains(page, "&amp;lt;script&amp;gt; \\u202e reversed \\u0001"));
  // The attack does not escape from quoted attributes either.
  EXPECT_FALSE(absl::StrContains(Between(page, "data-key=\"", "\">"), "<"));
  EXPECT_EQ(Count(page, "</details>"), Count(page, "<details>"));
  EXPECT_EQ(Count(page, "<pre>"), 2);
  EXPECT_EQ(Count(page, "</pre>"), 2);
}

TEST_F(HtmlPageTest, ThePolicyAllowsOnlyThePagesOwnScript) {
  const std::string page = Batch({{Line("a", LAYER_NONE, Outcome::OK, "agrees", 0), "x"}});
  const std::string script = Between(page, "<script>", "</script>");
  ASSERT_FALSE(script.empty());
  const std::string hash = absl::Base64Escape(absl::HexStringToBytes(Sha256Hex(script)));
  EXPECT_TRUE(absl::StrContains(page, absl::StrCat("script-src 'sha256-", hash, "'")));
  EXPECT_TRUE(absl::StrContains(page, "default-src 'none'"));
  EXPECT_FALSE(absl::StrContains(page, "unsafe-inline"));
  EXPECT_FALSE(absl::StrContains(page, "innerHTML"));
  EXPECT_EQ(Count(page, "http"), Count(page, "http-equiv")) << "loads nothing";
}

TEST_F(HtmlPageTest, TwoThousandCases) {
  std::vector<std::pair<BatchLine, std::string>> cases;
  for (int i = 0; i < 2000; ++i) {
    cases.emplace_back(i % 3 == 0 ? Line(i, LAYER_NONE, Outcome::OK, "text", 3)
                                  : Line(i, LAYER_CORRECT, Outcome::MISMATCH, "text", 3),
                       std::string(100, 'x') + "\n\n" + std::string(2000, 'y'));
  }
  const std::string page = Batch(cases);
  EXPECT_EQ(Count(page, "<tr data-key="), 2000);
  EXPECT_TRUE(absl::StrContains(page, "<td>mismatch</td><td>1333</td>"));
  EXPECT_LT(page.size(), 8 << 20);
  // max_cases limits the table, but not the totals.
  const std::string path = folder_ + "/short.html";
  ASSERT_TRUE(
      WriteBatchPage(folder_ + "/in.jsonl", folder_ + "/out.jsonl", path, /*max_cases=*/10).ok());
  auto limited = ReadFile(path);
  ASSERT_TRUE(limited.ok());
  EXPECT_EQ(Count(*limited, "<tr data-key="), 10);
  EXPECT_TRUE(absl::StrContains(*limited, "<td>mismatch</td><td>1333</td>"));
  EXPECT_TRUE(absl::StrContains(*limited, "the first 10 of them"));
}

TEST_F(HtmlPageTest, OnePair) {
  const std::string path = folder_ + "/pair.html";
  const Verdict verdict = Line("b.py", LAYER_NONE, Outcome::OK, "agrees", 0).verdict;
  ASSERT_TRUE(WritePairPage(verdict, "r", "c", path).ok());
  auto page = ReadFile(path);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(Count(*page, "<tr data-key="), 1);
  EXPECT_TRUE(absl::StrContains(*page, "Verdict on key"));
  EXPECT_FALSE(WritePairPage(verdict, "r", "c", folder_ + "/no/folder.html").ok());
}

TEST(EscapeHtmlTest, MalformedTextBecomesWellFormed) {
  EXPECT_EQ(EscapeHtml("a<\xFF>"), "a&lt;\xEF\xBF\xBD&gt;");
  for (int i = 0; i < 256; ++i) {
    const std::string text = {static_cast<char>(i), '<', static_cast<char>(255 - i)};
    EXPECT_TRUE(IsValidUtf8(EscapeHtml(text))) << i;
    EXPECT_FALSE(absl::StrContains(EscapeHtml(text), "<")) << i;
  }
}

}  // namespace
}  // namespace tritonrl
