// Damaged texts give a module or one sentence, and nothing else happens.
#include "exec/ttir/testing/mutation.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "exec/ttir/lexer.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/testing/corpus.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

constexpr int kMutationsOfEach = 80;

std::string Join(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) {
    // An alias is found at the begin of its line.
    absl::StrAppend(&text, absl::StartsWith(token, "#loc") ? "\n" : " ", token);
    if (token == "<" || token == "x") text.pop_back(), text.append(token);
  }
  return text;
}

void ExpectOneSentence(const absl::Status& status, const std::string& name) {
  EXPECT_FALSE(status.ok()) << name;
  EXPECT_TRUE(CheckParsed(status).ok()) << name << ": " << status;
}

TEST(MutationTest, DamagedTextsGiveAStatus) {
  std::mt19937 random(27);
  int refused = 0;
  int texts = 0;
  for (const CorpusText& entry : ReadCorpus()) {
    if (entry.text.size() > kLongestDamaged) continue;
    const std::vector<std::string> words = TokensOf(entry.text);
    for (int i = 0; i < kMutationsOfEach; ++i) {
      const std::string mutated = Mutate(entry.text, words, random);
      const auto module = ParseTtir(mutated);
      ++texts;
      if (module.ok()) continue;
      ++refused;
      ExpectOneSentence(module.status(), entry.name);
    }
  }
  EXPECT_GT(texts, 3000);
  EXPECT_GT(refused, texts / 3);
}

TEST(MutationTest, TextsCutAnywhereGiveAStatus) {
  std::mt19937 random(28);
  for (const CorpusText& entry : ReadCorpus()) {
    for (int i = 0; i < 20; ++i) {
      const std::string cut = entry.text.substr(0, random() % entry.text.size());
      const auto module = ParseTtir(cut);
      if (!module.ok()) ExpectOneSentence(module.status(), entry.name);
    }
  }
}

TEST(MutationTest, ShuffledTokensGiveAStatus) {
  std::mt19937 random(29);
  for (const CorpusText& entry : ReadCorpus()) {
    std::vector<std::string> tokens = TokensOf(entry.text);
    std::shuffle(tokens.begin(), tokens.end(), random);
    const auto module = ParseTtir(Join(tokens));
    ASSERT_FALSE(module.ok());
    ExpectOneSentence(module.status(), entry.name);
  }
}

std::string Repeat(const std::string& text, int times) {
  std::string repeated;
  for (int i = 0; i < times; ++i) repeated += text;
  return repeated;
}

TEST(MutationTest, DeepNestingIsAnErrorAndNoStackOverflow) {
  const std::string texts[] = {
      "module attributes {a = " + Repeat("[", 100'000) + "} {}",
      "module attributes {a = " + Repeat("{a = ", 100'000) + "} {}",
      "#loc = loc(" + Repeat("callsite(", 100'000),
      "#loc = loc(" + Repeat("\"x\"(", 100'000),
      ModuleAround("%x = tt.bitcast %p : " + Repeat("!tt.ptr<", 100'000)),
      ModuleAround("%x = tt.load %p : tensor<" + Repeat("1x", 100'000) + "f32>"),
      ModuleAround("%x = arith.constant dense<" + Repeat("[", 100'000)),
      ModuleAround(Repeat("scf.if %c {\n", 100'000)),
      ModuleAround(Repeat("\"tt.reduce\"(%n) <{axis = 0 : i32}> ({\n", 100'000)),
  };
  for (const std::string& text : texts) {
    const auto module = ParseTtir(text);
    ASSERT_FALSE(module.ok());
    ExpectOneSentence(module.status(), text.substr(0, 60));
  }
}

TEST(MutationTest, HugeTextsAreRefused) {
  EXPECT_FALSE(ParseTtir(std::string(64 << 20, ' ')).ok());
  const auto operations = ParseTtir(ModuleAround(Repeat("gpu.barrier\n", 200'000)));
  ASSERT_FALSE(operations.ok());
  EXPECT_TRUE(absl::StrContains(operations.status().message(), "too many operations"));
}

// Names that the text gives do not break a message into lines.
TEST(MutationTest, MessagesAreOneLine) {
  const std::string texts[] = {
      ModuleAround("tt.call @\"f\\0Ag\"() : () -> () loc(\"a\\0Ab\":1:1)\n tt.return"),
      ModuleAround("gpu.barrier {\"a\\0Ab\" = 1 : i32}\n tt.return"),
      ModuleAround("%x = math.exp %n : i32 loc(\"a\\0Ab\":1:1)\n tt.return"),
      ModuleAround("%x = tt.xyz %n : i32 loc(\"a\\0Ab\":1:1)\n tt.return"),
      ModuleAround("\"tt.\t\x01xyz\"() : () -> ()\n tt.return"),
      "module {\n tt.func @\"a\\0Ab\"() {\n gpu.barrier\n }\n}",
  };
  for (const std::string& text : texts) {
    const auto module = ParseTtir(text);
    ASSERT_FALSE(module.ok()) << text;
    ExpectOneSentence(module.status(), text);
  }
}

// Each alias stands for two of the one before: 2^40 places if all were listed.
TEST(MutationTest, AliasesThatDoubleDoNotExplode) {
  std::string text = "#loc0 = loc(\"kernel.py\":1:1)\n";
  for (int i = 1; i <= 40; ++i) {
    absl::StrAppend(&text, "#loc", i, " = loc(callsite(#loc", i - 1, " at #loc", i - 1, "))\n");
  }
  absl::StrAppend(&text, "module {\n tt.func public @k() {\n tt.return loc(#loc40)\n }\n}\n");
  const auto module = ParseTtir(text);
  ASSERT_TRUE(module.ok()) << module.status();
  const Operation& last = module->functions[0].body.blocks[0].operations[0];
  EXPECT_LE(module->locations.FramesOf(last.location).size(), LocationTable::kMaxFrames);
  EXPECT_EQ(module->PlaceOf(last), "line 1 of kernel.py");
}

}  // namespace
}  // namespace tritonrl::ttir
