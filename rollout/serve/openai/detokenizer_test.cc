#include "rollout/serve/openai/detokenizer.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/utf8.h"
#include "model/chat/testing/byte_tokenizer.h"

namespace tritonrl {
namespace {

constexpr int32_t kEnd = 256;  // A special token.

// Pushes the bytes of `text` one by one, and takes the new text after each.
std::vector<std::string> Pieces(IncrementalDetokenizer* stream, const std::string& text) {
  std::vector<std::string> pieces;
  for (const char byte : text) {
    stream->Push(static_cast<unsigned char>(byte), -1);
    pieces.push_back(stream->Take().text);
  }
  stream->Finish();
  pieces.push_back(stream->Take().text);
  return pieces;
}

using Texts = std::vector<std::string>;

TEST(IncrementalDetokenizer, GivesWholeCharactersOnly) {
  IncrementalDetokenizer stream(ByteTokenizer({"<end>"}), {});
  EXPECT_EQ(Pieces(&stream, "a\xC3\xA9\xF0\x9F\x99\x82z"),
            (Texts{"a", "", "\xC3\xA9", "", "", "", "\xF0\x9F\x99\x82", "z", ""}));
}

TEST(IncrementalDetokenizer, BytesThatNeverBecomeACharacterAreReplaced) {
  IncrementalDetokenizer stream(ByteTokenizer({}), {});
  // A lead byte followed by a letter, a stray byte, and half a character at the end.
  EXPECT_EQ(Pieces(&stream, "\xC3z\xFF\xE2\x82"),
            (Texts{"", "\xEF\xBF\xBDz", "\xEF\xBF\xBD", "", "", "\xEF\xBF\xBD"}));
}

TEST(IncrementalDetokenizer, SpecialTokensHaveNoText) {
  IncrementalDetokenizer stream(ByteTokenizer({"<end>"}, {"<think>"}), {});
  for (const int32_t token : {int32_t{'a'}, kEnd, 257, 9999, -3, int32_t{'b'}}) {
    stream.Push(token, -1);
  }
  const TextDelta piece = stream.Take();
  EXPECT_EQ(piece.text, "a<think>b");
  EXPECT_EQ(piece.tokens.size(), 3u);
  EXPECT_EQ(stream.num_tokens(), 6);
}

TEST(IncrementalDetokenizer, HoldsBackWhatMayBeginAStopString) {
  IncrementalDetokenizer stream(ByteTokenizer({}), {"stop!"});
  EXPECT_EQ(Pieces(&stream, "a st stop?"),
            (Texts{"a", " ", "", "", "st ", "", "", "", "", "stop?", ""}));
}

TEST(IncrementalDetokenizer, EndsBeforeAStopString) {
  IncrementalDetokenizer stream(ByteTokenizer({}), {"\n\n", "END"});
  EXPECT_EQ(Pieces(&stream, "x\nEND more"), (Texts{"x", "", "\n", "", "", "", "", "", "", "", ""}));
  EXPECT_TRUE(stream.stopped());
  // Counts the tokens up to the one that completed the stop string.
  EXPECT_EQ(stream.num_tokens(), 5);
}

TEST(IncrementalDetokenizer, WhatWasHeldComesOutAtTheEnd) {
  IncrementalDetokenizer stream(ByteTokenizer({}), {"stop"});
  EXPECT_EQ(Pieces(&stream, "sto"), (Texts{"", "", "", "sto"}));
  EXPECT_FALSE(stream.stopped());
}

TEST(IncrementalDetokenizer, TheFirstCompleteStopStringCounts) {
  // "b" is complete before "abc" is, though it begins later.
  IncrementalDetokenizer first(ByteTokenizer({}), {"abc", "b"});
  Pieces(&first, "xabc");
  EXPECT_EQ(first.num_tokens(), 3);
  // Of two stop strings that end at the same byte the longer one counts.
  IncrementalDetokenizer longer(ByteTokenizer({}), {"c", "abc"});
  std::string text;
  for (const std::string& piece : Pieces(&longer, "xabc")) text += piece;
  EXPECT_EQ(text, "x");
}

TEST(IncrementalDetokenizer, AStopStringWithinOneToken) {
  const Tokenizer tokenizer = ByteTokenizer({}, {"one END two"});
  IncrementalDetokenizer stream(tokenizer, {"END"});
  stream.Push(256, -2);
  const TextDelta piece = stream.Take();
  EXPECT_EQ(piece.text, "one ");
  EXPECT_TRUE(stream.stopped());
  // The token is returned because part of it is shown.
  ASSERT_EQ(piece.tokens.size(), 1u);
  EXPECT_EQ(piece.tokens[0].bytes, "one END two");
}

TEST(IncrementalDetokenizer, APromptComesFirstAndEveryTokenIsListed) {
  const Tokenizer tokenizer = ByteTokenizer({"<begin>", "<end>"});
  IncrementalDetokenizer stream(tokenizer, {"stop"}, /*list_all=*/true);
  stream.PushPrompt(256, std::nullopt, {}, /*hidden=*/true);
  const std::vector<TokenLogProb> top = {{'x', -1.0f}, {257, -2.0f}};
  for (const int32_t token : {int32_t{'s'}, int32_t{'t'}, int32_t{257}, int32_t{0xC3}}) {
    stream.PushPrompt(token, -0.5f, top);
  }
  stream.EndPrompt();
  EXPECT_EQ(stream.num_tokens(), 0);
  const TextDelta prompt = stream.Take();
  EXPECT_EQ(prompt.text, "st<end>\xEF\xBF\xBD") << "no stop string, no character left open";
  ASSERT_EQ(prompt.tokens.size(), 5u);
  EXPECT_EQ(prompt.tokens[0].bytes, "<begin>");
  EXPECT_FALSE(prompt.tokens[0].log_prob.has_value());
  EXPECT_EQ(prompt.tokens[1].log_prob, -0.5f);
  ASSERT_EQ(prompt.tokens[1].top.size(), 2u);
  EXPECT_EQ(prompt.tokens[1].top[1].bytes, "<end>");
  EXPECT_EQ(prompt.tokens[1].top[1].log_prob, -2.0f);
  const std::vector<int64_t> starts = {0, 0, 1, 2, 7};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(prompt.tokens[i].char_start, starts[i]);
  stream.Push(0xA9, -1);  // would end the prompt's character
  stream.Push('o', -1);
  stream.Push(257, -3);
  TextDelta answer = stream.Take();
  EXPECT_EQ(answer.text, "\xEF\xBF\xBDo");
  ASSERT_EQ(answer.tokens.size(), 3u);
  EXPECT_EQ(answer.tokens[2].bytes, "<end>");
  EXPECT_EQ(answer.tokens[2].char_start, 9 + 1);
  stream.Push('s', -1);
  EXPECT_TRUE(stream.Take().empty()) << "may begin a stop string";
  stream.PushEnd(257, -4, top);
  stream.Finish();
  answer = stream.Take();
  EXPECT_EQ(answer.text, "s");
  ASSERT_EQ(answer.tokens.size(), 2u);
  EXPECT_EQ(answer.tokens[1].log_prob, -4);
  EXPECT_EQ(stream.num_tokens(), 5);
}

TEST(IncrementalDetokenizer, TokensComeWithTheirFirstText) {
  IncrementalDetokenizer stream(ByteTokenizer({}), {"de"});
  const auto take = [&](char byte) {
    stream.Push(static_cast<unsigned char>(byte), -static_cast<float>(byte));
    return stream.Take();
  };
  EXPECT_EQ(take('\xC3').tokens.size(), 0u);
  const TextDelta both = take('\xA9');
  ASSERT_EQ(both.tokens.size(), 2u);
  EXPECT_EQ(both.tokens[0].bytes, "\xC3");
  EXPECT_EQ(both.tokens[1].bytes, "\xA9");
  EXPECT_EQ(both.tokens[1].char_start, 0);
  EXPECT_EQ(take('d').tokens.size(), 0u);
  const TextDelta held = take('f');
  EXPECT_EQ(held.text, "df");
  ASSERT_EQ(held.tokens.size(), 2u);
  EXPECT_EQ(held.tokens[0].char_start, 1);
  EXPECT_EQ(held.tokens[1].char_start, 2);
  EXPECT_EQ(held.tokens[1].log_prob, -102.0f);
  take('d');
  EXPECT_EQ(take('e').tokens.size(), 0u) << "the stop string's own tokens are not shown";
}

// The expected text, from all bytes at once: repaired, and cut before the stop string that is
// complete first.
std::string Reference(const std::string& bytes, const std::vector<std::string>& stops) {
  const std::string text = RepairUtf8(bytes);
  size_t best_end = std::string::npos, best_begin = 0;
  for (const std::string& stop : stops) {
    const size_t begin = text.find(stop);
    if (begin == std::string::npos) continue;
    const size_t end = begin + stop.size();
    if (end < best_end || (end == best_end && begin < best_begin)) {
      best_end = end;
      best_begin = begin;
    }
  }
  return best_end == std::string::npos ? text : text.substr(0, best_begin);
}

TEST(IncrementalDetokenizer, PiecesTogetherAreTheWholeTextCutAtTheStop) {
  Philox random(5);
  const Tokenizer tokenizer = ByteTokenizer({});
  const std::string alphabet = "aab\xC3\xA9\xE2\x82";
  for (int trial = 0; trial < 3000; ++trial) {
    std::string bytes;
    for (uint64_t i = random.Below(14); i > 0; --i)
      bytes += alphabet[random.Below(alphabet.size())];
    std::vector<std::string> stops;
    for (uint64_t i = random.Below(3); i > 0; --i) {
      std::string stop;
      for (uint64_t k = 1 + random.Below(4); k > 0; --k) stop += "ab"[random.Below(2)];
      stops.push_back(stop);
    }
    IncrementalDetokenizer stream(tokenizer, stops);
    std::string text;
    for (const std::string& piece : Pieces(&stream, bytes)) {
      EXPECT_TRUE(IsValidUtf8(piece));
      text += piece;
    }
    EXPECT_EQ(text, Reference(bytes, stops)) << trial;
  }
}

}  // namespace
}  // namespace tritonrl
