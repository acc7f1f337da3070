#include "base/records/lenient_json.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tritonrl {
namespace {

// The code unit of an escape \uXXXX at the beginning of `text`, or -1.
int32_t EscapedUnit(absl::string_view text) {
  uint32_t unit = 0;
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return -1;
  if (!absl::SimpleHexAtoi(text.substr(2, 4), &unit)) return -1;
  return static_cast<int32_t>(unit);
}

// Appends the escape at the beginning of `text` to `out`, half of a surrogate pair as \ufdd0.
// Returns the escape's length.
size_t CopyEscape(absl::string_view text, std::string* out) {
  const int32_t unit = EscapedUnit(text);
  size_t length = unit < 0 ? 2 : 6;
  if (unit >= 0xD800 && unit < 0xE000) {
    const int32_t next = EscapedUnit(text.substr(6));
    const bool pair = unit < 0xDC00 && next >= 0xDC00 && next < 0xE000;
    if (!pair) {
      *out += "\\ufdd0";
      return length;
    }
    length = 12;
  }
  absl::StrAppend(out, text.substr(0, length));
  return length;
}

// Returns `text` as standard JSON, where only the forms of lenient_json.h differ from it.
std::string ToStandardJson(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  while (!text.empty()) {
    if (in_string && text[0] == '\\') {
      text.remove_prefix(std::min(CopyEscape(text, &out), text.size()));
      continue;
    }
    if (text[0] == '"') in_string = !in_string;
    absl::string_view number;
    if (!in_string) {
      for (const absl::string_view name : {"NaN", "-Infinity", "Infinity"}) {
        if (absl::StartsWith(text, name)) number = name;
      }
    }
    if (!number.empty()) {
      out += "null";
      text.remove_prefix(number.size());
    } else {
      out.push_back(text[0]);
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<LenientJson> ParseLenientJson(absl::string_view text) {
  LenientJson result;
  result.json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!result.json.is_discarded()) return result;
  result.repaired = true;
  const std::string repaired = ToStandardJson(text);
  try {
    result.json = nlohmann::json::parse(repaired);
  } catch (const nlohmann::json::parse_error& error) {
    // Byte offsets of the repaired text are those of the original text if nothing was repaired.
    return absl::InvalidArgumentError(
        repaired == text ? absl::StrCat("this is no JSON from byte ", error.byte, " on")
                         : std::string("this is no JSON"));
  } catch (const nlohmann::json::out_of_range&) {
    return absl::InvalidArgumentError("this is no JSON, because a number is too large");
  }
  return result;
}

}  // namespace tritonrl
