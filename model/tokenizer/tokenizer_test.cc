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

TEST(Tokenizer, RepeatedPiecesHaveTheSameIds) {
  const Tokenizer tokenizer = Small();
  Ids wanted;
  std::string text;
  for (int i = 0; i < 100; ++i) {
    // " abc" is 3 and 8, " ac" is 9 and 2, and "z" has no id.
    text += i % 3 == 0 ? " abc" : " ac z";
    const Ids more = i % 3 == 0 ? Ids{3, 8} : Ids{9, 2, 3};
    wanted.insert(wanted.end(), more.begin(), more.end());
  }
  EXPECT_EQ(tokenizer.Encode(text), wanted);
  EXPECT_EQ(tokenizer.Encode("abc<s>abc abc"), (Ids{8, 10, 8, 3, 8}));
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
  std::string bert = SmallJson(kMerges, kAdded);
  bert.replace(bert.find("\"Split\""), 7, "\"BertPreTokenizer\"");
  std::string template_without_text = SmallJson(kMerges, kAdded);
  template_without_text.insert(1, R"("post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>"}}],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [10], "tokens": ["<s>"]}}},)");
  std::string template_of_unknown = SmallJson(kMerges, kAdded);
  template_of_unknown.insert(1, R"("post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<x>"}}, {"Sequence": {"id": "A"}}]},)");
  const std::vector<BadFile> bad = {
      {"{\"model\": ", "parse error"},
      {"[]", "not a valid tokenizer.json"},
      {"{}", "model type"},
      {no_decoder, "decoder"},
      {wordpiece, "WordPiece"},
      {bert, "BertPreTokenizer"},
      {template_without_text, "names it 0 times"},
      {template_of_unknown, "neither the text nor one of its special_tokens"},
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

TEST(Tokenizer, BeginAndEndTokensAreThoseOfThePostProcessor) {
  EXPECT_EQ(Small().Encode("ab", true, true), (Ids{7}));
  std::string json = SmallJson(kMerges, kAdded);
  json.insert(1, R"("post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"},
      {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
       {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<think>", "type_id": 0}}],
       "special_tokens": {"<s>": {"id": "<s>", "ids": [10], "tokens": ["<s>"]},
       "<think>": {"id": "<think>", "ids": [12], "tokens": ["<think>"]}}}]},)");
  const auto tokenizer = Tokenizer::FromJson(json, "small");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->special_prefix(), Ids{10});
  EXPECT_EQ(tokenizer->special_suffix(), Ids{12});
  EXPECT_EQ(tokenizer->Encode("ab", true, true), (Ids{10, 7, 12}));
  EXPECT_EQ(tokenizer->Encode("", true, true), (Ids{10, 12}));
  EXPECT_EQ(tokenizer->Encode("ab"), (Ids{7}));
}

// A tokenizer of the kind of Llama 2: over characters, with byte fallback.
TEST(Tokenizer, CharactersWithByteFallback) {
  const auto tokenizer = Tokenizer::FromJson(R"({
    "added_tokens": [{"id": 1, "content": "<s>", "special": true, "normalized": false}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "_"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "_"}]},
    "decoder": {"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "_"}, "content": " "}, {"type": "ByteFallback"},
      {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "byte_fallback": true, "fuse_unk": true, "unk_token": "<unk>",
      "vocab": {"<unk>": 0, "<s>": 1, "<0xC3>": 2, "<0xA9>": 3, "_": 4, "a": 5, "_a": 6, "b": 7},
      "merges": ["_ a"]}})",
                                             "llama");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->Encode("a b\xC3\xA9"), (Ids{6, 4, 7, 2, 3}));
  EXPECT_EQ(tokenizer->Encode("xyb"), (Ids{4, 0, 7}));  // Two unknown characters, one token.
  EXPECT_EQ(tokenizer->Encode("<s>a"), (Ids{1, 6}));
  EXPECT_EQ(tokenizer->Decode(Ids{6, 4, 7, 2, 3}), "a b\xC3\xA9");
  EXPECT_EQ(tokenizer->Decode(Ids{2}), "\xEF\xBF\xBD");
  EXPECT_EQ(tokenizer->TokenBytes(6), " a");
  EXPECT_EQ(tokenizer->TokenBytes(2), "\xC3");
  EXPECT_EQ(tokenizer->TokenId(" a"), 6);
}

TEST(Tokenizer, OtherFormsOfTokenizersAreNamed) {
  const std::string dir = MakeTempDirectory("tokenizer").value();
  const std::string path = JoinPath(dir, "tokenizer.json");
  ASSERT_TRUE(WriteFileAtomic(JoinPath(dir, "vocab.json"), "{}").ok());
  absl::Status status = Tokenizer::Load(path).status();
  EXPECT_NE(status.message().find("vocab.json beside it is not read"), absl::string_view::npos)
      << status;
  EXPECT_NE(status.message().find("save_pretrained"), absl::string_view::npos) << status;
  ASSERT_TRUE(
      WriteFileAtomic(path, "version https://git-lfs.github.com/spec/v1\noid sha256:00\n").ok());
  status = Tokenizer::Load(path).status();
  EXPECT_NE(status.message().find("is a Git LFS pointer"), absl::string_view::npos) << status;
  EXPECT_TRUE(RemoveTree(dir).ok());
}

TEST(Tokenizer, MissingFileIsNamed) {
  const absl::Status status = Tokenizer::Load("/nonexistent/tokenizer.json").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("/nonexistent/tokenizer.json"), absl::string_view::npos);
}

}  // namespace
}  // namespace tritonrl
