#include "exec/ttir/testing/mutation.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "exec/ttir/lexer.h"

namespace tritonrl::ttir {

std::vector<std::string> TokensOf(const std::string& text) {
  std::vector<std::string> tokens;
  Lexer lexer(text);
  for (; lexer.token().kind != TokenKind::kEnd; lexer.Advance()) {
    tokens.emplace_back(lexer.token().text);
  }
  return tokens;
}

std::string Mutate(const std::string& text, const std::vector<std::string>& words,
                   std::mt19937& random) {
  std::string mutated = text;
  const auto pick = [&](size_t size) { return static_cast<size_t>(random() % size); };
  for (size_t changes = 1 + pick(3); changes > 0; --changes) {
    Lexer lexer(mutated);
    lexer.Seek(pick(mutated.size()));
    const Token first = lexer.token();
    lexer.Advance();
    const Token second = lexer.token();
    if (second.kind == TokenKind::kEnd) continue;
    const std::string a(first.text);
    const std::string b(second.text);
    switch (pick(5)) {
      case 0:
        mutated.erase(first.begin, a.size());
        break;
      case 1:
        mutated.insert(first.begin, a + " ");
        break;
      case 2:
        mutated.replace(second.begin, b.size(), a);
        mutated.replace(first.begin, a.size(), b);
        break;
      case 3:
        mutated.replace(first.begin, a.size(), words[pick(words.size())]);
        break;
      default:
        mutated[pick(mutated.size())] = static_cast<char>(random() % 256);
    }
  }
  return mutated;
}

namespace {

// Words that may stand for each other.
const std::vector<std::vector<std::string>>& Families() {
  static const auto* const families = new std::vector<std::vector<std::string>>{
      {"arith.addi", "arith.subi", "arith.muli", "arith.divsi", "arith.remsi", "arith.divui",
       "arith.shli", "arith.shrsi", "arith.andi", "arith.xori", "arith.minsi", "arith.maxui"},
      {"arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.remf", "arith.maxnumf",
       "arith.minimumf"},
      {"math.exp", "math.exp2", "math.log", "math.sqrt", "math.rsqrt", "math.absf", "math.sin"},
      {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"},
      {"oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "une", "uno"},
      {"add", "and", "or", "xor", "max", "min", "umax", "umin", "exch"},
  };
  return *families;
}

}  // namespace

std::string MutateMeaning(const std::string& text, std::mt19937& random) {
  const std::vector<std::string> numbers = {"0",    "1",    "2",          "-1",         "16",
                                            "1000", "4096", "2147483647", "-2147483648"};
  std::vector<std::string> values;
  for (const std::string& token : TokensOf(text)) {
    if (token[0] == '%') values.push_back(token);
  }
  const auto pick = [&](const std::vector<std::string>& words) {
    return words[static_cast<size_t>(random()) % words.size()];
  };
  std::string mutated = text;
  size_t changes = 1 + random() % 3;
  for (int tries = 0; changes > 0 && tries < 100; ++tries) {
    Lexer lexer(mutated);
    lexer.Seek(static_cast<size_t>(random()) % mutated.size());
    lexer.Advance();  // the first may begin within a token
    const Token token = lexer.token();
    std::string by;
    if (token.kind == TokenKind::kNumber) by = pick(numbers);
    if (token.kind == TokenKind::kValue) by = pick(values);
    for (const std::vector<std::string>& family : Families()) {
      if (std::find(family.begin(), family.end(), token.text) != family.end()) by = pick(family);
    }
    if (by.empty()) continue;
    mutated.replace(token.begin, token.text.size(), by);
    --changes;
  }
  return mutated;
}

absl::Status CheckParsed(const absl::Status& parsed) {
  if (parsed.ok()) return parsed;
  const bool sentence = !parsed.message().empty() && parsed.message().size() < 1000 &&
                        !absl::StrContains(parsed.message(), '\n');
  if (absl::IsInvalidArgument(parsed) && sentence) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the parser's status is ", parsed.ToString()));
}

}  // namespace tritonrl::ttir
