// Reads inline assembly. A program has registers in an array: 0 is the predicate that is true, then
// come those of the constraints ($0, $1, ...), those that the text declares, and its numbers.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "exec/ttir/run/ptx/program.h"
#include "exec/ttir/run/ptx/text.h"

namespace tritonrl::ttir::ptx {

namespace {

constexpr size_t kMaxInstructions = 512;

absl::Status Refused(absl::string_view what) {
  return absl::InvalidArgumentError(absl::CHexEscape(what.substr(0, 100)));
}

}  // namespace

class Parser {
 public:
  Parser(absl::Span<const int> bits, int results) : results_(results) {
    Add("", 1, true);
    program_.initial_[0] = 1;
    for (size_t i = 0; i < bits.size(); ++i) {
      Add(absl::StrCat("$", i), bits[i], static_cast<int>(i) >= results);
    }
    scopes_.push_back(registers_.size());
  }

  absl::StatusOr<Program> Parse(absl::string_view text) {
    const std::string plain = WithoutComments(text);
    absl::string_view rest = absl::StripAsciiWhitespace(plain);
    while (!rest.empty()) {
      if (rest[0] == '{' || rest[0] == '}') {
        RETURN_IF_ERROR(rest[0] == '{' ? OpenScope() : CloseScope());
        rest = absl::StripAsciiWhitespace(rest.substr(1));
        continue;
      }
      const size_t end = rest.find(';');
      if (end == absl::string_view::npos) return Refused(absl::StrCat("no ; after ", rest));
      RETURN_IF_ERROR(ParseStatement(absl::StripAsciiWhitespace(rest.substr(0, end))));
      rest = absl::StripAsciiWhitespace(rest.substr(end + 1));
    }
    if (scopes_.size() != 1) return Refused("a { without }");
    for (int i = 0; i < results_ && !program_.instructions_.empty(); ++i) {
      const size_t at = Program::kFirstOperand + static_cast<size_t>(i);
      if (!registers_[at].is_written) return Refused(absl::StrCat("nothing writes $", i));
    }
    return std::move(program_);
  }

 private:
  struct Register {
    std::string name;  // empty: none, or out of scope
    int bits = 32;
    bool is_written = false;
  };

  int Add(std::string name, int bits, bool is_written) {
    registers_.push_back({std::move(name), bits, is_written});
    program_.initial_.push_back(0);
    return static_cast<int>(registers_.size()) - 1;
  }
  absl::Status OpenScope() {
    scopes_.push_back(registers_.size());
    return scopes_.size() > 32 ? Refused("too many {") : absl::OkStatus();
  }
  absl::Status CloseScope() {
    if (scopes_.size() == 1) return Refused("a } without {");
    for (size_t i = scopes_.back(); i < registers_.size(); ++i) registers_[i].name.clear();
    scopes_.pop_back();
    return absl::OkStatus();
  }
  int Find(absl::string_view name) const {
    for (size_t i = registers_.size() - 1; i > 0; --i) {
      if (!name.empty() && registers_[i].name == name) return static_cast<int>(i);
    }
    return 0;
  }

  // ".b32 a, b<2>": a, b0, b1
  absl::Status Declare(absl::string_view text) {
    absl::string_view word = TakeWord(&text);
    const bool has_dot = absl::ConsumePrefix(&word, ".");
    const std::optional<Type> type = ParseType(word);
    if (!has_dot || !type.has_value()) return Refused(absl::StrCat(".reg .", word));
    for (absl::string_view name : absl::StrSplit(text, ',')) {
      name = absl::StripAsciiWhitespace(name);
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(name, absl::MaxSplits('<', 1));
      size_t count = 1;
      const bool is_row = parts.first.size() < name.size();
      const bool is_number =
          !is_row || absl::SimpleAtoi(absl::StripSuffix(parts.second, ">"), &count);
      if (parts.first.empty() || !is_number || count > Program::kMaxRegisters ||
          registers_.size() + count > Program::kMaxRegisters) {
        return Refused(absl::StrCat("registers ", name));
      }
      for (size_t i = 0; i < count; ++i) {
        Add(is_row ? absl::StrCat(parts.first, i) : std::string(name), type->width(), false);
      }
    }
    return absl::OkStatus();
  }

  // A register that is read, or a number with as many bits.
  absl::StatusOr<uint16_t> Source(absl::string_view text, const Type& type, int bits,
                                  bool may_be_wider) {
    const int found = Find(text);
    if (found > 0) {
      const Register& source = registers_[static_cast<size_t>(found)];
      if (!source.is_written) return Refused(absl::StrCat(text, " is read before it is written"));
      if (source.bits != bits && (!may_be_wider || source.bits < bits)) {
        return Refused(absl::StrCat(text, " has ", source.bits, " bits and not ", bits));
      }
      return static_cast<uint16_t>(found);
    }
    std::optional<Number> number = ParseNumber(text);
    if (!number.has_value()) return Refused(text);
    if (number->has_point) {
      if (!type.is_float() || bits < 32) return Refused(text);
      number->bits = Encode(type, number->value, Rounding::kNearest);
    }
    if (registers_.size() >= Program::kMaxRegisters) return Refused("too many numbers");
    const int place = Add("", bits, true);
    program_.initial_[static_cast<size_t>(place)] = number->bits & MaskOf(bits);
    return static_cast<uint16_t>(place);
  }

  absl::StatusOr<uint16_t> Target(absl::string_view text, int bits, bool may_be_wider) {
    const int found = Find(text);
    if (found <= 0 || (found >= 1 + results_ && absl::StartsWith(text, "$"))) {
      return Refused(absl::StrCat("a result in ", text));
    }
    Register& target = registers_[static_cast<size_t>(found)];
    if (target.bits != bits && (!may_be_wider || target.bits < bits)) {
      return Refused(absl::StrCat(text, " has ", target.bits, " bits and not ", bits));
    }
    target.is_written = true;
    return static_cast<uint16_t>(found);
  }

  absl::Status Append(Instruction instruction, int out) {
    instruction.out = static_cast<uint16_t>(out);
    instruction.predicate = predicate_;
    instruction.is_negated = is_negated_;
    program_.instructions_.push_back(instruction);
    return program_.instructions_.size() > kMaxInstructions ? Refused("too many instructions")
                                                            : absl::OkStatus();
  }

  absl::Status ParseStatement(absl::string_view text) {
    const absl::string_view all = text;
    if (absl::ConsumePrefix(&text, ".reg")) return Declare(absl::StripAsciiWhitespace(text));
    predicate_ = 0;
    is_negated_ = false;
    if (absl::ConsumePrefix(&text, "@")) {
      is_negated_ = absl::ConsumePrefix(&text, "!");
      Type type;
      type.kind = Kind::kPred;
      ASSIGN_OR_RETURN(predicate_, Source(TakeWord(&text), type, 1, false));
    }
    const absl::string_view name = TakeWord(&text);
    // Programs of a launch begin when those of the launch before have ended.
    if (absl::StartsWith(name, "griddepcontrol.") && text.empty()) return absl::OkStatus();
    const std::vector<absl::string_view> operands = SplitOperands(text);
    const std::optional<Meaning> meaning = MeaningOf(name);
    if (!meaning.has_value() || operands.empty()) return Refused(absl::StrCat("instruction ", all));
    const bool has_vector = absl::StrContains(text, "{");
    const absl::Status status = absl::StartsWith(name, "mov.") && has_vector
                                    ? ParseVectorMove(meaning->instruction, operands)
                                    : ParseInstruction(*meaning, operands);
    if (status.ok()) return status;
    return Refused(absl::StrCat("instruction ", all, " (", status.message(), ")"));
  }

  absl::Status ParseInstruction(const Meaning& meaning,
                                absl::Span<const absl::string_view> operands) {
    Instruction instruction = meaning.instruction;
    const Type& type = instruction.type;
    if (operands.size() != meaning.shape.size()) return Refused("number of operands");
    const auto bits_of = [&](char c) {
      if (c == 't') return type.width();
      if (c == '2') return 2 * type.width();
      return c == 'w' ? 32 : c == 'p' ? 1 : instruction.from.width();
    };
    const bool converts = absl::StrContains(meaning.shape, 'f');
    for (size_t i = 1; i < operands.size(); ++i) {
      const char c = meaning.shape[i];
      ASSIGN_OR_RETURN(
          instruction.in[i - 1],
          Source(operands[i], c == 'f' ? instruction.from : type, bits_of(c), converts));
    }
    instruction.inputs = static_cast<uint8_t>(operands.size() - 1);
    ASSIGN_OR_RETURN(const uint16_t out, Target(operands[0], bits_of(meaning.shape[0]), converts));
    const bool extends = converts && type.kind == Kind::kSigned;
    const int out_bits = registers_[out].bits;
    instruction.out_mask = MaskOf(extends ? out_bits : bits_of(meaning.shape[0]));
    return Append(instruction, out);
  }

  // mov.b32 {a, b}, c and mov.b32 c, {a, b}: the first has the lowest bits.
  absl::Status ParseVectorMove(Instruction instruction,
                               absl::Span<const absl::string_view> operands) {
    const bool unpacks = absl::StartsWith(operands[0], "{");
    if (operands.size() != 2 || absl::StartsWith(operands[1], "{") == unpacks) {
      return Refused("mov of two vectors");
    }
    const int bits = instruction.type.bits;
    absl::string_view list = operands[unpacks ? 0 : 1];
    if (!absl::ConsumePrefix(&list, "{") || !absl::ConsumeSuffix(&list, "}")) return Refused(list);
    const std::vector<absl::string_view> names = SplitOperands(list);
    const auto count = static_cast<int>(names.size());
    if ((count != 2 && count != 4) || bits / count < 8) return Refused(list);
    const int part = bits / count;
    Type type;
    type.bits = part;
    instruction.inputs = static_cast<uint8_t>(unpacks ? 1 : count);
    instruction.number_of_bits = part;
    if (!unpacks) {
      for (int i = 0; i < count; ++i) {
        ASSIGN_OR_RETURN(instruction.in[i],
                         Source(names[static_cast<size_t>(i)], type, part, false));
      }
      instruction.run = [](const Instruction& self, const uint64_t* in) {
        uint64_t all = 0;
        for (int i = 0; i < self.inputs; ++i) all |= in[i] << (i * self.number_of_bits);
        return all;
      };
      ASSIGN_OR_RETURN(const uint16_t out, Target(operands[0], bits, false));
      instruction.out_mask = MaskOf(bits);
      return Append(instruction, out);
    }
    ASSIGN_OR_RETURN(instruction.in[0], Source(operands[1], instruction.type, bits, false));
    instruction.run = [](const Instruction& self, const uint64_t* in) {
      return in[0] >> self.number_of_bits;
    };
    instruction.out_mask = MaskOf(part);
    for (int i = 0; i < count; ++i) {
      instruction.number_of_bits = i * part;
      ASSIGN_OR_RETURN(const uint16_t out, Target(names[static_cast<size_t>(i)], part, false));
      RETURN_IF_ERROR(Append(instruction, out));
    }
    return absl::OkStatus();
  }

  Program program_;
  std::vector<Register> registers_;
  std::vector<size_t> scopes_;  // the number of registers before each
  int results_;
  uint16_t predicate_ = 0;
  bool is_negated_ = false;
};

absl::StatusOr<Program> Program::Parse(absl::string_view text, absl::string_view constraints,
                                       absl::Span<const int> bits, int results) {
  std::vector<std::string> names;
  for (const absl::string_view part : absl::StrSplit(constraints, ',')) {
    const absl::string_view name = absl::StripAsciiWhitespace(part);
    if (!absl::StartsWith(name, "~")) names.emplace_back(name);
  }
  if (names.size() != bits.size() || bits.size() >= Program::kMaxRegisters) {
    return Refused(absl::StrCat("constraints ", constraints));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    absl::string_view name = names[i];
    const bool is_result = static_cast<int>(i) < results;
    if (is_result && !absl::ConsumePrefix(&name, "=")) return Refused(names[i]);
    if (is_result) absl::ConsumePrefix(&name, "&");
    const int has = name == "h"                  ? 16
                    : name == "r" || name == "f" ? 32
                    : name == "l" || name == "d" ? 64
                                                 : 0;
    // The upper bits of a wider register are not defined; those of a result do not matter.
    if (has < bits[i] || (has > bits[i] && !is_result)) {
      return Refused(absl::StrCat("constraint ", names[i], " of ", bits[i], " bits"));
    }
  }
  std::vector<int> registers(bits.begin(), bits.end());
  for (size_t i = 0; i < names.size() && static_cast<int>(i) < results; ++i) {
    registers[i] = absl::EndsWith(names[i], "h")                                    ? 16
                   : absl::EndsWith(names[i], "l") || absl::EndsWith(names[i], "d") ? 64
                                                                                    : 32;
  }
  return Parser(registers, results).Parse(text);
}

void Program::Run(uint64_t* registers) const {
  for (const Instruction& instruction : instructions_) {
    if ((registers[instruction.predicate] != 0) == instruction.is_negated) continue;
    const uint64_t in[4] = {registers[instruction.in[0]], registers[instruction.in[1]],
                            registers[instruction.in[2]], registers[instruction.in[3]]};
    registers[instruction.out] = instruction.run(instruction, in) & instruction.out_mask;
  }
}

}  // namespace tritonrl::ttir::ptx
