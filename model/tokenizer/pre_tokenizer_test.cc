#include "model/tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/regex.h"

namespace tritonrl {
namespace {

TEST(ByteLevel, AlphabetIsOneToOne) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  const std::string written = EncodeBytes(all);
  EXPECT_TRUE(IsValidUtf8(written));
  EXPECT_EQ(DecodeBytes(written), all);
  EXPECT_EQ(EncodeBytes(" a\n"),
            "\xC4\xA0"
            "a\xC4\x8A");                       // "ĠaĊ"
  EXPECT_EQ(DecodeBytes("a b"), std::nullopt);  // A space is not in the alphabet.
}

std::vector<std::string> Matches(const std::string& pattern, const std::string& text) {
  absl::StatusOr<Regex> regex = Regex::Compile(pattern);
  EXPECT_TRUE(regex.ok()) << regex.status();
  std::vector<std::string> matches;
  regex->ForEachMatch(
      text, [&](size_t begin, size_t end) { matches.push_back(text.substr(begin, end - begin)); });
  return matches;
}

TEST(Regex, KnowsUnicodeClasses) {
  EXPECT_EQ(Matches("\\p{L}+", "d\xC3\xA9j\xC3\xA0 12 \xE6\x97\xA5\xE6\x9C\xAC"),
            (std::vector<std::string>{"d\xC3\xA9j\xC3\xA0", "\xE6\x97\xA5\xE6\x9C\xAC"}));
  // U+3000 is white space, U+180E is not.
  EXPECT_EQ(Matches("\\s", "\xE3\x80\x80\xE1\xA0\x8E\t").size(), 2u);
  EXPECT_EQ(Matches("[^\\s]", "\xE3\x80\x80\xE1\xA0\x8E\t").size(), 1u);
  EXPECT_EQ(Matches("\\S", "\xE3\x80\x80\xE1\xA0\x8E\t").size(), 1u);
}

TEST(Regex, LongRunsNeitherFailNorTakeQuadraticTime) {
  const std::string spaces(1 << 20, ' ');
  const std::vector<std::string> matches = Matches("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", spaces + "x");
  ASSERT_EQ(matches.size(), 2u);
  EXPECT_EQ(matches[0].size(), spaces.size() - 1);
}

TEST(Regex, EmptyMatchesAreLeftOut) {
  EXPECT_EQ(Matches("a*", "baac"), (std::vector<std::string>{"aa"}));
}

TEST(Regex, QuotedTextMatchesItself) {
  const std::string text = "a.b*(c)[d]{2}|^$\\+?-#";
  EXPECT_EQ(Matches(QuoteRegex(text), "x" + text + "y"), (std::vector<std::string>{text}));
}

TEST(Regex, AMatchThatFailsIsNotTakenForNoMatch) {
  EXPECT_EQ(Matches("(a+)+c", "aaaaaaaac").size(), 1u);
  EXPECT_THROW(Matches("(*LIMIT_MATCH=1)(a+)+c", "aaaaaaaac"), std::runtime_error);
}

TEST(Regex, MalformedPatternIsAnError) {
  const absl::Status status = Regex::Compile("(a").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("(a"), absl::string_view::npos) << status;
}

TEST(Normalizer, ComposesAndDecomposes) {
  const std::string composed = "\xC3\xA9";     // U+00E9
  const std::string decomposed = "e\xCC\x81";  // U+0065 U+0301
  absl::StatusOr<Normalizer> nfc = Normalizer::FromJson({{"type", "NFC"}});
  absl::StatusOr<Normalizer> nfd = Normalizer::FromJson({{"type", "NFD"}});
  absl::StatusOr<Normalizer> none = Normalizer::FromJson(nullptr);
  ASSERT_TRUE(nfc.ok() && nfd.ok() && none.ok());
  EXPECT_EQ(nfc->Normalize("x" + decomposed), "x" + composed);
  EXPECT_EQ(nfd->Normalize("x" + composed), "x" + decomposed);
  EXPECT_EQ(none->Normalize(decomposed), decomposed);
  // U+FDFA grows to 18 characters under NFKC: more than the buffer's first size holds.
  absl::StatusOr<Normalizer> nfkc = Normalizer::FromJson(
      {{"type", "Sequence"}, {"normalizers", nlohmann::json::array({{{"type", "NFKC"}}})}});
  ASSERT_TRUE(nfkc.ok()) << nfkc.status();
  std::string ligatures;
  for (int i = 0; i < 100; ++i) ligatures += "\xEF\xB7\xBA";
  EXPECT_EQ(nfkc->Normalize(ligatures).size(), 100 * nfkc->Normalize("\xEF\xB7\xBA").size());
  EXPECT_GT(nfkc->Normalize(ligatures).size(), 2 * ligatures.size());
}

TEST(Normalizer, NamesAnUnknownType) {
  const absl::Status status = Normalizer::FromJson({{"type", "BertNormalizer"}}).status();
  EXPECT_NE(status.message().find("BertNormalizer"), absl::string_view::npos) << status;
}

std::string Normalized(const std::string& json, const std::string& text) {
  absl::StatusOr<Normalizer> normalizer = Normalizer::FromJson(nlohmann::json::parse(json));
  EXPECT_TRUE(normalizer.ok()) << normalizer.status();
  return normalizer->Normalize(text);
}

TEST(Normalizer, ChangesText) {
  EXPECT_EQ(Normalized(R"({"type": "Lowercase"})", "A\xC3\x89 \xC4\xB0"),
            "a\xC3\xA9 i\xCC\x87");  // U+0130 becomes two characters
  EXPECT_EQ(Normalized(R"({"type": "Prepend", "prepend": "_"})", "a"), "_a");
  EXPECT_EQ(Normalized(R"({"type": "Prepend", "prepend": "_"})", ""), "");
  EXPECT_EQ(Normalized(R"({"type": "Replace", "pattern": {"String": "."}, "content": "-"})", "a.b"),
            "a-b");
  EXPECT_EQ(
      Normalized(R"({"type": "Replace", "pattern": {"Regex": " +"}, "content": " "})", "a   b"),
      "a b");
  const std::string spaces = "\xE3\x80\x80 a b\n";
  EXPECT_EQ(Normalized(R"({"type": "Strip", "strip_left": true, "strip_right": true})", spaces),
            "a b");
  EXPECT_EQ(Normalized(R"({"type": "Strip", "strip_left": false, "strip_right": true})", spaces),
            "\xE3\x80\x80 a b");
  EXPECT_EQ(Normalized(R"({"type": "Strip", "strip_left": true, "strip_right": false})", " \n"),
            "");
}

std::vector<std::string> PiecesOf(const std::string& json, const std::string& text,
                                  bool at_start = true) {
  absl::StatusOr<PreTokenizer> split = PreTokenizer::FromJson(nlohmann::json::parse(json));
  EXPECT_TRUE(split.ok()) << split.status();
  const Pieces pieces = split->Split(text, at_start);
  return {pieces.views.begin(), pieces.views.end()};
}

TEST(PreTokenizer, SplitsInEveryBehavior) {
  const auto split = [](const std::string& behavior, const char* invert) {
    return PiecesOf(R"({"type": "Split", "pattern": {"String": "-"}, "behavior": ")" + behavior +
                        R"(", "invert": )" + invert + "}",
                    "-a--b-");
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(split("Isolated", "false"), (List{"-", "a", "-", "-", "b", "-"}));
  EXPECT_EQ(split("Removed", "false"), (List{"a", "b"}));
  EXPECT_EQ(split("Removed", "true"), (List{"-", "-", "-", "-"}));
  EXPECT_EQ(split("MergedWithPrevious", "false"), (List{"-", "a-", "-", "b-"}));
  EXPECT_EQ(split("MergedWithNext", "false"), (List{"-a", "-", "-b", "-"}));
  EXPECT_EQ(split("Contiguous", "false"), (List{"-", "a", "--", "b", "-"}));
}

TEST(PreTokenizer, MetaspaceMarksSpacesAndStarts) {
  const auto split = [](const char* scheme, bool at_start) {
    return PiecesOf(
        std::string(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": ")") + scheme +
            "\"}",
        "a b  c", at_start);
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(split("always", false), (List{"_a", "_b", "_", "_c"}));
  EXPECT_EQ(split("first", true), (List{"_a", "_b", "_", "_c"}));
  EXPECT_EQ(split("first", false), (List{"a", "_b", "_", "_c"}));
  EXPECT_EQ(split("never", true), (List{"a", "_b", "_", "_c"}));
  EXPECT_EQ(PiecesOf(R"({"type": "Metaspace", "replacement": "_", "split": false})", "a b"),
            (List{"_a_b"}));
}

// In Oniguruma's syntax the anchors match at every line.
TEST(Regex, AnchorsMatchAtLines) {
  EXPECT_EQ(Matches("a$", "a\nba").size(), 2u);
  EXPECT_EQ(Matches("^b", "a\nba").size(), 1u);
}

}  // namespace
}  // namespace tritonrl
