#include "model/tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/normalizer.h"

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
  const absl::Status status = Normalizer::FromJson({{"type", "Lowercase"}}).status();
  EXPECT_NE(status.message().find("Lowercase"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace tritonrl
