#include "model/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tritonrl {
namespace {

// What PCRE2 10.42 (Unicode 14) and Oniguruma 6.9.10 (Unicode 16) see differently, each as the
// inside of a character class. Unicode's White_Space property:
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

// Matching one character needs little; long runs that have to be given back need more.
constexpr size_t kJitStackStart = 64 << 10;
constexpr size_t kJitStackMost = 8 << 20;

template <typename T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* pointer) const { Free(pointer); }
};
using MatchData =
    std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data, pcre2_match_data_free>>;
using MatchContext =
    std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context, pcre2_match_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Deleter<pcre2_jit_stack, pcre2_jit_stack_free>>;

}  // namespace

struct Regex::Code {
  explicit Code(pcre2_code* code) : code(code) {}
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  pcre2_code* code;
};

std::string WriteOutClasses(absl::string_view pattern) {
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
  const std::string written_out = WriteOutClasses(pattern);
  int error = 0;
  PCRE2_SIZE position = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(written_out.data()), written_out.size(),
                    PCRE2_UTF | PCRE2_UCP, &error, &position, nullptr);
  if (code == nullptr) {
    PCRE2_UCHAR message[256];
    pcre2_get_error_message(error, message, sizeof(message));
    return absl::InvalidArgumentError(absl::StrCat("malformed regular expression \"", pattern,
                                                   "\": ", reinterpret_cast<char*>(message)));
  }
  // Where there is no just-in-time compiler the interpreter does the same more slowly.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return Regex(std::make_shared<const Code>(code));
}

void Regex::ForEachMatch(absl::string_view text,
                         const std::function<void(size_t, size_t)>& on_match) const {
  MatchData match(pcre2_match_data_create_from_pattern(code_->code, nullptr));
  MatchContext context(pcre2_match_context_create(nullptr));
  JitStack stack(pcre2_jit_stack_create(kJitStackStart, kJitStackMost, nullptr));
  pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  // The pattern comes from a model's file and the text has a bounded length: no limits but memory.
  pcre2_set_match_limit(context.get(), 0xFFFFFFFFu);
  pcre2_set_depth_limit(context.get(), 0xFFFFFFFFu);
  pcre2_set_heap_limit(context.get(), 0xFFFFFFFFu);
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t start = 0;
  while (start < text.size()) {
    // NOTEMPTY: an empty match splits nothing.
    uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int result =
        pcre2_match(code_->code, subject, text.size(), start, options, match.get(), context.get());
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
      options |= PCRE2_NO_JIT;
      result = pcre2_match(code_->code, subject, text.size(), start, options, match.get(),
                           context.get());
    }
    if (result < 0) return;
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(match.get());
    on_match(offsets[0], offsets[1]);
    start = offsets[1];
  }
}

}  // namespace tritonrl
