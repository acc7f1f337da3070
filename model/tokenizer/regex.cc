#include "model/tokenizer/regex.h"

#include <cstdint>
#include <new>
#include <stdexcept>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace tritonrl {

namespace {

// Character sets that differ between PCRE2 10.42 (Unicode 14) and Oniguruma 6.9.10 (Unicode 16),
// each as the inside of a character class. Unicode's White_Space property:
constexpr char kWhitespace[] =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";
// Characters of Unicode 15 and 16 by property.
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
constexpr char kNewMarks[] =
    "\\x{897}\\x{cf3}\\x{ece}\\x{10d69}-\\x{10d6d}\\x{10efc}-\\x{10eff}\\x{11241}"
    "\\x{113b8}-\\x{113c0}\\x{113c2}\\x{113c5}\\x{113c7}-\\x{113ca}\\x{113cc}-\\x{113d0}\\x{113d2}"
    "\\x{113e1}-\\x{113e2}\\x{11f00}-\\x{11f01}\\x{11f03}\\x{11f34}-\\x{11f3a}"
    "\\x{11f3e}-\\x{11f42}\\x{11f5a}\\x{13440}\\x{13447}-\\x{13455}\\x{1611e}-\\x{1612f}\\x{1e08f}"
    "\\x{1e4ec}-\\x{1e4ef}\\x{1e5ee}-\\x{1e5ef}";
constexpr char kNewPunctuation[] =
    "\\x{1b4e}-\\x{1b4f}\\x{1b7f}\\x{10d6e}\\x{113d4}-\\x{113d5}\\x{113d7}-\\x{113d8}"
    "\\x{11b00}-\\x{11b09}\\x{11be1}\\x{11f43}-\\x{11f4f}\\x{16d6d}-\\x{16d6f}\\x{1e5ff}";
constexpr char kNewSymbols[] =
    "\\x{2427}-\\x{2429}\\x{2ffc}-\\x{2fff}\\x{31e4}-\\x{31e5}\\x{31ef}\\x{10d8e}-\\x{10d8f}"
    "\\x{1cc00}-\\x{1ccef}\\x{1cd00}-\\x{1ceb3}\\x{1f6dc}\\x{1f774}-\\x{1f776}"
    "\\x{1f77b}-\\x{1f77f}\\x{1f7d9}\\x{1f8b2}-\\x{1f8bb}\\x{1f8c0}-\\x{1f8c1}"
    "\\x{1fa75}-\\x{1fa77}\\x{1fa87}-\\x{1fa89}\\x{1fa8f}\\x{1faad}-\\x{1faaf}"
    "\\x{1fabb}-\\x{1fabf}\\x{1fac6}\\x{1face}-\\x{1facf}\\x{1fada}-\\x{1fadc}\\x{1fadf}"
    "\\x{1fae8}-\\x{1fae9}\\x{1faf7}-\\x{1faf8}\\x{1fbcb}-\\x{1fbef}";
constexpr char kNewUppercaseLetters[] =
    "\\x{1c89}\\x{a7cb}-\\x{a7cc}\\x{a7da}\\x{a7dc}\\x{10d50}-\\x{10d65}";
constexpr char kNewLowercaseLetters[] =
    "\\x{1c8a}\\x{a7cd}\\x{a7db}\\x{10d70}-\\x{10d85}\\x{1df25}-\\x{1df2a}";
constexpr char kNewModifierLetters[] =
    "\\x{10d4e}\\x{10d6f}\\x{16d40}-\\x{16d42}\\x{16d6b}-\\x{16d6c}\\x{1e030}-\\x{1e06d}\\x{1e4eb}";
constexpr char kNewOtherLetters[] =
    "\\x{105c0}-\\x{105f3}\\x{10d4a}-\\x{10d4d}\\x{10d4f}\\x{10ec2}-\\x{10ec4}"
    "\\x{1123f}-\\x{11240}\\x{11380}-\\x{11389}\\x{1138b}\\x{1138e}\\x{11390}-\\x{113b5}\\x{113b7}"
    "\\x{113d1}\\x{113d3}\\x{11bc0}-\\x{11be0}\\x{11f02}\\x{11f04}-\\x{11f10}\\x{11f12}-\\x{11f33}"
    "\\x{1342f}\\x{13441}-\\x{13446}\\x{13460}-\\x{143fa}\\x{16100}-\\x{1611d}"
    "\\x{16d43}-\\x{16d6a}\\x{18cff}\\x{1b132}\\x{1b155}\\x{1e4d0}-\\x{1e4ea}\\x{1e5d0}-\\x{1e5ed}"
    "\\x{1e5f0}\\x{2b739}\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}";

// Properties as a pattern writes them, and the characters that PCRE2 does not know to have them.
constexpr std::pair<absl::string_view, absl::string_view> kProperties[] = {
    {"\\p{L}", kNewLetters},
    {"\\p{N}", kNewNumbers},
    {"\\p{M}", kNewMarks},
    {"\\p{P}", kNewPunctuation},
    {"\\p{S}", kNewSymbols},
    {"\\p{Lu}", kNewUppercaseLetters},
    {"\\p{Ll}", kNewLowercaseLetters},
    {"\\p{Lm}", kNewModifierLetters},
    {"\\p{Lo}", kNewOtherLetters}};

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

// Returns the property that `rest` begins with and its new characters; empty if none.
std::pair<absl::string_view, absl::string_view> PropertyAt(absl::string_view rest) {
  for (const auto& property : kProperties) {
    if (absl::StartsWith(rest, property.first)) return property;
  }
  return {};
}

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
    } else if (const auto property = PropertyAt(rest); !property.first.empty()) {
      absl::StrAppend(&out, open, property.first, property.second, close);
      i += property.first.size() - 1;
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
  // In Oniguruma's syntax ^ and $ match at every line.
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(written_out.data()), written_out.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &position, nullptr);
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

std::string ReplaceMatches(const Regex& regex, absl::string_view text, absl::string_view content) {
  std::string out;
  size_t done = 0;
  regex.ForEachMatch(text, [&](size_t begin, size_t end) {
    absl::StrAppend(&out, text.substr(done, begin - done), content);
    done = end;
  });
  absl::StrAppend(&out, text.substr(done));
  return out;
}

absl::StatusOr<Regex> CompilePattern(const nlohmann::json& pattern, const std::string& what) {
  if (pattern.is_object() && pattern.contains("Regex")) {
    return Regex::Compile(pattern.at("Regex").get<std::string>());
  }
  if (pattern.is_object() && pattern.contains("String")) {
    return Regex::Compile(QuoteRegex(pattern.at("String").get<std::string>()));
  }
  return absl::InvalidArgumentError(absl::StrCat(what, " has no pattern Regex or String"));
}

}  // namespace tritonrl
