// Parses attributes (attribute_parser.cc) and locations (location_parser.cc).
#ifndef TRITONRL_EXEC_TTIR_ATTRIBUTE_PARSER_H_
#define TRITONRL_EXEC_TTIR_ATTRIBUTE_PARSER_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "exec/ttir/lexer.h"
#include "exec/ttir/location.h"
#include "exec/ttir/type_parser.h"
#include "exec/ttir/types.h"

namespace tritonrl::ttir {

struct NamedAttribute;

// A value of any attribute, before its kind is checked against the attribute's name.
struct Attribute {
  enum class Kind : uint8_t {
    kUnit,          // a name alone
    kInteger,       // `1 : i32`, also true and false
    kString,        //
    kSymbol,        // @name: `text`
    kIntegers,      // array<i32: 1, 0>, dense<...> of integers in a hint: `integers`
    kWord,          // #arith.fastmath<fast>: `text` is what is in the brackets
    kConstant,      // the value of arith.constant: `type` and `bits`
    kFunctionType,  //
    kList,          // of dictionaries: `elements`
    kDictionary,    // `entries`
    kOther,         // a float, type or other list, which no operation here needs
  };
  Kind kind = Kind::kUnit;
  int64_t integer = 0;
  std::string text;
  std::vector<int64_t> integers;
  Type type;
  std::vector<uint64_t> bits;
  FunctionType function_type;
  std::vector<Attribute> elements;
  std::vector<NamedAttribute> entries;
  size_t begin = 0;  // offset in the text
};

struct NamedAttribute {
  std::string name;
  Attribute value;
};
using AttributeList = std::vector<NamedAttribute>;

// `{name = value, name, ...}`.
absl::StatusOr<AttributeList> ParseAttributes(Lexer& lexer);

// One value.
absl::StatusOr<Attribute> ParseAttribute(Lexer& lexer);

// Parses locations and keeps the aliases (#loc7).
class LocationParser {
 public:
  explicit LocationParser(LocationTable* table) : table_(*table) {}

  // Reads all lines `#loc7 = loc(...)`, wherever they are.
  absl::Status ParseAliases(absl::string_view text);

  // `loc(...)` if it is there, else kUnknownLocation.
  absl::StatusOr<LocationId> ParseOptional(Lexer& lexer);

 private:
  absl::StatusOr<LocationId> ParseBody(Lexer& lexer, int depth);
  absl::StatusOr<LocationId> ParseString(Lexer& lexer, int depth);
  absl::StatusOr<LocationId> ParseFused(Lexer& lexer, int depth);
  LocationId AliasOf(absl::string_view name);

  LocationTable& table_;
  absl::flat_hash_map<std::string, LocationId> aliases_;
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_ATTRIBUTE_PARSER_H_
