// The table of PTX instructions.
#include "exec/ttir/run/ptx/instructions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "exec/ttir/run/ptx/functions.h"

namespace tritonrl::ttir::ptx {

namespace {

// 0 if there is no such comparison.
int RelationsOf(absl::string_view name) {
  static constexpr std::pair<absl::string_view, int> kNames[] = {{"eq", kEqual},
                                                                 {"ne", kLess | kGreater},
                                                                 {"lt", kLess},
                                                                 {"le", kLess | kEqual},
                                                                 {"gt", kGreater},
                                                                 {"ge", kGreater | kEqual},
                                                                 {"lo", kLess},
                                                                 {"ls", kLess | kEqual},
                                                                 {"hi", kGreater},
                                                                 {"hs", kGreater | kEqual},
                                                                 {"num", kLess | kEqual | kGreater},
                                                                 {"nan", kUnordered}};
  const bool unordered = name.size() == 3 && absl::ConsumeSuffix(&name, "u");
  for (const auto& [known, relations] : kNames) {
    if (known == name) return relations | (unordered ? kUnordered : 0);
  }
  return 0;
}

struct Entry {
  absl::string_view name;
  absl::string_view shape;      // Meaning::shape
  absl::string_view types;      // b, u, s, f32, double, half or bf16, predicate
  absl::string_view modifiers;  // that it may have
  FloatFunction number;
  Function run;
};

constexpr Entry kEntries[] = {
    {"add", "ttt", "fdh", "rn ftz", [](double a, double b, double) { return a + b; }, Float},
    {"sub", "ttt", "fdh", "rn ftz", [](double a, double b, double) { return a - b; }, Float},
    {"mul", "ttt", "fdh", "rn ftz", [](double a, double b, double) { return a * b; }, Float},
    {"div", "ttt", "f", "rn full approx ftz", [](double a, double b, double) { return a / b; },
     Float},
    {"max", "ttt", "fdh", "ftz NaN", [](double a, double b, double) { return Largest(a, b); },
     Float},
    {"min", "ttt", "fdh", "ftz NaN", [](double a, double b, double) { return -Largest(-a, -b); },
     Float},
    {"rcp", "tt", "f", "rn approx ftz", [](double a, double, double) { return 1 / a; }, Float},
    {"sqrt", "tt", "f", "rn approx ftz", [](double a, double, double) { return std::sqrt(a); },
     Float},
    {"rsqrt", "tt", "f", "approx ftz", [](double a, double, double) { return 1 / std::sqrt(a); },
     Float},
    {"ex2", "tt", "fh", "approx ftz", [](double a, double, double) { return std::exp2(a); }, Float},
    {"lg2", "tt", "f", "approx ftz", [](double a, double, double) { return std::log2(a); }, Float},
    {"sin", "tt", "f", "approx ftz", [](double a, double, double) { return std::sin(a); }, Float},
    {"cos", "tt", "f", "approx ftz", [](double a, double, double) { return std::cos(a); }, Float},
    {"tanh", "tt", "fh", "approx", [](double a, double, double) { return std::tanh(a); }, Float},
    {"fma", "tttt", "fdh", "rn ftz", nullptr, Float},
    {"abs", "tt", "fdh", "", nullptr,
     [](Self self, In in) {
       return ForEach(self, in, [&](In x) { return x[0] & ~SignOf(self); });
     }},
    {"neg", "tt", "fdh", "", nullptr,
     [](Self self, In in) { return ForEach(self, in, [&](In x) { return x[0] ^ SignOf(self); }); }},
    {"copysign", "ttt", "fd", "", nullptr,
     [](Self self, In in) { return (in[1] & ~SignOf(self)) | (in[0] & SignOf(self)); }},
    {"add", "ttt", "us", "", nullptr, [](Self, In in) { return in[0] + in[1]; }},
    {"sub", "ttt", "us", "", nullptr, [](Self, In in) { return in[0] - in[1]; }},
    {"mul.lo", "ttt", "us", "", nullptr, [](Self, In in) { return in[0] * in[1]; }},
    {"mul.hi", "ttt", "us", "", nullptr, HighProduct},
    {"mul.wide", "2tt", "us", "", nullptr, WideProduct},
    {"mad.lo", "tttt", "us", "", nullptr, [](Self, In in) { return in[0] * in[1] + in[2]; }},
    {"mad.hi", "tttt", "us", "", nullptr,
     [](Self self, In in) { return HighProduct(self, in) + in[2]; }},
    {"mad.wide", "2tt2", "us", "", nullptr,
     [](Self self, In in) { return WideProduct(self, in) + in[2]; }},
    {"min", "ttt", "us", "", nullptr,
     [](Self self, In in) { return IsLess(self, in) ? in[0] : in[1]; }},
    {"max", "ttt", "us", "", nullptr,
     [](Self self, In in) { return IsLess(self, in) ? in[1] : in[0]; }},
    {"abs", "tt", "s", "", nullptr,
     [](Self self, In in) { return (in[0] & SignOf(self)) != 0 ? 0 - in[0] : in[0]; }},
    {"neg", "tt", "s", "", nullptr, [](Self, In in) { return 0 - in[0]; }},
    {"and", "ttt", "bp", "", nullptr, [](Self, In in) { return in[0] & in[1]; }},
    {"or", "ttt", "bp", "", nullptr, [](Self, In in) { return in[0] | in[1]; }},
    {"xor", "ttt", "bp", "", nullptr, [](Self, In in) { return in[0] ^ in[1]; }},
    {"not", "tt", "bp", "", nullptr, [](Self, In in) { return ~in[0]; }},
    {"shl", "ttw", "b", "", nullptr, ShiftLeft},
    {"shr", "ttw", "bus", "", nullptr, ShiftRight},
    {"popc", "wt", "b", "", nullptr,
     [](Self, In in) { return static_cast<uint64_t>(std::popcount(in[0])); }},
    {"clz", "wt", "b", "", nullptr,
     [](Self self, In in) {
       return static_cast<uint64_t>(std::countl_zero(in[0]) - 64 + self.type.bits);
     }},
    {"bfe", "ttww", "us", "", nullptr, ExtractField},
    {"bfi", "tttww", "b", "", nullptr, InsertField},
    {"lop3", "ttttw", "b", "", nullptr, Lookup},
    {"prmt", "tttt", "b", "", nullptr, PermuteBytes},
    {"shf.l", "tttt", "b", "wrap clamp", nullptr, FunnelLeft},
    {"shf.r", "tttt", "b", "wrap clamp", nullptr, FunnelRight},
    {"mov", "tt", "busfdp", "", nullptr, [](Self, In in) { return in[0]; }},
    {"selp", "tttp", "busfd", "", nullptr, [](Self, In in) { return in[2] != 0 ? in[0] : in[1]; }},
    {"setp", "ptt", "busfdh", "ftz", nullptr, Compare},
    {"cvt", "tf", "", "rn rz rna rni rzi rmi rpi ftz sat satfinite relu", nullptr, Convert},
};

char LetterOf(const Type& type) {
  if (type.kind == Kind::kFloat) return type.bits == 32 ? 'f' : type.bits == 64 ? 'd' : 'h';
  switch (type.kind) {
    case Kind::kPred:
      return 'p';
    case Kind::kBits:
      return 'b';
    case Kind::kUnsigned:
      return 'u';
    case Kind::kSigned:
      return 's';
    default:
      return type.kind == Kind::kBFloat ? 'h' : '?';
  }
}

void Modify(absl::string_view modifier, Instruction* instruction) {
  if (modifier == "ftz") instruction->flushes = true;
  if (absl::StartsWith(modifier, "sat") || modifier == "clamp") instruction->saturates = true;
  if (modifier == "relu") instruction->relu = true;
  if (modifier == "NaN") instruction->keeps_nan = true;
  if (absl::StartsWith(modifier, "rz")) instruction->rounding = Rounding::kToZero;
  if (modifier == "rmi") instruction->rounding = Rounding::kDown;
  if (modifier == "rpi") instruction->rounding = Rounding::kUp;
  if (modifier == "rna") instruction->rounding = Rounding::kNearestAway;
  if (modifier.size() == 3 && modifier[2] == 'i') instruction->integral = true;
}

// What is left of the rules where the table's line fits: there are no such instructions, or
// subnormal numbers are not those of f32.
bool IsMissing(const Entry& entry, const Instruction& instruction) {
  const Type& type = instruction.type;
  const bool is_bits = absl::StrContains(" lop3 prmt shf.l shf.r ", entry.name);
  if (is_bits) return type.bits != 32;
  if (entry.name == "bfe" || entry.name == "bfi" || entry.name == "popc" || entry.name == "clz") {
    return type.bits < 32;
  }
  if (entry.shape[0] == '2') return type.bits == 64;
  if (entry.name == "setp" && type.is_pair) return true;
  return instruction.flushes && entry.name != "cvt" && type.bits == 16 && type.kind == Kind::kFloat;
}

}  // namespace

std::optional<Meaning> MeaningOf(absl::string_view name) {
  std::vector<absl::string_view> modifiers = absl::StrSplit(name, '.');
  std::vector<Type> types;
  while (modifiers.size() > 1 && ParseType(modifiers.back()).has_value()) {
    types.push_back(*ParseType(modifiers.back()));
    modifiers.pop_back();
  }
  const bool converts = modifiers[0] == "cvt";
  if (types.size() != (converts ? 2 : 1)) return std::nullopt;
  for (const Entry& entry : kEntries) {
    const bool fits = name.size() > entry.name.size() && absl::StartsWith(name, entry.name) &&
                      name[entry.name.size()] == '.';
    if (!fits || (!converts &&
                  (types[0].bits == 8 || !absl::StrContains(entry.types, LetterOf(types[0]))))) {
      continue;
    }
    Meaning meaning;
    Instruction& instruction = meaning.instruction;
    instruction.run = entry.run;
    instruction.number = entry.number;
    instruction.type = types.back();
    instruction.from = types.front();
    if (entry.name == "fma") instruction.number = MultiplyAddOf(types[0]);
    meaning.shape = entry.shape;
    const auto words = std::count(entry.name.begin(), entry.name.end(), '.') + 1;
    modifiers.erase(modifiers.begin(), modifiers.begin() + words);
    if (entry.name == "setp") {
      instruction.number_of_bits = modifiers.empty() ? 0 : RelationsOf(modifiers[0]);
      if (instruction.number_of_bits == 0) return std::nullopt;
      modifiers.erase(modifiers.begin());
    }
    const std::vector<absl::string_view> allowed =
        absl::StrSplit(entry.modifiers, ' ', absl::SkipEmpty());
    bool rounds = false;
    for (const absl::string_view modifier : modifiers) {
      if (std::find(allowed.begin(), allowed.end(), modifier) == allowed.end()) return std::nullopt;
      Modify(modifier, &instruction);
      rounds = rounds || (modifier[0] == 'r' && modifier != "relu");
    }
    if (IsMissing(entry, instruction)) return std::nullopt;
    if (converts) {
      if (!IsConversion(instruction, rounds)) return std::nullopt;
      if (instruction.type.is_pair && !instruction.from.is_pair) meaning.shape = "tff";
    }
    return meaning;
  }
  return std::nullopt;
}

}  // namespace tritonrl::ttir::ptx
