#include "model/tokenizer/pre_tokenizer.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {
namespace {

// What ByteLevel splits by with use_regex=true.
constexpr char kGpt2Pattern[] =
    R"re('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)re";

absl::StatusOr<std::string> SplitPattern(const nlohmann::json& json) {
  const nlohmann::json pattern = json.value("pattern", nlohmann::json());
  if (pattern.is_object() && pattern.contains("Regex")) {
    return pattern.at("Regex").get<std::string>();
  }
  if (pattern.is_object() && pattern.contains("String")) {
    return QuoteRegex(pattern.at("String").get<std::string>());
  }
  return absl::InvalidArgumentError("pre_tokenizer Split has no pattern Regex or String");
}

}  // namespace

absl::StatusOr<PreTokenizer> PreTokenizer::FromJson(const nlohmann::json& json) {
  PreTokenizer pre_tokenizer;
  if (json.is_object() && json.value("type", "") == "Sequence") {
    for (const nlohmann::json& part : json.at("pretokenizers")) {
      RETURN_IF_ERROR(pre_tokenizer.AddStage(part));
    }
  } else {
    RETURN_IF_ERROR(pre_tokenizer.AddStage(json));
  }
  if (!pre_tokenizer.byte_level_) {
    return absl::InvalidArgumentError("pre_tokenizer does not end with ByteLevel");
  }
  return pre_tokenizer;
}

absl::Status PreTokenizer::AddStage(const nlohmann::json& json) {
  const std::string type = json.is_object() ? json.value("type", "") : "";
  if (byte_level_) {
    return absl::InvalidArgumentError(
        absl::StrCat("pre_tokenizer has \"", type, "\" after ByteLevel, which is not supported"));
  }
  Stage stage;
  std::string pattern;
  if (type == "ByteLevel") {
    byte_level_ = true;
    stage.add_prefix_space = json.value("add_prefix_space", true);
    if (json.value("use_regex", true)) pattern = kGpt2Pattern;
  } else if (type == "Digits") {
    pattern = json.value("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)";
  } else if (type == "Split") {
    ASSIGN_OR_RETURN(pattern, SplitPattern(json));
    const std::string behavior = json.value("behavior", "");
    if (behavior != "Isolated" && behavior != "Removed") {
      return absl::InvalidArgumentError(absl::StrCat("pre_tokenizer Split with behavior \"",
                                                     behavior,
                                                     "\" is not supported (Isolated, Removed "
                                                     "are)"));
    }
    stage.remove_matches = behavior == "Removed";
    stage.invert = json.value("invert", false);
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "pre_tokenizer type \"", type, "\" is not supported (Split, Digits, ByteLevel are)"));
  }
  if (!pattern.empty()) {
    ASSIGN_OR_RETURN(stage.regex, Regex::Compile(pattern));
  }
  stages_.push_back(std::move(stage));
  return absl::OkStatus();
}

void PreTokenizer::Cut(const Stage& stage, absl::string_view text,
                       std::vector<absl::string_view>* out) {
  const auto add = [&](size_t begin, size_t end, bool is_match) {
    // `invert` swaps the roles of matches and gaps, which only matters for what is removed.
    const bool dropped = stage.remove_matches && is_match != stage.invert;
    if (begin < end && !dropped) out->push_back(text.substr(begin, end - begin));
  };
  size_t done = 0;
  stage.regex->ForEachMatch(text, [&](size_t begin, size_t end) {
    add(done, begin, false);
    add(begin, end, true);
    done = end;
  });
  add(done, text.size(), false);
}

Pieces PreTokenizer::Split(absl::string_view text) const {
  Pieces pieces;
  if (text.empty()) return pieces;
  pieces.views.push_back(text);
  for (const Stage& stage : stages_) {
    if (stage.add_prefix_space) {
      for (absl::string_view& view : pieces.views) {
        if (absl::StartsWith(view, " ")) continue;
        pieces.storage.push_back(absl::StrCat(" ", view));
        view = pieces.storage.back();
      }
    }
    if (!stage.regex) continue;
    std::vector<absl::string_view> cut;
    for (absl::string_view view : pieces.views) Cut(stage, view, &cut);
    pieces.views = std::move(cut);
  }
  return pieces;
}

}  // namespace tritonrl
