#include <string>
#include <vector>

#include "base/status.h"
#include "exec/ttir/attribute_parser.h"
#include "exec/ttir/limits.h"

namespace tritonrl::ttir {

LocationId LocationParser::AliasOf(absl::string_view name) {
  const auto [entry, is_new] = aliases_.try_emplace(name, kUnknownLocation);
  if (is_new) entry->second = table_.AddAlias();
  return entry->second;
}

absl::Status LocationParser::ParseAliases(absl::string_view text) {
  constexpr absl::string_view kBegin = "#loc";
  Lexer lexer(text);
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at, kBegin.size()) == kBegin) {
      lexer.Seek(at);
      const LocationId alias = AliasOf(lexer.token().text);
      lexer.Advance();
      RETURN_IF_ERROR(lexer.Expect("="));
      if (!lexer.Is("loc")) return lexer.Expected("\"loc\"");
      ASSIGN_OR_RETURN(const LocationId target, ParseOptional(lexer));
      table_.Define(alias, target);
    }
    at = text.find('\n', at);
    if (at == absl::string_view::npos) break;
    ++at;
  }
  if (!table_.IsComplete()) {
    return absl::InvalidArgumentError(
        "TTIR text: a location such as #loc7 has no definition or refers to itself");
  }
  return absl::OkStatus();
}

absl::StatusOr<LocationId> LocationParser::ParseOptional(Lexer& lexer) {
  if (!lexer.Accept("loc")) return kUnknownLocation;
  RETURN_IF_ERROR(lexer.Expect("("));
  ASSIGN_OR_RETURN(const LocationId location, ParseBody(lexer, 0));
  RETURN_IF_ERROR(lexer.Expect(")"));
  return location;
}

absl::StatusOr<LocationId> LocationParser::ParseBody(Lexer& lexer, int depth) {
  if (depth > kMaxSyntaxDepth) return lexer.Error("a location is nested too deeply");
  if (table_.size() > kMaxLocations) return lexer.Error("the text has too many locations");
  if (lexer.token().kind == TokenKind::kHash) {
    const LocationId alias = AliasOf(lexer.token().text);
    lexer.Advance();
    return alias;
  }
  if (lexer.token().kind == TokenKind::kString) return ParseString(lexer, depth);
  if (lexer.Accept("unknown")) return kUnknownLocation;
  if (lexer.Accept("callsite")) {
    RETURN_IF_ERROR(lexer.Expect("("));
    ASSIGN_OR_RETURN(const LocationId callee, ParseBody(lexer, depth + 1));
    RETURN_IF_ERROR(lexer.Expect("at"));
    ASSIGN_OR_RETURN(const LocationId caller, ParseBody(lexer, depth + 1));
    RETURN_IF_ERROR(lexer.Expect(")"));
    return table_.AddCall(callee, caller);
  }
  if (lexer.Accept("fused")) return ParseFused(lexer, depth);
  return lexer.Expected("a location");
}

absl::StatusOr<LocationId> LocationParser::ParseString(Lexer& lexer, int depth) {
  ASSIGN_OR_RETURN(const std::string text, lexer.String());
  if (lexer.Accept("(")) {
    ASSIGN_OR_RETURN(const LocationId child, ParseBody(lexer, depth + 1));
    RETURN_IF_ERROR(lexer.Expect(")"));
    return table_.AddName(text, child);
  }
  if (!lexer.Accept(":")) return table_.AddName(text, kUnknownLocation);
  ASSIGN_OR_RETURN(const int32_t line, lexer.Integer32());
  int32_t column = 0;
  if (lexer.Accept(":")) {
    ASSIGN_OR_RETURN(column, lexer.Integer32());
  }
  if (lexer.Accept("to")) {  // a range; the begin is what counts
    while (lexer.Accept(":") || lexer.token().kind == TokenKind::kNumber) {
      if (lexer.token().kind == TokenKind::kNumber) lexer.Advance();
    }
  }
  return table_.AddFile(text, line, column);
}

absl::StatusOr<LocationId> LocationParser::ParseFused(Lexer& lexer, int depth) {
  if (lexer.Is("<")) {  // metadata
    lexer.Advance();
    RETURN_IF_ERROR(ParseAttribute(lexer).status());
    RETURN_IF_ERROR(lexer.Expect(">"));
  }
  RETURN_IF_ERROR(lexer.Expect("["));
  std::vector<LocationId> parts;
  do {
    ASSIGN_OR_RETURN(const LocationId part, ParseBody(lexer, depth + 1));
    parts.push_back(part);
  } while (lexer.Accept(","));
  RETURN_IF_ERROR(lexer.Expect("]"));
  return table_.AddFused(parts);
}

}  // namespace tritonrl::ttir
