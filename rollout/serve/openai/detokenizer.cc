#include "rollout/serve/openai/detokenizer.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace tritonrl {
namespace {

// Number of bytes of the character that `lead` begins; 1 if `lead` begins no multi-byte character
// (Unicode 15, table 3-7).
size_t CharLength(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 1;
}

// Whether `bytes` is the beginning of a character that further bytes may complete.
bool MayGoOn(absl::string_view bytes, const Utf8Char& decoded) {
  return !decoded.valid && decoded.length == bytes.size() &&
         bytes.size() < CharLength(static_cast<unsigned char>(bytes[0]));
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (std::string& stop : stops) {
    Pattern pattern{std::move(stop), {}, 0};
    const std::string& text = pattern.text;
    pattern.failure.assign(text.size() + 1, 0);
    for (size_t i = 1, border = 0; i < text.size(); ++i) {
      while (border > 0 && text[i] != text[border]) border = pattern.failure[border];
      if (text[i] == text[border]) ++border;
      pattern.failure[i + 1] = border;
    }
    patterns_.push_back(std::move(pattern));
  }
}

size_t StopMatcher::Feed(char byte) {
  size_t longest = 0;
  for (Pattern& pattern : patterns_) {
    size_t matched = pattern.matched;
    if (matched == pattern.text.size()) matched = pattern.failure[matched];
    while (matched > 0 && pattern.text[matched] != byte) matched = pattern.failure[matched];
    if (pattern.text[matched] == byte) ++matched;
    pattern.matched = matched;
    if (matched == pattern.text.size()) longest = std::max(longest, matched);
  }
  return longest;
}

size_t StopMatcher::held() const {
  size_t held = 0;
  for (const Pattern& pattern : patterns_) held = std::max(held, pattern.matched);
  return held;
}

void IncrementalDetokenizer::AddToken(int32_t token, std::optional<float> log_prob,
                                      std::span<const TokenLogProb> top, bool has_text) {
  if (!has_text && !list_all_) return;
  Placed& placed = tokens_.emplace_back();
  placed.token = {tokenizer_.TokenBytes(token), log_prob, chars_, {}};
  for (const TokenLogProb& other : top) {
    placed.token.top.push_back({tokenizer_.TokenBytes(other.token), other.log_prob});
  }
  placed.start = text_.size();
  placed.has_text = has_text;
}

void IncrementalDetokenizer::PushPrompt(int32_t token, std::optional<float> log_prob,
                                        std::span<const TokenLogProb> top, bool hidden) {
  const std::string& bytes = tokenizer_.TokenBytes(token);
  const bool has_text = !bytes.empty() && !hidden;
  AddToken(token, log_prob, top, has_text);
  if (!has_text) return;
  bytes_ += bytes;
  DecodeBytes(/*all=*/false, /*match=*/false);
}

void IncrementalDetokenizer::Push(int32_t token, float log_prob,
                                  std::span<const TokenLogProb> top) {
  if (stopped_ || finished_) return;
  ++num_tokens_;
  const std::string& bytes = tokenizer_.TokenBytes(token);
  const bool has_text = !bytes.empty() && !tokenizer_.IsSpecial(token);
  AddToken(token, log_prob, top, has_text);
  if (!has_text) return;
  bytes_ += bytes;
  DecodeBytes(/*all=*/false);
}

void IncrementalDetokenizer::PushEnd(int32_t token, float log_prob,
                                     std::span<const TokenLogProb> top) {
  if (stopped_ || finished_) return;
  ++num_tokens_;
  AddToken(token, log_prob, top, /*has_text=*/false);
}

void IncrementalDetokenizer::Finish() {
  if (stopped_ || finished_) return;
  DecodeBytes(/*all=*/true);
  finished_ = true;
}

void IncrementalDetokenizer::DecodeBytes(bool all, bool match) {
  absl::string_view rest = bytes_;
  while (!rest.empty() && !stopped_) {
    const Utf8Char next = DecodeUtf8Char(rest);
    if (!all && MayGoOn(rest, next)) break;
    const size_t begin = text_.size();
    AppendUtf8(next.code_point, &text_);
    ++chars_;
    rest.remove_prefix(next.length);
    for (size_t i = begin; match && i < text_.size() && !stopped_; ++i) {
      const size_t stop = matcher_.Feed(text_[i]);
      if (stop == 0) continue;
      stop_string_ = text_.substr(i + 1 - stop, stop);
      text_.resize(i + 1 - stop);
      stopped_ = true;
    }
  }
  bytes_.assign(rest.data(), rest.size());
}

TextDelta IncrementalDetokenizer::Take() {
  TextDelta piece;
  const size_t held = stopped_ || finished_ ? 0 : matcher_.held();
  const size_t end = text_.size() - held;
  piece.text = text_.substr(shown_, end - shown_);
  shown_ = end;
  // A token without text is placed after the text before it.
  const auto is_shown = [end](const Placed& placed) {
    return placed.has_text ? placed.start < end : placed.start <= end;
  };
  while (tokens_shown_ < tokens_.size() && is_shown(tokens_[tokens_shown_])) {
    piece.tokens.push_back(std::move(tokens_[tokens_shown_++].token));
  }
  return piece;
}

}  // namespace tritonrl
