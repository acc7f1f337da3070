#ifndef TRITONRL_MODEL_TOKENIZER_NORMALIZER_H_
#define TRITONRL_MODEL_TOKENIZER_NORMALIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// The "normalizer" of tokenizer.json: Unicode normalization forms, or nothing.
class Normalizer {
 public:
  // From null, {"type": "NFC" | "NFD" | "NFKC" | "NFKD"} or a "Sequence" of these; InvalidArgument
  // naming the type for any other.
  static absl::StatusOr<Normalizer> FromJson(const nlohmann::json& json);

  // `text` (valid UTF-8) normalized.
  std::string Normalize(absl::string_view text) const;

 private:
  class Form;

  std::vector<std::shared_ptr<const Form>> forms_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_NORMALIZER_H_
