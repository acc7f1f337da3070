// Unicode normalization of a text before it is tokenized.

#ifndef TRITONRL_MODEL_TOKENIZER_NORMALIZER_H_
#define TRITONRL_MODEL_TOKENIZER_NORMALIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// The "normalizer" of tokenizer.json: a sequence of Unicode normalization forms, maybe empty.
class Normalizer {
 public:
  // Reads null, {"type": "NFC" | "NFD" | "NFKC" | "NFKD"} or a "Sequence" of these. For any other
  // type returns InvalidArgument that names it.
  static absl::StatusOr<Normalizer> FromJson(const nlohmann::json& json);

  // Returns `text` (valid UTF-8) normalized.
  std::string Normalize(absl::string_view text) const;

 private:
  class Form;

  std::vector<std::shared_ptr<const Form>> forms_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_NORMALIZER_H_
