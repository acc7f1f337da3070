// The begin and end tokens that tokenizer.json adds to a text.

#ifndef TRITONRL_MODEL_TOKENIZER_POST_PROCESSOR_H_
#define TRITONRL_MODEL_TOKENIZER_POST_PROCESSOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// Ids before and after the ids of a single text.
struct SpecialIds {
  std::vector<int32_t> prefix, suffix;
};

// Reads the "post_processor" of tokenizer.json: null, ByteLevel (no ids), TemplateProcessing,
// BertProcessing, RobertaProcessing, or a Sequence of these. InvalidArgument names another type, or
// what is wrong in a template.
absl::StatusOr<SpecialIds> ReadPostProcessor(const nlohmann::json& json);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TOKENIZER_POST_PROCESSOR_H_
