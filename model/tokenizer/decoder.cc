#include "model/tokenizer/decoder.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "base/utf8.h"
#include "model/tokenizer/bpe.h"

namespace tritonrl {
namespace {

// The byte that a token such as <0x0A> stands for.
std::optional<char> FallbackByte(const std::string& token) {
  if (token.size() != 6 || !absl::StartsWith(token, "<0x") || token[5] != '>' ||
      !absl::ascii_isxdigit(token[3]) || !absl::ascii_isxdigit(token[4])) {
    return std::nullopt;
  }
  return absl::HexStringToBytes(token.substr(3, 2))[0];
}

// Replaces runs of tokens such as <0x0A> by their text, or by U+FFFD for each byte if the run is
// not valid UTF-8.
std::vector<std::string> JoinBytes(const std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (IsValidUtf8(bytes)) {
      out.push_back(bytes);
    } else {
      for (size_t i = 0; i < bytes.size(); ++i) out.push_back("\xEF\xBF\xBD");
    }
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    if (const std::optional<char> byte = FallbackByte(token)) {
      bytes.push_back(*byte);
    } else {
      flush();
      out.push_back(token);
    }
  }
  flush();
  return out;
}

std::string StripEnds(absl::string_view text, absl::string_view character, int start, int stop) {
  for (int i = 0; i < start && absl::StartsWith(text, character); ++i) {
    text.remove_prefix(character.size());
  }
  for (int i = 0; i < stop && absl::EndsWith(text, character); ++i) {
    text.remove_suffix(character.size());
  }
  return std::string(text);
}

}  // namespace

absl::StatusOr<Decoder> Decoder::FromJson(const nlohmann::json& json) {
  if (!json.is_object()) return absl::InvalidArgumentError("decoder is missing");
  Decoder decoder;
  if (json.value("type", "") != "Sequence") {
    RETURN_IF_ERROR(decoder.AddStep(json));
    return decoder;
  }
  for (const nlohmann::json& part : json.at("decoders")) RETURN_IF_ERROR(decoder.AddStep(part));
  if (decoder.steps_.empty()) return absl::InvalidArgumentError("decoder is an empty Sequence");
  return decoder;
}

absl::Status Decoder::AddStep(const nlohmann::json& json) {
  static constexpr std::pair<const char*, Kind> kKinds[] = {
      {"ByteLevel", Kind::kByteLevel},       {"Metaspace", Kind::kMetaspace},
      {"ByteFallback", Kind::kByteFallback}, {"Fuse", Kind::kFuse},
      {"Replace", Kind::kReplace},           {"Strip", Kind::kStrip}};
  const std::string type = json.is_object() ? json.value("type", "") : "";
  for (const auto& [name, kind] : kKinds) {
    if (type != name) continue;
    Step step;
    step.kind = kind;
    if (kind == Kind::kMetaspace) {
      step.text = json.value("replacement", "\xE2\x96\x81");
      step.strips_first =
          json.value("prepend_scheme", json.value("add_prefix_space", true) ? "always" : "never") !=
          "never";
    } else if (kind == Kind::kReplace) {
      ASSIGN_OR_RETURN(step.regex,
                       CompilePattern(json.value("pattern", nlohmann::json()), "decoder Replace"));
      step.text = json.value("content", "");
    } else if (kind == Kind::kStrip) {
      step.text = json.value("content", " ");
      step.start = json.value("start", 0);
      step.stop = json.value("stop", 0);
    }
    steps_.push_back(std::move(step));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("decoder type \"", type,
                                                 "\" is not supported (ByteLevel, Metaspace, "
                                                 "ByteFallback, Fuse, Replace, Strip are)"));
}

std::string Decoder::Apply(const Step& step, const std::string& token) {
  switch (step.kind) {
    case Kind::kByteLevel: {
      // The bytes if the token is written in the alphabet, else the token itself.
      std::optional<std::string> bytes = DecodeBytes(token);
      return bytes ? *std::move(bytes) : token;
    }
    case Kind::kMetaspace:
      return absl::StrReplaceAll(token, {{step.text, " "}});
    case Kind::kByteFallback: {
      const std::optional<char> byte = FallbackByte(token);
      return byte ? std::string(1, *byte) : token;
    }
    case Kind::kFuse:
      return token;
    case Kind::kReplace:
      return ReplaceMatches(*step.regex, token, step.text);
    case Kind::kStrip:
      return StripEnds(token, step.text, step.start, step.stop);
  }
  return token;
}

std::string Decoder::TokenBytes(const std::string& token) const {
  std::string bytes = token;
  bool fused = false;
  for (const Step& step : steps_) {
    fused = fused || step.kind == Kind::kFuse;
    // After Fuse, Strip concerns the ends of the whole text.
    if (!(fused && step.kind == Kind::kStrip)) bytes = Apply(step, bytes);
  }
  return bytes;
}

bool Decoder::concatenates() const {
  for (const Step& step : steps_) {
    if (step.kind != Kind::kByteLevel && step.kind != Kind::kFuse) return false;
  }
  return true;
}

std::string Decoder::Decode(std::vector<std::string> tokens) const {
  for (const Step& step : steps_) {
    if (step.kind == Kind::kByteFallback) {
      tokens = JoinBytes(tokens);
    } else if (step.kind == Kind::kFuse || step.kind == Kind::kByteLevel) {
      for (std::string& token : tokens) token = Apply(step, token);
      tokens = {RepairUtf8(absl::StrJoin(tokens, ""))};
    } else {
      for (size_t i = 0; i < tokens.size(); ++i) {
        const bool drop = step.kind == Kind::kMetaspace && step.strips_first && i == 0;
        tokens[i] =
            drop ? absl::StrReplaceAll(tokens[i], {{step.text, ""}}) : Apply(step, tokens[i]);
      }
    }
  }
  return absl::StrJoin(tokens, "");
}

}  // namespace tritonrl
