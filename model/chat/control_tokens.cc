#include "model/chat/control_tokens.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace tritonrl {
namespace {

// The private-use characters of Unicode's first plane come in pairs from here.
constexpr char32_t kFirstPrivate = 0xE000;
constexpr char32_t kLastPrivate = 0xF8FE;

std::string Character(char32_t code_point) {
  std::string text;
  AppendUtf8(code_point, &text);
  return text;
}

std::vector<AddedToken> SpecialTokens(const Tokenizer& tokenizer) {
  std::vector<AddedToken> tokens;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.IsSpecial(id) || tokenizer.TokenBytes(id).empty()) continue;
    AddedToken token;
    token.id = id;
    token.content = tokenizer.TokenBytes(id);
    token.special = true;
    tokens.push_back(std::move(token));
  }
  return tokens;
}

AddedTokenFinder FinderOf(const std::vector<AddedToken>& tokens) {
  std::vector<std::string> patterns;
  for (const AddedToken& token : tokens) patterns.push_back(token.content);
  return AddedTokenFinder(tokens, patterns);
}

}  // namespace

ControlTokens::ControlTokens(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  std::vector<AddedToken> tokens = SpecialTokens(tokenizer);
  exact_ = FinderOf(tokens);
  // A token that strips white space leaves no token for a blank beside it.
  for (AddedToken& token : tokens) {
    token.lstrip = tokenizer.Encode(absl::StrCat(" ", token.content)).size() == 1;
    token.rstrip = tokenizer.Encode(absl::StrCat(token.content, " ")).size() == 1;
  }
  stripping_ = FinderOf(tokens);
}

std::vector<std::pair<size_t, size_t>> ControlTokens::Find(absl::string_view text,
                                                           bool thoughts) const {
  std::vector<std::pair<size_t, size_t>> found;
  for (const TextPart& part : exact_.Split(text, /*parse_special=*/true)) {
    if (part.id < 0) continue;
    if (!thoughts && (part.text == "<think>" || part.text == "</think>")) continue;
    const size_t begin = part.text.data() - text.data();
    found.emplace_back(begin, begin + part.text.size());
  }
  return found;
}

std::vector<int32_t> ControlTokens::Encode(const MarkedText& text, size_t begin, size_t end) const {
  const absl::string_view part = absl::string_view(text.text).substr(begin, end - begin);
  std::string masked;
  for (const auto& [from, to] : text.literal) {
    if (from < begin || to > end) continue;
    if (masked.empty()) masked = std::string(part);
    std::fill(masked.begin() + (from - begin), masked.begin() + (to - begin), 'x');
  }
  // The usual case: the tokenizer's own search is right.
  if (masked.empty()) return tokenizer_.Encode(part, /*parse_special=*/true);
  std::vector<int32_t> ids;
  for (const TextPart& piece : stripping_.Split(masked, /*parse_special=*/true)) {
    if (piece.id >= 0) {
      ids.push_back(piece.id);
      continue;
    }
    const absl::string_view original =
        part.substr(piece.text.data() - masked.data(), piece.text.size());
    const std::vector<int32_t> more = tokenizer_.Encode(original, /*parse_special=*/false);
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return ids;
}

std::optional<Placeholders> Placeholders::For(const std::vector<absl::string_view>& texts) {
  for (char32_t c = kFirstPrivate; c < kLastPrivate; c += 2) {
    Placeholders made;
    made.open_ = Character(c);
    made.close_ = Character(c + 1);
    const bool taken = std::any_of(texts.begin(), texts.end(), [&](absl::string_view text) {
      return absl::StrContains(text, made.open_) || absl::StrContains(text, made.close_);
    });
    if (!taken) return made;
  }
  return std::nullopt;
}

std::string Placeholders::Replace(absl::string_view content,
                                  const std::vector<std::pair<size_t, size_t>>& parts) {
  std::string text;
  size_t done = 0;
  for (const auto& [begin, end] : parts) {
    absl::StrAppend(&text, content.substr(done, begin - done), open_, replaced_.size(), close_);
    replaced_.emplace_back(content.substr(begin, end - begin));
    done = end;
  }
  absl::StrAppend(&text, content.substr(done));
  return text;
}

std::optional<MarkedText> Placeholders::Restore(absl::string_view rendered) const {
  MarkedText restored;
  while (true) {
    const size_t begin = rendered.find(open_);
    absl::StrAppend(&restored.text, rendered.substr(0, begin));
    if (begin == absl::string_view::npos) return restored;
    rendered.remove_prefix(begin + open_.size());
    const size_t end = rendered.find(close_);
    if (end == absl::string_view::npos) return std::nullopt;
    size_t index = 0;
    if (!absl::SimpleAtoi(rendered.substr(0, end), &index) || index >= replaced_.size()) {
      return std::nullopt;
    }
    restored.literal.emplace_back(restored.text.size(),
                                  restored.text.size() + replaced_[index].size());
    restored.text += replaced_[index];
    rendered.remove_prefix(end + close_.size());
  }
}

}  // namespace tritonrl
