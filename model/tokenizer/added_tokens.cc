#include "model/tokenizer/added_tokens.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace tritonrl {
namespace {

// Whether `c` matches \w of Rust's regex library: Alphabetic, Mark, decimal number, connector
// punctuation, joiners.
bool IsWordChar(char32_t c) {
  const UChar32 u = static_cast<UChar32>(c);
  return u_hasBinaryProperty(u, UCHAR_ALPHABETIC) || u_hasBinaryProperty(u, UCHAR_JOIN_CONTROL) ||
         (U_GET_GC_MASK(u) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0;
}

bool IsSpace(char32_t c) { return u_isUWhiteSpace(static_cast<UChar32>(c)); }

// Returns the last character of `text`, which is valid UTF-8 and not empty.
Utf8Char LastChar(absl::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return DecodeUtf8Char(text.substr(begin));
}

bool TouchesWord(absl::string_view before, absl::string_view after) {
  return (!before.empty() && IsWordChar(LastChar(before).code_point)) ||
         (!after.empty() && IsWordChar(DecodeUtf8Char(after).code_point));
}

size_t SpaceBytesAtEnd(absl::string_view text) {
  const size_t size = text.size();
  while (!text.empty()) {
    const Utf8Char last = LastChar(text);
    if (!IsSpace(last.code_point)) break;
    text.remove_suffix(last.length);
  }
  return size - text.size();
}

size_t SpaceBytesAtStart(absl::string_view text) {
  const size_t size = text.size();
  while (!text.empty()) {
    const Utf8Char first = DecodeUtf8Char(text);
    if (!IsSpace(first.code_point)) break;
    text.remove_prefix(first.length);
  }
  return size - text.size();
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens,
                                   const std::vector<std::string>& patterns)
    : tokens_(std::move(tokens)), nodes_(1) {
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (patterns[i].empty()) continue;
    begins_[static_cast<unsigned char>(patterns[i][0])] = true;
    int node = 0;
    for (char c : patterns[i]) {
      const auto [it, inserted] = nodes_[node].next.try_emplace(c, nodes_.size());
      node = it->second;
      if (inserted) nodes_.emplace_back();  // Invalidates `it`.
    }
    if (nodes_[node].token < 0) nodes_[node].token = static_cast<int>(i);
  }
}

int AddedTokenFinder::LongestAt(absl::string_view text, size_t begin, size_t* end) const {
  int token = -1;
  int node = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    const auto it = nodes_[node].next.find(text[i]);
    if (it == nodes_[node].next.end()) break;
    node = it->second;
    if (nodes_[node].token >= 0) {
      token = nodes_[node].token;
      *end = i + 1;
    }
  }
  return token;
}

std::vector<TextPart> AddedTokenFinder::Split(absl::string_view text, bool parse_special) const {
  std::vector<TextPart> parts;
  if (text.empty()) return parts;
  if (nodes_.size() <= 1) return {{text, -1}};
  size_t done = 0;  // Text before this offset is in `parts`.
  size_t position = 0;
  while (position < text.size()) {
    if (!begins_[static_cast<unsigned char>(text[position])]) {
      ++position;
      continue;
    }
    size_t match_end = 0;
    const int index = LongestAt(text, position, &match_end);
    if (index < 0) {
      ++position;
      continue;
    }
    size_t begin = position;
    size_t end = match_end;
    // A match that is rejected below also consumes its text, as in the library.
    position = match_end;
    const AddedToken& token = tokens_[index];
    if (token.special && !parse_special) continue;
    if (token.single_word && TouchesWord(text.substr(0, begin), text.substr(end))) continue;
    if (token.lstrip) begin = std::max(begin - SpaceBytesAtEnd(text.substr(0, begin)), done);
    if (token.rstrip) end += SpaceBytesAtStart(text.substr(end));
    if (done < begin) parts.push_back({text.substr(done, begin - done), -1});
    parts.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({text.substr(done), -1});
  return parts;
}

absl::StatusOr<std::vector<AddedToken>> ReadAddedTokens(const nlohmann::json& list) {
  std::vector<AddedToken> tokens;
  if (list.is_null()) return tokens;
  for (const nlohmann::json& entry : list) {
    AddedToken token;
    token.id = entry.value("id", -1);
    token.content = entry.value("content", "");
    if (token.id < 0 || token.content.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("added_tokens entry ", tokens.size(), " has no id or no content"));
    }
    token.special = entry.value("special", false);
    token.normalized = entry.value("normalized", !token.special);
    token.lstrip = entry.value("lstrip", false);
    token.rstrip = entry.value("rstrip", false);
    token.single_word = entry.value("single_word", false);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace tritonrl
