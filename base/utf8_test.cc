#include "base/utf8.h"

#include <gtest/gtest.h>

namespace tritonrl {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

TEST(Utf8, WellFormedTextStays) {
  for (const char* text : {"", "plain", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                           "\xED\x9F\xBF", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
    EXPECT_EQ(RepairUtf8(text), text);
  }
}

TEST(Utf8, IllFormedTextIsFound) {
  // Over-long form, surrogate, above U+10FFFF, continuation byte alone, truncated character.
  for (const char* text : {"\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                           "\xF5\x80\x80\x80", "\x80", "\xE2\x82", "\xF0\x9F\x98", "\xFF"}) {
    EXPECT_FALSE(IsValidUtf8(text));
    EXPECT_TRUE(IsValidUtf8(RepairUtf8(text)));
  }
}

TEST(Utf8, RepairsEachMaximalIllFormedPartOnce) {
  const std::string r = kReplacement;
  EXPECT_EQ(RepairUtf8("plain \xC3\xA9 \xF0\x9F\x98\x80"), "plain \xC3\xA9 \xF0\x9F\x98\x80");
  EXPECT_EQ(RepairUtf8("a\xFF\xFE"
                       "b"),
            "a" + r + r + "b");
  // A character truncated after one, two or three bytes is one ill-formed part.
  EXPECT_EQ(RepairUtf8("\xF0"), r);
  EXPECT_EQ(RepairUtf8("\xF0\x9F\x98"), r);
  EXPECT_EQ(RepairUtf8("\xE2\x82X"), r + "X");
  // Over-long forms, surrogates and too large values: each byte is an ill-formed part.
  EXPECT_EQ(RepairUtf8("\xC0\xAF"), r + r);
  EXPECT_EQ(RepairUtf8("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(RepairUtf8("\xF4\x90\x80\x80"), r + r + r + r);
}

TEST(Utf8, AppendIsTheInverseOfDecode) {
  for (char32_t c : {U'\0', U'a', U'\u007F', U'\u0080', U'\u07FF', U'\u0800', U'\uFFFF',
                     U'\U00010000', U'\U0010FFFF'}) {
    std::string text;
    AppendUtf8(c, &text);
    const Utf8Char decoded = DecodeUtf8Char(text);
    EXPECT_TRUE(decoded.valid);
    EXPECT_EQ(decoded.code_point, c);
    EXPECT_EQ(decoded.length, text.size());
  }
}

}  // namespace
}  // namespace tritonrl
