#include "model/tokenizer/normalizer.h"

#include <unicode/unorm2.h>
#include <unicode/uset.h>
#include <unicode/ustring.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

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

}  // namespace

// One normalization form for the characters of Unicode 9: the `tokenizers` library has the tables
// of that version and leaves later characters unchanged.
class Normalizer::Form {
 public:
  // Returns InvalidArgument for an unknown name.
  static absl::StatusOr<std::shared_ptr<const Form>> Create(const std::string& name) {
    UErrorCode error = U_ZERO_ERROR;
    const UNormalizer2* normalizer = nullptr;
    if (name == "NFC") normalizer = unorm2_getNFCInstance(&error);
    if (name == "NFD") normalizer = unorm2_getNFDInstance(&error);
    if (name == "NFKC") normalizer = unorm2_getNFKCInstance(&error);
    if (name == "NFKD") normalizer = unorm2_getNFKDInstance(&error);
    if (normalizer == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "normalizer type \"", name, "\" is not supported (NFC, NFD, NFKC, NFKD are)"));
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

  std::string Apply(const std::string& text) const {
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

absl::StatusOr<Normalizer> Normalizer::FromJson(const nlohmann::json& json) {
  Normalizer normalizer;
  if (json.is_null()) return normalizer;
  const std::string type = json.value("type", "");
  if (type == "Sequence") {
    for (const nlohmann::json& part : json.at("normalizers")) {
      ASSIGN_OR_RETURN(const Normalizer one, FromJson(part));
      normalizer.forms_.insert(normalizer.forms_.end(), one.forms_.begin(), one.forms_.end());
    }
    return normalizer;
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const Form> form, Form::Create(type));
  normalizer.forms_.push_back(std::move(form));
  return normalizer;
}

std::string Normalizer::Normalize(absl::string_view text) const {
  std::string out(text);
  // All four forms leave ASCII unchanged.
  if (forms_.empty() || IsAscii(text)) return out;
  for (const std::shared_ptr<const Form>& form : forms_) out = form->Apply(out);
  return out;
}

}  // namespace tritonrl
