#include "model/tokenizer/normalizer.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uset.h>
#include <unicode/ustring.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/utf8.h"
#include "model/tokenizer/regex.h"

namespace tritonrl {
namespace {

bool IsAscii(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::u16string ToUtf16(const std::string& text) {
  // UTF-16 never has more units than UTF-8 has bytes.
  std::u16string out(text.size() + 1, u'\0');
  int32_t length = 0;
  UErrorCode error = U_ZERO_ERROR;
  u_strFromUTF8(out.data(), static_cast<int32_t>(out.size()), &length, text.data(),
                static_cast<int32_t>(text.size()), &error);
  out.resize(U_SUCCESS(error) ? length : 0);
  return out;
}

std::string ToUtf8(const std::u16string& text) {
  std::string out(text.size() * 3 + 1, '\0');
  int32_t length = 0;
  UErrorCode error = U_ZERO_ERROR;
  u_strToUTF8(out.data(), static_cast<int32_t>(out.size()), &length, text.data(),
              static_cast<int32_t>(text.size()), &error);
  out.resize(U_SUCCESS(error) ? length : 0);
  return out;
}

using Set = std::unique_ptr<USet, decltype(&uset_close)>;
using Filtered = std::unique_ptr<UNormalizer2, decltype(&unorm2_close)>;

// Appends the lower case of `c` as Rust's char::to_lowercase has it (Unicode 16).
void AppendLowercase(char32_t c, std::string* out) {
  // Letters that ICU does not know yet.
  static constexpr std::pair<char32_t, char32_t> kNew[] = {
      {0x1C89, 0x1C8A}, {0xA7CB, 0x264}, {0xA7CC, 0xA7CD}, {0xA7DA, 0xA7DB}, {0xA7DC, 0x19B}};
  if (c == 0x130) {  // the only letter whose lower case has two characters
    out->append("i\xCC\x87");
    return;
  }
  if (c >= 0x10D50 && c <= 0x10D65) return AppendUtf8(c + 0x20, out);
  for (const auto& [upper, lower] : kNew) {
    if (c == upper) return AppendUtf8(lower, out);
  }
  AppendUtf8(static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))), out);
}

}  // namespace

class Normalizer::Step {
 public:
  virtual ~Step() = default;
  // `text` is valid UTF-8.
  virtual std::string Apply(const std::string& text) const = 0;
};

class Normalizer::Lowercase : public Step {
 public:
  std::string Apply(const std::string& text) const override {
    std::string out;
    for (absl::string_view rest = text; !rest.empty();) {
      const Utf8Char next = DecodeUtf8Char(rest);
      AppendLowercase(next.code_point, &out);
      rest.remove_prefix(next.length);
    }
    return out;
  }
};

class Normalizer::Replace : public Step {
 public:
  Replace(Regex regex, std::string content)
      : regex_(std::move(regex)), content_(std::move(content)) {}
  std::string Apply(const std::string& text) const override {
    return ReplaceMatches(regex_, text, content_);
  }

 private:
  const Regex regex_;
  const std::string content_;
};

class Normalizer::Prepend : public Step {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string Apply(const std::string& text) const override {
    return text.empty() ? text : prefix_ + text;
  }

 private:
  const std::string prefix_;
};

class Normalizer::Strip : public Step {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  std::string Apply(const std::string& text) const override {
    size_t begin = 0, end = 0;  // of what is kept
    bool kept = false;
    for (size_t at = 0; at < text.size();) {
      const Utf8Char next = DecodeUtf8Char(absl::string_view(text).substr(at));
      const bool space = u_isUWhiteSpace(static_cast<UChar32>(next.code_point));
      if (!space && !kept) begin = at;
      kept = kept || !space;
      at += next.length;
      if (!space) end = at;
    }
    if (!kept) return left_ || right_ ? "" : text;
    if (!left_) begin = 0;
    if (!right_) end = text.size();
    return text.substr(begin, end - begin);
  }

 private:
  const bool left_, right_;
};

// One normalization form for the characters of Unicode 9: the `tokenizers` library has the tables
// of that version and leaves later characters unchanged.
class Normalizer::Form : public Step {
 public:
  // Returns InvalidArgument for an unknown name.
  static absl::StatusOr<std::shared_ptr<const Step>> Create(const std::string& name) {
    UErrorCode error = U_ZERO_ERROR;
    const UNormalizer2* normalizer = nullptr;
    if (name == "NFC") normalizer = unorm2_getNFCInstance(&error);
    if (name == "NFD") normalizer = unorm2_getNFDInstance(&error);
    if (name == "NFKC") normalizer = unorm2_getNFKCInstance(&error);
    if (name == "NFKD") normalizer = unorm2_getNFKDInstance(&error);
    if (normalizer == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "normalizer type \"", name,
          "\" is not supported (NFC, NFD, NFKC, NFKD, Lowercase, Replace, Prepend, Strip are)"));
    }
    Set known(uset_openPattern(u"[:age=9.0:]", -1, &error), &uset_close);
    if (U_SUCCESS(error)) uset_freeze(known.get());
    Filtered filtered(unorm2_openFiltered(normalizer, known.get(), &error), &unorm2_close);
    if (U_FAILURE(error)) {
      return absl::InternalError(absl::StrCat("ICU: ", u_errorName(error)));
    }
    return std::make_shared<const Form>(std::move(known), std::move(filtered));
  }

  Form(Set known, Filtered filtered) : known_(std::move(known)), filtered_(std::move(filtered)) {}

  std::string Apply(const std::string& text) const override {
    if (IsAscii(text)) return text;  // All forms leave ASCII unchanged.
    const std::u16string source = ToUtf16(text);
    std::u16string target(source.size() + source.size() / 2 + 16, u'\0');
    UErrorCode error = U_ZERO_ERROR;
    const auto run = [&] {
      error = U_ZERO_ERROR;
      return unorm2_normalize(filtered_.get(), source.data(), static_cast<int32_t>(source.size()),
                              target.data(), static_cast<int32_t>(target.size()), &error);
    };
    int32_t length = run();
    if (error == U_BUFFER_OVERFLOW_ERROR) {
      target.resize(length + 1);
      length = run();
    }
    if (U_FAILURE(error)) return text;
    target.resize(length);
    return ToUtf8(target);
  }

 private:
  Set known_;  // Used by filtered_, so it must live longer.
  Filtered filtered_;
};

absl::StatusOr<std::shared_ptr<const Normalizer::Step>> Normalizer::MakeStep(
    const nlohmann::json& json) {
  const std::string type = json.value("type", "");
  if (type == "Lowercase") return std::make_shared<const Lowercase>();
  if (type == "Prepend") return std::make_shared<const Prepend>(json.value("prepend", ""));
  if (type == "Strip") {
    return std::make_shared<const Strip>(json.value("strip_left", true),
                                         json.value("strip_right", true));
  }
  if (type == "Replace") {
    ASSIGN_OR_RETURN(Regex regex,
                     CompilePattern(json.value("pattern", nlohmann::json()), "normalizer Replace"));
    return std::make_shared<const Replace>(std::move(regex), json.value("content", ""));
  }
  return Form::Create(type);
}

absl::StatusOr<Normalizer> Normalizer::FromJson(const nlohmann::json& json) {
  Normalizer normalizer;
  if (json.is_null()) return normalizer;
  if (json.value("type", "") == "Sequence") {
    for (const nlohmann::json& part : json.at("normalizers")) {
      ASSIGN_OR_RETURN(const Normalizer one, FromJson(part));
      normalizer.steps_.insert(normalizer.steps_.end(), one.steps_.begin(), one.steps_.end());
    }
    return normalizer;
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const Step> step, MakeStep(json));
  normalizer.steps_.push_back(std::move(step));
  return normalizer;
}

std::string Normalizer::Normalize(absl::string_view text) const {
  std::string out(text);
  for (const std::shared_ptr<const Step>& step : steps_) out = step->Apply(out);
  return out;
}

}  // namespace tritonrl
