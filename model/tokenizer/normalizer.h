// Normalization of a text before it is tokenized.

#ifndef TRITONRL_MODEL_TOKENIZER_NORMALIZER_H_
#define TRITONRL_MODEL_TOKENIZER_NORMALIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// The "normalizer" of tokenizer.json: a sequence of steps, maybe empty.
class Normalizer {
 public:
  // Reads null, a Unicode normalization form (NFC, NFD, NFKC, NFKD), Lowercase, Replace, Prepend,
  // Strip, or a Sequence of these. For any other type returns InvalidArgument that names it.
  static absl::StatusOr<Normalizer> FromJson(const nlohmann::json& json);

  // Returns `text` (valid UTF-8) normalized.
  std::string Normalize(absl::string_view text) const;

 private:
  class Step;
  class Form;
  class Lowercase;
  class Replace;
  class Prepend;
  class Strip;

  static absl::StatusOr<std::shared_ptr<const Step>> MakeStep(const nlohmann::json& json);

  std::vector<std::shared_ptr<const Step>> steps_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_NORMALIZER_H_
