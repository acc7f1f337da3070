#include "model/tokenizer/post_processor.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

// Reads "single", a list such as [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}].
absl::StatusOr<SpecialIds> ReadTemplate(const Json& json) {
  SpecialIds ids;
  const Json tokens = json.value("special_tokens", Json::object());
  int texts = 0;
  for (const Json& part : json.at("single")) {
    if (part.contains("Sequence") && part.at("Sequence").value("id", "") == "A") {
      ++texts;
      continue;
    }
    const std::string name =
        part.contains("SpecialToken") ? part.at("SpecialToken").value("id", "") : "";
    if (!tokens.contains(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("post_processor's template has the part ", part.dump(),
                       ", which is neither the text nor one of its special_tokens"));
    }
    for (const Json& id : tokens.at(name).at("ids")) {
      (texts > 0 ? ids.suffix : ids.prefix).push_back(id.get<int32_t>());
    }
  }
  if (texts != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "post_processor's template for a single text names it ", texts, " times, not once"));
  }
  return ids;
}

}  // namespace

absl::StatusOr<SpecialIds> ReadPostProcessor(const Json& json) {
  SpecialIds ids;
  if (json.is_null()) return ids;
  const std::string type = json.value("type", "");
  if (type == "ByteLevel") return ids;
  if (type == "TemplateProcessing") return ReadTemplate(json);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    // Pairs of a token and its id.
    ids.prefix = {json.at("cls").at(1).get<int32_t>()};
    ids.suffix = {json.at("sep").at(1).get<int32_t>()};
    return ids;
  }
  if (type == "Sequence") {
    for (const Json& part : json.at("processors")) {
      ASSIGN_OR_RETURN(const SpecialIds outer, ReadPostProcessor(part));
      ids.prefix.insert(ids.prefix.begin(), outer.prefix.begin(), outer.prefix.end());
      ids.suffix.insert(ids.suffix.end(), outer.suffix.begin(), outer.suffix.end());
    }
    return ids;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("post_processor type \"", type,
                   "\" is not supported (ByteLevel, TemplateProcessing, BertProcessing, "
                   "RobertaProcessing are)"));
}

}  // namespace tritonrl
