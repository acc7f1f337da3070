#include "model/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"

namespace tritonrl {
namespace {

using Ids = std::vector<int32_t>;

// A tokenizer whose small tables make the expected ids easy to derive: a=0 b=1 c=2 "Ġ"=3 "Ċ"=4, the
// bytes of U+00E9 5 and 6, then merges ab, abc, "Ġa", and added tokens.
std::string SmallJson(const std::string& merges, const std::string& added) {
  return R"({"added_tokens": [)" + added + R"(], "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": " ?\\p{L}+|\\s+"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}]},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "Ġ": 3, "Ċ": 4, "Ã": 5, "©": 6,
      "ab": 7, "abc": 8, "Ġa": 9}, "merges": [)" +
         merges + "]}}";
}

constexpr char kMerges[] = R"("a b", "ab c", "Ġ a")";
constexpr char kPairMerges[] = R"(["a", "b"], ["ab", "c"], ["Ġ", "a"])";
constexpr char kAdded[] =
    R"({"id": 10, "content": "<s>", "special": true},
       {"id": 12, "content": "<think>", "special": false, "normalized": false})";

Tokenizer Small(const std::string& merges = kMerges, const std::string& added = kAdded) {
  absl::StatusOr<Tokenizer> tokenizer = Tokenizer::FromJson(SmallJson(merges, added), "small");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *tokenizer;
}

TEST(Tokenizer, AppliesMergesByRank) {
  for (const char* merges : {kMerges, kPairMerges}) {
    const Tokenizer tokenizer = Small(merges);
    EXPECT_EQ(tokenizer.Encode("abc"), (Ids{8}));
    EXPECT_EQ(tokenizer.Encode("ababc"), (Ids{7, 8}));
    // "a b" has a lower rank than "Ġ a", so the space stays alone.
    EXPECT_EQ(tokenizer.Encode(" ab ac"), (Ids{3, 7, 9, 2}));
    EXPECT_EQ(tokenizer.Encode(""), Ids{});
  }
}

TEST(Tokenizer, MergesDoNotCrossPieces) {
  // The split makes white space a piece of its own, unless it is one space before letters.
  EXPECT_EQ(Small().Encode("a\na"), (Ids{0, 4, 0}));
  EXPECT_EQ(Small().Encode("  a"), (Ids{3, 3, 0})) << "the merge \"Ġ a\" would cross pieces";
}

TEST(Tokenizer, NormalizesFirst) {
  // NFC makes U+0065 U+0301 into U+00E9, whose two bytes have ids.
  EXPECT_EQ(Small().Encode("e\xCC\x81"), (Ids{5, 6}));
}

TEST(Tokenizer, DropsBytesWithoutToken) {
  // Byte "z" has no id, and the model has no unknown token.
  EXPECT_EQ(Small().Encode("azb"), (Ids{7}));
}

TEST(Tokenizer, FindsAddedTokens) {
  const Tokenizer tokenizer = Small();
  EXPECT_EQ(tokenizer.Encode("a<s>b<think>c"), (Ids{0, 10, 1, 12, 2}));
  // parse_special=false leaves special tokens as text ("<", "s", ">" have no ids here), but not
  // other added tokens.
  EXPECT_EQ(tokenizer.Encode("a<s>b<think>c", false), (Ids{0, 1, 12, 2}));
}

TEST(Tokenizer, DecodesWithAndWithoutSpecialTokens) {
  const Tokenizer tokenizer = Small();
  const Ids ids = {9, 10, 12, 8, 4, 11, 99, -1};  // The last three ids have no token.
  EXPECT_EQ(tokenizer.Decode(ids), " a<s><think>abc\n");
  EXPECT_EQ(tokenizer.Decode(ids, true), " a<think>abc\n");
  EXPECT_EQ(tokenizer.Decode(Ids{5, 6}), "\xC3\xA9");
  EXPECT_EQ(tokenizer.Decode(Ids{5, 0}),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(tokenizer.TokenBytes(5), "\xC3");
}

TEST(Tokenizer, LooksUpTokens) {
  const Tokenizer tokenizer = Small();
  EXPECT_EQ(tokenizer.TokenId("<think>"), 12);
  EXPECT_EQ(tokenizer.TokenId(" a"), 9);
  EXPECT_EQ(tokenizer.TokenId("\n"), 4);
  EXPECT_EQ(tokenizer.TokenId("nothing"), std::nullopt);
  EXPECT_TRUE(tokenizer.IsSpecial(10));
  EXPECT_FALSE(tokenizer.IsSpecial(12));
  EXPECT_EQ(tokenizer.vocab_size(), 13);
}

TEST(Tokenizer, StripsAndSingleWords) {
  const Tokenizer tokenizer =
      Small(kMerges, R"({"id": 10, "content": "<l>", "normalized": false, "lstrip": true},
                  {"id": 11, "content": "<r>", "normalized": false, "rstrip": true},
                  {"id": 12, "content": "bb", "normalized": false, "single_word": true})");
  EXPECT_EQ(tokenizer.Encode("a <l> a"), (Ids{0, 10, 9}));
  EXPECT_EQ(tokenizer.Encode("a <r> a"), (Ids{0, 3, 11, 0}));
  EXPECT_EQ(tokenizer.Encode("bb abb"), (Ids{12, 3, 7, 1}));
}

struct BadFile {
  std::string json;
  std::string says;
};

TEST(Tokenizer, BadFilesAreNamedWithTheirFault) {
  std::string no_decoder = SmallJson(kMerges, kAdded);
  no_decoder.replace(no_decoder.find("\"decoder\""), 9, "\"other\"");
  std::string wordpiece = SmallJson(kMerges, kAdded);
  wordpiece.replace(wordpiece.find("\"BPE\""), 5, "\"WordPiece\"");
  std::string metaspace = SmallJson(kMerges, kAdded);
  metaspace.replace(metaspace.find("\"Split\""), 7, "\"Metaspace\"");
  const std::vector<BadFile> bad = {
      {"{\"model\": ", "parse error"},
      {"[]", "not a valid tokenizer.json"},
      {"{}", "pre_tokenizer"},
      {no_decoder, "decoder"},
      {wordpiece, "WordPiece"},
      {metaspace, "Metaspace"},
      {SmallJson(R"("a z")", kAdded), "not in the vocabulary"},
      {SmallJson(R"("a b c")", kAdded), "not a pair"},
      {SmallJson(kMerges, R"({"id": 10})"), "added_tokens entry 0"},
      {SmallJson(kMerges, R"({"id": 2000000000, "content": "x"})"), "largest token id"},
  };
  for (const BadFile& file : bad) {
    const absl::Status status = Tokenizer::FromJson(file.json, "dir/tokenizer.json").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << file.says;
    EXPECT_NE(status.message().find("dir/tokenizer.json"), absl::string_view::npos) << status;
    EXPECT_NE(status.message().find(file.says), absl::string_view::npos) << status;
  }
}

TEST(Tokenizer, MissingFileIsNamed) {
  const absl::Status status = Tokenizer::Load("/nonexistent/tokenizer.json").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("/nonexistent/tokenizer.json"), absl::string_view::npos);
}

}  // namespace
}  // namespace tritonrl
