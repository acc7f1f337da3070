#include "model/tokenizer/pre_tokenizer.h"

#include <new>
#include <stdexcept>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace tritonrl {

namespace {

// Character sets that differ between PCRE2 10.42 (Unicode 14) and Oniguruma 6.9.10 (Unicode 16),
// each as the inside of a character class. Unicode's White_Space property:
constexpr char kWhitespace[] =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";
// Letters and numbers of Unicode 15 and 16.
constexpr char kNewLetters[] =
    "\\x{1c89}-\\x{1c8a}\\x{a7cb}-\\x{a7cd}\\x{a7da}-\\x{a7dc}\\x{105c0}-\\x{105f3}"
    "\\x{10d4a}-\\x{10d65}\\x{10d6f}-\\x{10d85}\\x{10ec2}-\\x{10ec4}\\x{1123f}-\\x{11240}"
    "\\x{11380}-\\x{11389}\\x{1138b}\\x{1138e}\\x{11390}-\\x{113b5}\\x{113b7}\\x{113d1}"
    "\\x{113d3}\\x{11bc0}-\\x{11be0}\\x{11f02}\\x{11f04}-\\x{11f10}\\x{11f12}-\\x{11f33}"
    "\\x{1342f}\\x{13441}-\\x{13446}\\x{13460}-\\x{143fa}\\x{16100}-\\x{1611d}"
    "\\x{16d40}-\\x{16d6c}\\x{18cff}\\x{1b132}\\x{1b155}\\x{1df25}-\\x{1df2a}"
    "\\x{1e030}-\\x{1e06d}\\x{1e4d0}-\\x{1e4eb}\\x{1e5d0}-\\x{1e5ed}\\x{1e5f0}\\x{2b739}"
    "\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}";
constexpr char kNewNumbers[] =
    "\\x{10d40}-\\x{10d49}\\x{116d0}-\\x{116e3}\\x{11bf0}-\\x{11bf9}\\x{11f50}-\\x{11f59}"
    "\\x{16130}-\\x{16139}\\x{16d70}-\\x{16d79}\\x{1ccf0}-\\x{1ccf9}\\x{1d2c0}-\\x{1d2d3}"
    "\\x{1e4f0}-\\x{1e4f9}\\x{1e5f1}-\\x{1e5fa}";

// Most matches need little stack; long runs over which the match backtracks need more.
constexpr size_t kMinJitStack = 64 << 10;
constexpr size_t kMaxJitStack = 8 << 20;

template <typename T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* pointer) const { Free(pointer); }
};
using MatchData =
    std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data, pcre2_match_data_free>>;
using MatchContext =
    std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context, pcre2_match_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Deleter<pcre2_jit_stack, pcre2_jit_stack_free>>;

std::string ErrorText(int error) {
  PCRE2_UCHAR message[256];
  pcre2_get_error_message(error, message, sizeof(message));
  return reinterpret_cast<char*>(message);
}

}  // namespace

struct Regex::Code {
  explicit Code(pcre2_code* code) : code(code) {}
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  pcre2_code* code;
};

std::string ExpandCharacterClasses(absl::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const absl::string_view rest = pattern.substr(i);
    const absl::string_view open = in_class ? "" : "[";
    const absl::string_view close = in_class ? "" : "]";
    if (absl::StartsWith(rest, "\\s")) {
      absl::StrAppend(&out, open, kWhitespace, close);
      i += 1;
    } else if (absl::StartsWith(rest, "\\S") && !in_class) {
      absl::StrAppend(&out, "[^", kWhitespace, "]");
      i += 1;
    } else if (absl::StartsWith(rest, "\\p{L}")) {
      absl::StrAppend(&out, open, "\\p{L}", kNewLetters, close);
      i += 4;
    } else if (absl::StartsWith(rest, "\\p{N}")) {
      absl::StrAppend(&out, open, "\\p{N}", kNewNumbers, close);
      i += 4;
    } else if (pattern[i] == '\\' && rest.size() > 1) {
      absl::StrAppend(&out, rest.substr(0, 2));
      i += 1;
    } else {
      if (pattern[i] == '[') in_class = true;
      if (pattern[i] == ']') in_class = false;
      out.push_back(pattern[i]);
    }
  }
  return out;
}

std::string QuoteRegex(absl::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::string("\\^$.[]|()?*+{}-#").find(c) != std::string::npos) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

absl::StatusOr<Regex> Regex::Compile(const std::string& pattern) {
  const std::string written_out = ExpandCharacterClasses(pattern);
  int error = 0;
  PCRE2_SIZE position = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(written_out.data()), written_out.size(),
                    PCRE2_UTF | PCRE2_UCP, &error, &position, nullptr);
  if (code == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("malformed regular expression \"", pattern, "\": ", ErrorText(error)));
  }
  // Without a just-in-time compiler PCRE2's interpreter gives the same matches more slowly.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return Regex(std::make_shared<const Code>(code));
}

void Regex::ForEachMatch(absl::string_view text,
                         const std::function<void(size_t, size_t)>& on_match) const {
  MatchData match(pcre2_match_data_create_from_pattern(code_->code, nullptr));
  MatchContext context(pcre2_match_context_create(nullptr));
  JitStack stack(pcre2_jit_stack_create(kMinJitStack, kMaxJitStack, nullptr));
  if (match == nullptr || context == nullptr) throw std::bad_alloc();
  pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  // The pattern comes from a model's file and the text has a bounded length, so only memory limits
  // a match.
  pcre2_set_match_limit(context.get(), 0xFFFFFFFFu);
  pcre2_set_depth_limit(context.get(), 0xFFFFFFFFu);
  pcre2_set_heap_limit(context.get(), 0xFFFFFFFFu);
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t start = 0;
  while (start < text.size()) {
    // NOTEMPTY, because an empty match splits nothing.
    uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int result =
        pcre2_match(code_->code, subject, text.size(), start, options, match.get(), context.get());
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
      options |= PCRE2_NO_JIT;
      result = pcre2_match(code_->code, subject, text.size(), start, options, match.get(),
                           context.get());
    }
    if (result == PCRE2_ERROR_NOMATCH) return;
    // Not "no match": the rest of the text would become one piece, with other ids.
    if (result < 0) {
      throw std::runtime_error(
          absl::StrCat("a match over ", text.size(), " bytes of text failed: ", ErrorText(result)));
    }
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(match.get());
    on_match(offsets[0], offsets[1]);
    start = offsets[1];
  }
}

namespace {

// The pattern by which ByteLevel splits with use_regex=true.
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
    // `invert` swaps matches and gaps, which matters only for the removed parts.
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
