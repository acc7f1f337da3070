#include "tasks/response.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tritonrl {

namespace {

constexpr char kGood[] =
    "<think>\nfuse a b in one kernel\n</think>\n```python\nx = 1\ny = 2\n```\n";

TEST(ReadResponseTest, WellFormed) {
  const SplitResponse split = ReadResponse(kGood, ResponseStyle());
  EXPECT_EQ(split.shape, ResponseShape::kOk);
  EXPECT_TRUE(split.valid());
  EXPECT_EQ(split.plan, "fuse a b in one kernel");
  EXPECT_EQ(split.code, "x = 1\ny = 2\n");
}

struct ShapeCase {
  const char* name;
  const char* text;
  bool truncated;
  ResponseShape shape;
  const char* plan;
  const char* code;
};

// The default style: a plan up to </think>, then the only code block.
class ShapeTest : public testing::TestWithParam<ShapeCase> {};

TEST_P(ShapeTest, HasDefinedBehaviour) {
  const ShapeCase& c = GetParam();
  const SplitResponse split = ReadResponse(c.text, ResponseStyle(), c.truncated);
  EXPECT_EQ(split.shape, c.shape) << ResponseShapeName(split.shape);
  EXPECT_EQ(split.plan, c.plan);
  EXPECT_EQ(split.code, c.code);
  EXPECT_EQ(split.valid(), c.shape == ResponseShape::kOk);
}

using S = ResponseShape;
INSTANTIATE_TEST_SUITE_P(
    All, ShapeTest,
    testing::Values(
        ShapeCase{"empty", "", false, S::kEmpty, "", ""},
        ShapeCase{"blank", " \n\t\n", false, S::kEmpty, "", ""},
        ShapeCase{"blank_cut", " \n", true, S::kTruncated, "", ""},
        ShapeCase{"open_tag_in_the_prompt", "p</think>\n```\nx\n```", false, S::kOk, "p", "x\n"},
        ShapeCase{"empty_plan", "<think></think>```py\nx\n```", false, S::kOk, "", "x\n"},
        ShapeCase{"end_of_text_after_fence", "<think>p</think>\n```python\nx\n```<|endoftext|>",
                  false, S::kOk, "p", "x\n"},
        ShapeCase{"complete_at_the_limit", "<think>p</think>\n```python\nx\n```", true, S::kOk, "p",
                  "x\n"},
        ShapeCase{"text_around", "<think>p</think>\nHere:\n```Python\nx\n```\nDone.", false, S::kOk,
                  "p", "x\n"},
        ShapeCase{"windows_lines", "<think>p</think>\r\n```python\r\nx\r\n```\r\n", false, S::kOk,
                  "p", "x\r\n"},
        ShapeCase{"fence_in_plan", "<think>try\n```python\nbad\n```\n</think>\n```python\nx\n```\n",
                  false, S::kOk, "try\n```python\nbad\n```", "x\n"},
        ShapeCase{"other_language", "<think>p</think>\n```bash\nls\n```\n```python\nx\n```\n",
                  false, S::kOk, "p", "x\n"},
        ShapeCase{"close_tag_inside_code", "<think>p</think>\n```python\n# </think>\n```\n", false,
                  S::kOk, "p", "# </think>\n"},
        ShapeCase{"indented_fence_is_code", "<think>p</think>\n```\nd = '''\n    ```\n'''\n```\n",
                  false, S::kOk, "p", "d = '''\n    ```\n'''\n"},
        ShapeCase{"longer_fence", "<think>p</think>\n````\n```\n````\n", false, S::kOk, "p",
                  "```\n"},
        ShapeCase{"no_close", "<think>p\n```python\nx\n```\n", false, S::kNoThinkClose,
                  "p\n```python\nx\n```", ""},
        ShapeCase{"no_tags", "```python\nx\n```\n", false, S::kNoThinkClose, "```python\nx\n```",
                  ""},
        ShapeCase{"cut_in_plan", "<think>p", true, S::kTruncated, "p", ""},
        ShapeCase{"cut_before_code", "<think>p</think>\nSo", true, S::kTruncated, "p", ""},
        ShapeCase{"cut_in_code", "<think>p</think>\n```python\nx = ", true, S::kTruncated, "p",
                  "x = "},
        ShapeCase{"unclosed", "<think>p</think>\n```python\nx = 1\n", false, S::kUnclosedCode, "p",
                  "x = 1\n"},
        ShapeCase{"no_code", "<think>p</think>\nI cannot.", false, S::kNoCode, "p", ""},
        ShapeCase{"empty_code", "<think>p</think>\n```python\n \n```\n", false, S::kNoCode, "p",
                  ""},
        ShapeCase{"inline_ticks", "<think>p</think>\n```x = 1```\n", false, S::kNoCode, "p", ""},
        ShapeCase{"two_blocks", "<think>p</think>\n```python\nx\n```\n```python\ny\n```\n", false,
                  S::kTwoCodeBlocks, "p", "y\n"},
        ShapeCase{"second_block_cut", "<think>p</think>\n```python\nx\n```\n```python\ny", true,
                  S::kTruncated, "p", "y"},
        ShapeCase{"repeated_close", "<think>p</think> q </think>\n```python\nx\n```\n", false,
                  S::kRepeatedThink, "p", "x\n"},
        ShapeCase{"garbage", "\xff\xfe</think>```\n\xc3(\n```", false, S::kOk, "\xff\xfe",
                  "\xc3(\n"}),
    [](const testing::TestParamInfo<ShapeCase>& info) { return std::string(info.param.name); });

struct StyleCase {
  const char* name;
  ResponseStyle::Plan plan;
  ResponseStyle::CodeBlock block;
  const char* text;
  bool truncated;
  ResponseShape shape;
  const char* plan_text;
  const char* code;
};

class StyleTest : public testing::TestWithParam<StyleCase> {};

TEST_P(StyleTest, HasDefinedBehaviour) {
  const StyleCase& c = GetParam();
  const ResponseStyle style = {.plan = c.plan, .code_block = c.block};
  const SplitResponse split = ReadResponse(c.text, style, c.truncated);
  EXPECT_EQ(split.shape, c.shape) << ResponseShapeName(split.shape);
  EXPECT_EQ(split.plan, c.plan_text);
  EXPECT_EQ(split.code, c.code);
}

using P = ResponseStyle::Plan;
using B = ResponseStyle::CodeBlock;
constexpr P kThinking = P::kThinking;
constexpr P kPlain = P::kPlain;
constexpr char kTwo[] = "Plan.\n```python\nx\n```\nAnd:\n```python\ny\n```\n";
constexpr char kTwoThought[] = "<think>p</think>\n```python\nx\n```\n```python\ny\n```\n";

std::string StyleCaseName(const testing::TestParamInfo<StyleCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Plain, StyleTest,
    testing::Values(
        StyleCase{"no_plan", kPlain, B::kFirst, "```python\nx\n```", false, S::kOk, "", "x\n"},
        StyleCase{"prose", kPlain, B::kFirst, "So:\n```\nx\n```\nDone.", false, S::kOk,
                  "So:", "x\n"},
        StyleCase{"thought", kPlain, B::kFirst, "<think>p\n```\nbad\n```\n</think>\n```\nx\n```",
                  false, S::kOk, "p\n```\nbad\n```", "x\n"},
        StyleCase{"thought_opened_in_the_prompt", kPlain, B::kFirst,
                  "p\n```\nbad\n```\n</think>\n```\nx\n```", false, S::kOk, "p\n```\nbad\n```",
                  "x\n"},
        StyleCase{"thought_without_end", kPlain, B::kFirst, "<think>p\n```\nx\n```", false,
                  S::kNoThinkClose, "p\n```\nx\n```", ""},
        StyleCase{"thought_cut", kPlain, B::kFirst, "<think>p\n```\nx\n```", true, S::kTruncated,
                  "p\n```\nx\n```", ""},
        StyleCase{"two_thoughts", kPlain, B::kFirst, "<think>p</think> </think>\n```\nx\n```",
                  false, S::kOk, "p", "x\n"},
        StyleCase{"close_tag_inside_code", kPlain, B::kFirst, "So:\n```\n# </think>\n```", false,
                  S::kOk, "So:", "# </think>\n"},
        StyleCase{"empty", kPlain, B::kFirst, " \n", false, S::kEmpty, "", ""},
        StyleCase{"no_code", kPlain, B::kFirst, "I cannot.", false, S::kNoCode, "I cannot.", ""},
        StyleCase{"no_code_cut", kPlain, B::kFirst, "I can", true, S::kTruncated, "I can", ""},
        StyleCase{"blank_code", kPlain, B::kFirst, "```\n \n```", false, S::kNoCode, "", ""},
        StyleCase{"unclosed", kPlain, B::kFirst, "So:\n```\nx", false, S::kUnclosedCode,
                  "So:", "x"},
        StyleCase{"cut", kPlain, B::kFirst, "So:\n```\nx", true, S::kTruncated, "So:", "x"},
        StyleCase{"several", kPlain, B::kOnly, kTwo, false, S::kTwoCodeBlocks, "Plan.", "y\n"}),
    StyleCaseName);

INSTANTIATE_TEST_SUITE_P(
    Blocks, StyleTest,
    testing::Values(
        StyleCase{"first", kPlain, B::kFirst, kTwo, false, S::kOk, "Plan.", "x\n"},
        StyleCase{"last", kPlain, B::kLast, kTwo, false, S::kOk, "Plan.", "y\n"},
        StyleCase{"joined", kPlain, B::kJoined, kTwo, false, S::kOk, "Plan.", "x\ny\n"},
        StyleCase{"thinking_first", kThinking, B::kFirst, kTwoThought, false, S::kOk, "p", "x\n"},
        StyleCase{"thinking_last", kThinking, B::kLast, kTwoThought, false, S::kOk, "p", "y\n"},
        StyleCase{"thinking_joined", kThinking, B::kJoined, kTwoThought, false, S::kOk, "p",
                  "x\ny\n"},
        StyleCase{"thinking_needs_its_plan", kThinking, B::kFirst, kTwo, false, S::kNoThinkClose,
                  "Plan.\n```python\nx\n```\nAnd:\n```python\ny\n```", ""},
        StyleCase{"thinking_repeated", kThinking, B::kLast, "p</think></think>\n```\nx\n```", false,
                  S::kRepeatedThink, "p", "x\n"},
        StyleCase{"first_is_complete_before_the_cut", kPlain, B::kFirst, "```\nx\n```\n```\ny",
                  true, S::kOk, "", "x\n"},
        StyleCase{"first_before_an_unclosed_one", kPlain, B::kFirst, "```\nx\n```\n```\ny", false,
                  S::kOk, "", "x\n"},
        StyleCase{"last_is_cut", kPlain, B::kLast, "```\nx\n```\n```\ny", true, S::kTruncated, "",
                  "y"},
        StyleCase{"last_is_unclosed", kPlain, B::kLast, "```\nx\n```\n```\ny", false,
                  S::kUnclosedCode, "", "y"},
        StyleCase{"last_may_follow_the_cut", kPlain, B::kLast, "```\nx\n```\n```bash\nls", true,
                  S::kTruncated, "", "x\n"},
        StyleCase{"joined_is_cut", kPlain, B::kJoined, "```\nx\n```\n```\ny", true, S::kTruncated,
                  "", "x\ny"},
        StyleCase{"blank_blocks_do_not_count", kPlain, B::kLast, "```\nx\n```\n```\n\n```\n", false,
                  S::kOk, "", "x\n"},
        StyleCase{"only_other_languages", kPlain, B::kJoined, "```bash\nls\n```\n", false,
                  S::kNoCode, "```bash\nls\n```", ""}),
    StyleCaseName);

TEST(PlanBytesTest, EndsBehindTheTagOrAtTheFence) {
  const ResponseStyle thinking, plain = {.plan = kPlain, .code_block = B::kFirst};
  EXPECT_EQ(PlanBytes("<think>p</think>\n```\nx\n```", thinking), 16);
  EXPECT_EQ(PlanBytes(" p</think></think>", thinking), 10);
  EXPECT_EQ(PlanBytes("p\n```\nx\n```", thinking), std::nullopt);
  EXPECT_EQ(PlanBytes("<think>p</think>\n```\nx\n```", plain), 16);
  EXPECT_EQ(PlanBytes("p\n```\nx\n```", plain), 2);
  EXPECT_EQ(PlanBytes("```\nx\n```", plain), 0);
  EXPECT_EQ(PlanBytes("<think>p\n```\nx\n```", plain), std::nullopt);
  EXPECT_EQ(PlanBytes("p", plain), std::nullopt);
  EXPECT_EQ(PlanBytes("\xff\xc3</think>\xe2\x82", thinking), 10);
}

// The text "<think>ab</think>\nx" in tokens of any size.
TEST(CountPlanTokensTest, TheTokenThatCompletesTheTagIsTheLast) {
  const std::string text = "<think>ab</think>\nx";
  const auto count = [&](const std::vector<size_t>& ends) {
    return CountPlanTokens(ends, PlanBytes(text, ResponseStyle()));
  };
  EXPECT_EQ(count({7, 9, 17, 19}), 3);             // one token for the tag
  EXPECT_EQ(count({7, 9, 11, 16, 17, 18}), 5);     // spelled by several
  EXPECT_EQ(count({7, 8, 11, 16, 18, 19}), 5);     // "b</", "think", ">\n"
  EXPECT_EQ(count({19}), 1);                       // all in one token
  EXPECT_EQ(count({7, 7, 9, 17, 17, 17, 19}), 4);  // tokens without text
}

TEST(CountPlanTokensTest, WithoutAPlanOrWithoutItsEnd) {
  EXPECT_EQ(CountPlanTokens({}, std::nullopt), 0);
  EXPECT_EQ(CountPlanTokens({}, 0), 0);
  EXPECT_EQ(CountPlanTokens({1, 2, 2}, std::nullopt), 3);
  EXPECT_EQ(CountPlanTokens({1, 2, 2}, 0), 0);
  EXPECT_EQ(CountPlanTokens({0, 1, 2}, 2), 3);
}

TEST(ClassifyPlanTest, Kinds) {
  EXPECT_EQ(ClassifyPlan("fuse mul gelu in one kernel, block 256"), PlanKind::kFused);
  EXPECT_EQ(ClassifyPlan("\ntwo kernels: mul then gelu, block 256"), PlanKind::kSplit);
  EXPECT_EQ(ClassifyPlan("three kernels: mul then gelu then relu, block 256"), PlanKind::kSplit);
  EXPECT_EQ(ClassifyPlan("one kernel for gelu, block 256"), PlanKind::kSingle);
  EXPECT_EQ(ClassifyPlan(""), PlanKind::kOther);
  EXPECT_EQ(ClassifyPlan("fused"), PlanKind::kOther);
}

}  // namespace

}  // namespace tritonrl
