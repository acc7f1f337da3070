#include "model/tokenizer/pre_tokenizer.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"

namespace tritonrl {
namespace {

// The pattern by which ByteLevel splits with use_regex=true.
constexpr char kGpt2Pattern[] =
    R"re('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)re";

// A match, or the gap between two, and whether it counts as a match.
struct Range {
  size_t begin = 0, end = 0;
  bool match = false;
};

std::vector<Range> MatchesAndGaps(const Regex& regex, absl::string_view text, bool invert) {
  std::vector<Range> ranges;
  const auto add = [&](size_t begin, size_t end, bool match) {
    if (begin < end) ranges.push_back({begin, end, match != invert});
  };
  size_t done = 0;
  regex.ForEachMatch(text, [&](size_t begin, size_t end) {
    add(done, begin, false);
    add(begin, end, true);
    done = end;
  });
  add(done, text.size(), false);
  return ranges;
}

}  // namespace

absl::StatusOr<PreTokenizer> PreTokenizer::FromJson(const nlohmann::json& json) {
  PreTokenizer pre_tokenizer;
  if (json.is_null()) return pre_tokenizer;
  if (json.is_object() && json.value("type", "") == "Sequence") {
    for (const nlohmann::json& part : json.at("pretokenizers")) {
      RETURN_IF_ERROR(pre_tokenizer.AddStage(part));
    }
  } else {
    RETURN_IF_ERROR(pre_tokenizer.AddStage(json));
  }
  return pre_tokenizer;
}

absl::StatusOr<PreTokenizer::Stage> PreTokenizer::SplitStage(const nlohmann::json& json) {
  static constexpr std::pair<const char*, Behavior> kBehaviors[] = {
      {"Isolated", Behavior::kIsolated},
      {"Removed", Behavior::kRemoved},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous}};
  Stage stage;
  const nlohmann::json pattern = json.value("pattern", nlohmann::json());
  ASSIGN_OR_RETURN(stage.regex, CompilePattern(pattern, "pre_tokenizer Split"));
  stage.invert = json.value("invert", false);
  const std::string name = json.value("behavior", "");
  for (const auto& [known, behavior] : kBehaviors) {
    stage.behavior = behavior;
    if (name == known) return stage;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("pre_tokenizer Split with behavior \"", name, "\" is not supported"));
}

absl::StatusOr<PreTokenizer::Stage> PreTokenizer::MetaspaceStage(const nlohmann::json& json) {
  Stage stage;
  stage.metaspace = json.value("replacement", "\xE2\x96\x81");  // U+2581
  // Files before version 0.15 of the library say add_prefix_space.
  const std::string scheme =
      json.value("prepend_scheme", json.value("add_prefix_space", true) ? "always" : "never");
  if (scheme == "always") {
    stage.prepend = Prepend::kAlways;
  } else if (scheme == "first") {
    stage.prepend = Prepend::kFirst;
  } else if (scheme != "never") {
    return absl::InvalidArgumentError(absl::StrCat("pre_tokenizer Metaspace with prepend_scheme \"",
                                                   scheme, "\" is not supported"));
  }
  if (stage.metaspace.empty()) {
    return absl::InvalidArgumentError("pre_tokenizer Metaspace has an empty replacement");
  }
  if (json.value("split", true)) {
    ASSIGN_OR_RETURN(stage.regex, Regex::Compile(QuoteRegex(stage.metaspace)));
    stage.behavior = Behavior::kMergedWithNext;
  }
  return stage;
}

absl::Status PreTokenizer::AddStage(const nlohmann::json& json) {
  const std::string type = json.is_object() ? json.value("type", "") : "";
  if (byte_level_) {
    return absl::InvalidArgumentError(
        absl::StrCat("pre_tokenizer has \"", type, "\" after ByteLevel, which is not supported"));
  }
  Stage stage;
  if (type == "ByteLevel") {
    byte_level_ = true;
    stage.add_prefix_space = json.value("add_prefix_space", true);
    if (json.value("use_regex", true)) {
      ASSIGN_OR_RETURN(stage.regex, Regex::Compile(kGpt2Pattern));
    }
  } else if (type == "Digits") {
    ASSIGN_OR_RETURN(
        stage.regex,
        Regex::Compile(json.value("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)"));
  } else if (type == "Split") {
    ASSIGN_OR_RETURN(stage, SplitStage(json));
  } else if (type == "Metaspace") {
    ASSIGN_OR_RETURN(stage, MetaspaceStage(json));
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("pre_tokenizer type \"", type,
                     "\" is not supported (Split, Digits, Metaspace, ByteLevel are)"));
  }
  stages_.push_back(std::move(stage));
  return absl::OkStatus();
}

void PreTokenizer::Cut(const Stage& stage, absl::string_view text,
                       std::vector<absl::string_view>* out) {
  std::vector<Range> ranges = MatchesAndGaps(*stage.regex, text, stage.invert);
  const auto add = [&](const Range& range) {
    out->push_back(text.substr(range.begin, range.end - range.begin));
  };
  for (size_t i = 0; i < ranges.size(); ++i) {
    // Whether the range joins the next one. Of several matches in a row, only the one beside a gap
    // joins the gap.
    const bool has_next = i + 1 < ranges.size();
    bool joins = false;
    switch (stage.behavior) {
      case Behavior::kIsolated:
        break;
      case Behavior::kRemoved:
        if (ranges[i].match) continue;
        break;
      case Behavior::kMergedWithPrevious:
        joins = has_next && ranges[i + 1].match && !ranges[i].match;
        break;
      case Behavior::kMergedWithNext:
        joins = has_next && ranges[i].match && !ranges[i + 1].match;
        break;
      case Behavior::kContiguous:
        joins = has_next && ranges[i].match == ranges[i + 1].match;
        break;
    }
    if (joins) {
      ranges[i + 1].begin = ranges[i].begin;
      continue;
    }
    add(ranges[i]);
  }
}

void PreTokenizer::ReplaceSpaces(const Stage& stage, bool at_start, Pieces* pieces) {
  for (size_t i = 0; i < pieces->views.size(); ++i) {
    std::string text = absl::StrReplaceAll(pieces->views[i], {{" ", stage.metaspace}});
    const bool prepend = stage.prepend == Prepend::kAlways ||
                         (stage.prepend == Prepend::kFirst && i == 0 && at_start);
    if (prepend && !absl::StartsWith(text, stage.metaspace)) text.insert(0, stage.metaspace);
    pieces->storage.push_back(std::move(text));
    pieces->views[i] = pieces->storage.back();
  }
}

Pieces PreTokenizer::Split(absl::string_view text, bool at_start) const {
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
    if (!stage.metaspace.empty()) ReplaceSpaces(stage, at_start, &pieces);
    if (!stage.regex) continue;
    std::vector<absl::string_view> cut;
    for (absl::string_view view : pieces.views) Cut(stage, view, &cut);
    // A removed start means that what is left does not begin the text.
    at_start = at_start && !cut.empty() && !pieces.views.empty() &&
               cut[0].data() == pieces.views[0].data();
    pieces.views = std::move(cut);
  }
  return pieces;
}

}  // namespace tritonrl
