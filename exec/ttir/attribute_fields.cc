#include "exec/ttir/attribute_fields.h"

#include <limits>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "exec/ttir/limits.h"

namespace tritonrl::ttir {

namespace {

using Kind = Attribute::Kind;

// A field that holds a word: the generic form prints its number.
struct WordField {
  const char* name;
  EnumKind kind;
  void (*set)(Attributes&, int);
};

constexpr WordField kWordFields[] = {
    {"atomic_rmw_op", EnumKind::kAtomicKind,
     [](Attributes& a, int v) { a.atomic = static_cast<AtomicKind>(v); }},
    {"reduce_kind", EnumKind::kReduceKind,
     [](Attributes& a, int v) { a.reduce = static_cast<ReduceKind>(v); }},
    {"kind", EnumKind::kReduceKind,
     [](Attributes& a, int v) { a.reduce = static_cast<ReduceKind>(v); }},
    {"sem", EnumKind::kMemorySemantic,
     [](Attributes& a, int v) { a.semantic = static_cast<MemorySemantic>(v); }},
    {"scope", EnumKind::kMemoryScope,
     [](Attributes& a, int v) { a.scope = static_cast<MemoryScope>(v); }},
    {"cache", EnumKind::kCacheModifier,
     [](Attributes& a, int v) { a.cache = static_cast<CacheModifier>(v); }},
    {"evict", EnumKind::kEvictionPolicy,
     [](Attributes& a, int v) { a.eviction = static_cast<EvictionPolicy>(v); }},
    {"padding", EnumKind::kPadding,
     [](Attributes& a, int v) { a.padding = static_cast<Padding>(v); }},
    {"rounding", EnumKind::kRounding,
     [](Attributes& a, int v) { a.rounding = static_cast<Rounding>(v); }},
    {"propagateNan", EnumKind::kPropagateNan,
     [](Attributes& a, int v) { a.propagate_nan = static_cast<PropagateNan>(v); }},
    {"inputPrecision", EnumKind::kInputPrecision,
     [](Attributes& a, int v) { a.precision = static_cast<InputPrecision>(v); }},
    {"a_elem_type", EnumKind::kScaledElement,
     [](Attributes& a, int v) { a.left_element = static_cast<ScaledElement>(v); }},
    {"b_elem_type", EnumKind::kScaledElement,
     [](Attributes& a, int v) { a.right_element = static_cast<ScaledElement>(v); }},
};

struct IntegerField {
  const char* name;
  int32_t Attributes::*field;
};
constexpr IntegerField kIntegerFields[] = {
    {"axis", &Attributes::axis},
    {"start", &Attributes::start},
    {"end", &Attributes::end},
    {"packed_element", &Attributes::packed_elements},
    {"pack", &Attributes::packed_elements},
    {"maxNumImpreciseAcc", &Attributes::max_imprecise_acc},
};

struct FlagField {
  const char* name;
  uint32_t flag;  // 0: has no effect on a result
};
constexpr FlagField kFlagFields[] = {
    {"isVolatile", kVolatile},
    {"reverse", kReverse},
    {"allow_reorder", kAllowReorder},
    {"efficient_layout", 0},
    {"pure", kPure},
    {"hex", kHex},
    {"unsignedCmp", kUnsignedCompare},
    {"nonNeg", kNonNegative},
    {"fastMath", kFastMath},
    {"lhs_k_pack", kLeftKPack},
    {"rhs_k_pack", kRightKPack},
};

struct TextField {
  const char* name;
  std::string Attributes::*field;
};
constexpr TextField kTextFields[] = {
    {"text", &Attributes::text},       {"asm_string", &Attributes::text},
    {"message", &Attributes::text},    {"prefix", &Attributes::text},
    {"symbol", &Attributes::symbol},   {"callee", &Attributes::symbol},
    {"libname", &Attributes::library}, {"constraints", &Attributes::constraints},
};

// A path of the producer's machine, and a property without operands here.
constexpr absl::string_view kIgnored[] = {"libpath", "op_bundle_sizes", "op_bundle_tags"};

struct ListField {
  const char* name;
  absl::InlinedVector<int32_t, 4> Attributes::*field;
};
constexpr ListField kListFields[] = {
    {"order", &Attributes::order},
    {"boundaryCheck", &Attributes::boundary_check},
    {"isSigned", &Attributes::is_signed},
};

std::optional<EnumKind> PredicateKind(const Operation& operation) {
  if (operation.opcode == Opcode::kCmpI) return EnumKind::kIntPredicate;
  if (operation.opcode == Opcode::kCmpF) return EnumKind::kFloatPredicate;
  return std::nullopt;
}

bool FitsInt32(int64_t value) {
  return value >= std::numeric_limits<int32_t>::min() &&
         value <= std::numeric_limits<int32_t>::max();
}

bool ApplyInteger(const NamedAttribute& named, Operation& operation) {
  const int64_t value = named.value.integer;
  Attributes& attributes = operation.attributes;
  if (named.name == "predicate") {
    const auto kind = PredicateKind(operation);
    if (!kind.has_value() || !IsEnumValue(*kind, value)) return false;
    attributes.predicate = static_cast<uint8_t>(value);
    return true;
  }
  for (const WordField& field : kWordFields) {
    if (named.name != field.name) continue;
    if (!IsEnumValue(field.kind, value)) return false;
    field.set(attributes, static_cast<int>(value));
    return true;
  }
  for (const FlagField& field : kFlagFields) {
    if (named.name != field.name) continue;
    attributes.flags = value != 0 ? attributes.flags | field.flag : attributes.flags & ~field.flag;
    return true;
  }
  for (const IntegerField& field : kIntegerFields) {
    if (named.name != field.name || !FitsInt32(value)) continue;
    attributes.*field.field = static_cast<int32_t>(value);
    return true;
  }
  return false;
}

bool ApplyText(const NamedAttribute& named, Operation& operation) {
  for (const TextField& field : kTextFields) {
    if (named.name != field.name) continue;
    operation.attributes.*field.field = named.value.text;
    return true;
  }
  return false;
}

bool ApplyList(const NamedAttribute& named, Operation& operation, std::vector<int64_t>* segments) {
  if (named.name == "operandSegmentSizes") {
    if (segments != nullptr) *segments = named.value.integers;
    return segments != nullptr;
  }
  for (const ListField& field : kListFields) {
    if (named.name != field.name) continue;
    auto& list = operation.attributes.*field.field;
    list.clear();
    for (const int64_t value : named.value.integers) {
      if (!FitsInt32(value)) return false;
      list.push_back(static_cast<int32_t>(value));
    }
    return true;
  }
  return false;
}

bool ApplyConstant(const NamedAttribute& named, Module& module, Operation& operation) {
  if (operation.opcode != Opcode::kConstant) return false;
  operation.attributes.constant = static_cast<int32_t>(module.constants.size());
  module.constants.push_back({named.value.type, named.value.bits});
  return true;
}

bool ApplyOne(const NamedAttribute& named, Module& module, Operation& operation,
              std::vector<int64_t>* segments) {
  for (const absl::string_view name : kIgnored) {
    if (named.name == name) return true;
  }
  switch (named.value.kind) {
    case Kind::kUnit: {
      NamedAttribute flag = named;
      flag.value.integer = 1;
      for (const FlagField& field : kFlagFields) {
        if (named.name == field.name) return ApplyInteger(flag, operation);
      }
      return false;
    }
    case Kind::kInteger:
      return ApplyInteger(named, operation);
    case Kind::kString:
    case Kind::kSymbol:
      return ApplyText(named, operation);
    case Kind::kIntegers:
      return ApplyList(named, operation, segments);
    case Kind::kWord:
      return ApplyFlagWords(named.name, named.value.text, operation);
    case Kind::kConstant:
      return ApplyConstant(named, module, operation);
    default:
      return false;
  }
}

}  // namespace

int32_t AddHints(const AttributeList& list, Module& module) {
  Hints hints;
  for (const NamedAttribute& named : list) {
    std::vector<int64_t>* field = named.name == "tt.divisibility" ? &hints.divisibility
                                  : named.name == "tt.contiguity" ? &hints.contiguity
                                  : named.name == "tt.constancy"  ? &hints.constancy
                                                                  : nullptr;
    if (field == nullptr) continue;
    if (named.value.kind == Kind::kInteger) *field = {named.value.integer};
    if (named.value.kind == Kind::kIntegers) *field = named.value.integers;
  }
  if (hints.divisibility.empty() && hints.contiguity.empty() && hints.constancy.empty()) return -1;
  module.hints.push_back(std::move(hints));
  return static_cast<int32_t>(module.hints.size() - 1);
}

absl::Status ApplyAttributes(const Lexer& lexer, const AttributeList& list, Module& module,
                             Operation& operation, std::vector<int64_t>* segments) {
  if (list.empty()) return absl::OkStatus();
  const int32_t hints = AddHints(list, module);
  if (hints >= 0) operation.attributes.hints = hints;
  for (const NamedAttribute& named : list) {
    if (named.name.find('.') != std::string::npos) continue;
    if (ApplyOne(named, module, operation, segments)) continue;
    return lexer.ErrorAt(named.value.begin,
                         absl::StrCat(OpcodeName(operation.opcode), " has an attribute \"",
                                      absl::CHexEscape(named.name.substr(0, 40)),
                                      "\" that is unknown or has a wrong value"));
  }
  return absl::OkStatus();
}

bool ApplyWord(absl::string_view name, absl::string_view word, Operation& operation) {
  if (name == "predicate") {
    const auto kind = PredicateKind(operation);
    const auto value = kind.has_value() ? FindEnumWord(*kind, word) : std::nullopt;
    if (!value.has_value()) return false;
    operation.attributes.predicate = static_cast<uint8_t>(*value);
    return true;
  }
  if (name == "axis") {
    const auto value = FindEnumWord(EnumKind::kProgramAxis, word);
    operation.attributes.axis = value.value_or(0);
    return value.has_value();
  }
  for (const WordField& field : kWordFields) {
    if (name != field.name) continue;
    const auto value = FindEnumWord(field.kind, word);
    if (value.has_value()) field.set(operation.attributes, *value);
    return value.has_value();
  }
  return false;
}

bool ApplyFlagWords(absl::string_view name, absl::string_view words, Operation& operation) {
  uint32_t& flags = operation.attributes.flags;
  for (const absl::string_view word : absl::StrSplit(words, ',')) {
    if (name == "fastmath") {
      static constexpr absl::string_view kWords[] = {"reassoc", "nnan",     "ninf", "nsz",
                                                     "arcp",    "contract", "afn",  "fast"};
      bool known = word == "none";
      for (const absl::string_view flag : kWords) {
        if (word == flag) {
          known = true;
          flags |= kFastMath;
        }
      }
      if (!known) return false;
    } else if (name == "overflow" || name == "overflowFlags") {
      if (word == "nsw") flags |= kNoSignedWrap;
      if (word == "nuw") flags |= kNoUnsignedWrap;
      if (word != "nsw" && word != "nuw" && word != "none") return false;
    } else if (name == "roundingmode") {
      if (word != "to_nearest_even" && word != "toward_zero") return false;
      operation.attributes.rounding =
          word == "toward_zero" ? Rounding::kTowardZero : Rounding::kNearestEven;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace tritonrl::ttir
