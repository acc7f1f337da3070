#include "exec/ttir/lexer.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

std::vector<std::string> Tokens(absl::string_view text) {
  std::vector<std::string> tokens;
  for (Lexer lexer(text); lexer.token().kind != TokenKind::kEnd; lexer.Advance()) {
    tokens.emplace_back(lexer.token().text);
  }
  return tokens;
}

TEST(LexerTest, DividesAnOperation) {
  EXPECT_EQ(
      Tokens("%0:2 = tt.call @\"f(1,)c\"(%x#1, %a-b) : (i32)->f32 // rest\n loc(#loc3)"),
      (std::vector<std::string>{
          "%0", ":", "2", "=",   "tt.call", "@\"f(1,)c\"", "(",   "%x",  "#1", ",",     "%a-b",
          ")",  ":", "(", "i32", ")",       "->",          "f32", "loc", "(",  "#loc3", ")"}));
}

TEST(LexerTest, ReadsNumbers) {
  EXPECT_EQ(Tokens("-12 0x7FC0 1.000000e+00 -3.5E-2 8"),
            (std::vector<std::string>{"-12", "0x7FC0", "1.000000e+00", "-3.5E-2", "8"}));
}

TEST(LexerTest, NamesLineAndColumnOfAnError) {
  Lexer lexer("module {\n  tt.func =");
  lexer.Advance();
  lexer.Advance();
  EXPECT_EQ(lexer.Expect("}").message(),
            "TTIR text line 2, column 3: expected \"}\" but found 'tt.func'");
  lexer.Advance();
  lexer.Advance();
  EXPECT_EQ(lexer.Expect("}").message(),
            "TTIR text line 2, column 12: expected \"}\" but the text ends");
}

TEST(LexerTest, PositionsMayGoBack) {
  const Lexer lexer("a\nbb\nc");
  EXPECT_EQ(lexer.PositionOf(5).line, 3);
  EXPECT_EQ(lexer.PositionOf(3).line, 2);
  EXPECT_EQ(lexer.PositionOf(3).column, 2);
  EXPECT_EQ(lexer.PositionOf(0).column, 1);
}

TEST(LexerTest, StringsEndOnTheirLine) {
  Lexer lexer("\"abc\n\"");
  EXPECT_EQ(lexer.token().kind, TokenKind::kBad);
  EXPECT_EQ(lexer.String().status().message(),
            "TTIR text line 1, column 1: a string has no closing quote on its line");
}

TEST(LexerTest, ResolvesEscapes) {
  EXPECT_EQ(*Unquote(R"("a\0Ab\22\\c\n\"")"), "a\nb\"\\c\n\"");
  EXPECT_FALSE(Unquote(R"("\q")").ok());
  EXPECT_FALSE(Unquote("\"").ok());
}

TEST(LexerTest, IntegersHaveBounds) {
  EXPECT_FALSE(Lexer("9223372036854775808").Integer().ok());
  EXPECT_EQ(*Lexer("-9223372036854775808").Integer(), INT64_MIN);
  EXPECT_FALSE(Lexer("2147483648").Integer32().ok());
  EXPECT_FALSE(Lexer("1.5").Integer().ok());
}

}  // namespace
}  // namespace tritonrl::ttir
