#include "base/utf8.h"

#include <gtest/gtest.h>

namespace tritonrl {
namespace {

TEST(Utf8Test, WellFormedTextStays) {
  for (const char* text : {"", "plain", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                           "\xED\x9F\xBF", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
    EXPECT_EQ(ReplaceInvalidUtf8(text), text);
  }
}

TEST(Utf8Test, IllFormedTextIsReplacedByteByByte) {
  // Overlong, surrogate, above U+10FFFF, lonely continuation, cut off.
  for (const char* text : {"\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                           "\xF5\x80\x80\x80", "\x80", "\xE2\x82", "\xF0\x9F\x98", "\xFF"}) {
    EXPECT_FALSE(IsValidUtf8(text));
    EXPECT_TRUE(IsValidUtf8(ReplaceInvalidUtf8(text)));
  }
  EXPECT_EQ(ReplaceInvalidUtf8("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE2\x82x"), "\xEF\xBF\xBD\xEF\xBF\xBDx");
}

}  // namespace
}  // namespace tritonrl
