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
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

int Count(const std::string& text, const std::string& piece) {
  return static_cast<int>(std::vector<std::string>(absl::StrSplit(text, piece)).size()) - 1;
}

// The text between two marks, from the first on.
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

  static Json Verdict(const Json& id, const std::string& outcome, const std::string& layer,
                      const std::string& text, int line) {
    Json json = {{"id", id},           {"task", "t"},           {"speedup", nullptr},
                 {"outcome", outcome}, {"failed_layer", layer}, {"reason", text}};
    json["layers"]["functionality"] = {
        {"outcome", outcome},
        {"evidence", {{{"rule", "torch_compute"}, {"text", text}, {"line", line}}}}};
    return json;
  }

  std::string Batch(const std::vector<std::pair<Json, std::string>>& verdicts_and_codes,
                    const std::string& more_input = "") {
    std::string in, out;
    for (const auto& [verdict, code] : verdicts_and_codes) {
      const Json c = {
          {"id", verdict["id"]}, {"reference_source", "r = 1"}, {"candidate_source", code}};
      absl::StrAppend(&in, c.dump(), "\n");
      absl::StrAppend(&out, verdict.dump(), "\n");
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
      Batch({{Verdict("one", "torch_compute", "functionality", "'*' computes", 2), "a = 1\nb = 2"},
             {Verdict(17, "correct", "none", "agrees", 0), "c = 3"}},
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
  Json verdict = Verdict(attack, attack, attack, attack, 1);
  verdict["backend"] = attack;
  verdict["task"] = attack;
  verdict["worker"] = {{"device", attack}, {"wall_seconds", attack}};
  verdict["layers"]["functionality"]["evidence"][0]["name"] = attack;
  verdict["layers"]["functionality"]["evidence"][0]["kernel"] = attack;
  verdict["layers"]["functionality"]["evidence"][0]["value"] = attack;
  verdict["layers"][attack] = verdict["layers"]["functionality"];
  const std::string page = Batch({{verdict, attack}});
  EXPECT_EQ(Count(page, "<script"), 1) << "only the page's own";
  for (const char* piece : {"<img", "<svg", "<!--", "<![CDATA", "onerror=alert(2)>", "\xE2\x80\xAE",
                            "\x01", "&lt;script&gt; "}) {
    EXPECT_FALSE(absl::StrContains(page, piece)) << piece;
  }
  EXPECT_TRUE(absl::StrContains(page, "&lt;script&gt;alert(1)&lt;/script&gt;"));
  EXPECT_TRUE(absl::StrContains(page, "&amp;lt;script&amp;gt; \\u202e reversed \\u0001"));
  // In quoted attributes there is no way out either.
  EXPECT_FALSE(absl::StrContains(Between(page, "data-key=\"", "\">"), "<"));
  EXPECT_EQ(Count(page, "</details>"), Count(page, "<details>"));
  EXPECT_EQ(Count(page, "<pre>"), 2);
  EXPECT_EQ(Count(page, "</pre>"), 2);
}

TEST_F(HtmlPageTest, ThePolicyAllowsOnlyThePagesOwnScript) {
  const std::string page = Batch({{Verdict("a", "correct", "none", "agrees", 0), "x"}});
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
  std::vector<std::pair<Json, std::string>> cases;
  for (int i = 0; i < 2000; ++i) {
    cases.emplace_back(
        Verdict(i, i % 3 == 0 ? "correct" : "mismatch", i % 3 == 0 ? "none" : "correct", "text", 3),
        std::string(100, 'x') + "\n\n" + std::string(2000, 'y'));
  }
  const std::string page = Batch(cases);
  EXPECT_EQ(Count(page, "<tr data-key="), 2000);
  EXPECT_TRUE(absl::StrContains(page, "<td>mismatch</td><td>1333</td>"));
  EXPECT_LT(page.size(), 8 << 20);
  // A table has its limit, totals have none.
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
  ASSERT_TRUE(
      WritePairPage(Verdict("b.py", "correct", "none", "agrees", 0).dump(), "r", "c", path).ok());
  auto page = ReadFile(path);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(Count(*page, "<tr data-key="), 1);
  EXPECT_FALSE(WritePairPage("[]", "r", "c", path).ok());
  EXPECT_FALSE(WritePairPage("{}", "r", "c", folder_ + "/no/folder.html").ok());
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
