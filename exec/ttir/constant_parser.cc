#include "exec/ttir/constant_parser.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/ttir/limits.h"

namespace tritonrl::ttir {

namespace {

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  enum class Special { kIeee, kFiniteNan, kUnsignedZero } special;
};

FloatFormat FormatOf(ScalarKind kind) {
  using Special = FloatFormat::Special;
  switch (kind) {
    case ScalarKind::kF8E4M3FN:
      return {4, 3, 7, Special::kFiniteNan};
    case ScalarKind::kF8E5M2:
      return {5, 2, 15, Special::kIeee};
    case ScalarKind::kF8E4M3FNUZ:
      return {4, 3, 8, Special::kUnsignedZero};
    case ScalarKind::kF8E5M2FNUZ:
      return {5, 2, 16, Special::kUnsignedZero};
    case ScalarKind::kF8E4M3B11FNUZ:
      return {4, 3, 11, Special::kUnsignedZero};
    case ScalarKind::kBF16:
      return {8, 7, 127, Special::kIeee};
    default:
      return {5, 10, 15, Special::kIeee};  // f16
  }
}

uint64_t EncodeSmallFloat(double value, const FloatFormat& format) {
  using Special = FloatFormat::Special;
  const uint64_t sign = std::signbit(value) ? 1 : 0;
  const int width = format.exponent_bits + format.mantissa_bits;
  const uint64_t top = (uint64_t{1} << format.exponent_bits) - 1;
  const uint64_t ones = (uint64_t{1} << format.mantissa_bits) - 1;
  const uint64_t infinity = top << format.mantissa_bits;
  if (format.special == Special::kUnsignedZero && value == 0) return 0;
  const uint64_t nan = format.special == Special::kIeee
                           ? (infinity | (uint64_t{1} << (format.mantissa_bits - 1)))
                       : format.special == Special::kFiniteNan ? (infinity | ones)
                                                               : (uint64_t{1} << width);
  const uint64_t overflow = format.special == Special::kIeee        ? (sign << width | infinity)
                            : format.special == Special::kFiniteNan ? (sign << width | nan)
                                                                    : nan;
  if (std::isnan(value)) return nan;
  if (std::isinf(value)) return overflow;
  const double magnitude = std::abs(value);
  const int exponent = magnitude == 0 ? 1 - format.bias : std::ilogb(magnitude);
  const int scale = std::max(exponent, 1 - format.bias) - format.mantissa_bits;
  // The quotient is exact, so that nearbyint does the only rounding (to nearest even). A carry
  // into the next exponent comes out right by the addition.
  const auto units = static_cast<uint64_t>(std::nearbyint(std::ldexp(magnitude, -scale)));
  const int64_t biased = scale + format.mantissa_bits + format.bias - 1;
  const uint64_t bits = (static_cast<uint64_t>(biased) << format.mantissa_bits) + units;
  const uint64_t largest = format.special == Special::kIeee        ? infinity - 1
                           : format.special == Special::kFiniteNan ? (infinity | ones) - 1
                                                                   : (infinity | ones);
  if (bits > largest) return overflow;
  if (format.special == Special::kUnsignedZero && bits == 0) return 0;
  return sign << width | bits;
}

std::optional<uint64_t> EncodeInteger(absl::string_view text, int width) {
  const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  if (text == "true") return 1;
  if (text == "false") return 0;
  if (!text.empty() && text[0] == '-') {
    int64_t value = 0;
    if (!absl::SimpleAtoi(text, &value)) return std::nullopt;
    if (value < -static_cast<int64_t>(mask >> 1) - 1) return std::nullopt;
    return static_cast<uint64_t>(value) & mask;
  }
  uint64_t value = 0;
  const bool read = absl::StartsWith(text, "0x") ? absl::SimpleHexAtoi(text, &value)
                                                 : absl::SimpleAtoi(text, &value);
  if (!read || value > mask) return std::nullopt;
  return value;
}

// The elements of one dense<...>, nested lists flattened.
struct Elements {
  std::vector<std::string> numbers;
  bool is_list = false;
  std::string raw;  // of dense<"0x...">
};

absl::Status ParseElements(Lexer& lexer, int depth, Elements* elements) {
  if (depth > kMaxRank) return lexer.Error("a dense value is nested too deeply");
  if (lexer.Accept("[")) {
    elements->is_list = true;
    do {
      RETURN_IF_ERROR(ParseElements(lexer, depth + 1, elements));
    } while (lexer.Accept(","));
    return lexer.Expect("]");
  }
  const bool number = lexer.token().kind == TokenKind::kNumber;
  if (!number && !lexer.Is("true") && !lexer.Is("false")) return lexer.Expected("a number");
  if (elements->numbers.size() >= (size_t{1} << kMaxLog2Elements)) {
    return lexer.Error("a dense value has too many elements");
  }
  elements->numbers.emplace_back(lexer.token().text);
  lexer.Advance();
  return absl::OkStatus();
}

// Bits of a hexadecimal string with the elements' bytes, little-endian; i1 is packed, which Triton
// does not print.
std::optional<std::vector<uint64_t>> DecodeRaw(absl::string_view hex, const Type& type) {
  if (!absl::StartsWith(hex, "0x") || type.is(ScalarKind::kI1)) return std::nullopt;
  hex.remove_prefix(2);
  if (hex.size() % 2 != 0 ||
      !std::all_of(hex.begin(), hex.end(), [](char c) { return absl::ascii_isxdigit(c); })) {
    return std::nullopt;
  }
  const std::string bytes = absl::HexStringToBytes(hex);
  const size_t width = StorageBytes(type.element());
  const size_t count = static_cast<size_t>(type.elements());
  if (bytes.size() != width * count && bytes.size() != width) return std::nullopt;
  std::vector<uint64_t> bits(bytes.size() / width);
  for (size_t i = 0; i < bits.size(); ++i) {
    for (size_t byte = 0; byte < width; ++byte) {
      bits[i] |= uint64_t{static_cast<uint8_t>(bytes[i * width + byte])} << (8 * byte);
    }
  }
  return bits;
}

absl::StatusOr<Attribute> ParseDense(Lexer& lexer) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::kConstant;
  attribute.begin = lexer.token().begin;
  lexer.Advance();
  RETURN_IF_ERROR(lexer.Expect("<"));
  Elements elements;
  const bool raw = lexer.token().kind == TokenKind::kString;
  if (raw) {
    ASSIGN_OR_RETURN(elements.raw, lexer.String());
  } else {
    RETURN_IF_ERROR(ParseElements(lexer, 0, &elements));
  }
  RETURN_IF_ERROR(lexer.Expect(">"));
  RETURN_IF_ERROR(lexer.Expect(":"));
  ASSIGN_OR_RETURN(attribute.type, ParseType(lexer));
  const Type& type = attribute.type;
  const auto misfit = [&] {
    return lexer.ErrorAt(attribute.begin,
                         absl::StrCat("a dense value does not fit its type ", type.ToString()));
  };
  if (!type.is_integer() && !type.is_float()) return misfit();
  if (raw) {
    auto bits = DecodeRaw(elements.raw, type);
    if (!bits.has_value()) return misfit();
    attribute.bits = *std::move(bits);
    return attribute;
  }
  const bool complete = static_cast<int64_t>(elements.numbers.size()) == type.elements();
  if (!complete && (elements.is_list || elements.numbers.size() != 1)) return misfit();
  for (const std::string& number : elements.numbers) {
    const std::optional<uint64_t> bits = EncodeNumber(number, type.element());
    if (!bits.has_value()) return misfit();
    attribute.bits.push_back(*bits);
  }
  return attribute;
}

}  // namespace

uint64_t EncodeFloat(double value, ScalarKind kind) {
  if (kind == ScalarKind::kF64) return std::bit_cast<uint64_t>(value);
  if (kind == ScalarKind::kF32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  return EncodeSmallFloat(value, FormatOf(kind));
}

std::optional<uint64_t> EncodeNumber(absl::string_view text, ScalarKind kind) {
  if (IsInteger(kind)) return EncodeInteger(text, BitWidth(kind));
  if (absl::StartsWith(text, "0x")) return EncodeInteger(text, BitWidth(kind));
  double value = 0;
  if (text == "true" || text == "false" || !absl::SimpleAtod(text, &value)) return std::nullopt;
  return EncodeFloat(value, kind);
}

absl::StatusOr<Attribute> ParseConstant(Lexer& lexer) {
  if (lexer.Is("dense")) return ParseDense(lexer);
  Attribute attribute;
  attribute.kind = Attribute::Kind::kConstant;
  attribute.begin = lexer.token().begin;
  const std::string number(lexer.token().text);
  const bool boolean = lexer.Is("true") || lexer.Is("false");
  if (!boolean && lexer.token().kind != TokenKind::kNumber) return lexer.Expected("a constant");
  lexer.Advance();
  attribute.type = Type::Scalar(ScalarKind::kI1);
  if (!boolean) {
    RETURN_IF_ERROR(lexer.Expect(":"));
    ASSIGN_OR_RETURN(attribute.type, ParseType(lexer));
  }
  const Type& type = attribute.type;
  std::optional<uint64_t> bits;
  if (type.is_scalar() && type.pointer_levels() == 0) bits = EncodeNumber(number, type.element());
  if (!bits.has_value()) {
    return lexer.ErrorAt(attribute.begin,
                         absl::StrCat("a constant does not fit its type ", type.ToString()));
  }
  attribute.bits.push_back(*bits);
  return attribute;
}

}  // namespace tritonrl::ttir
