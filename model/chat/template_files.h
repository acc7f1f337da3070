// What a model folder says about its chat template.
#ifndef TRITONRL_MODEL_CHAT_TEMPLATE_FILES_H_
#define TRITONRL_MODEL_CHAT_TEMPLATE_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// A Jinja2 template and where it came from.
struct TemplateText {
  std::string source = "none";  // a file's path, maybe with a field
  std::string text;             // empty: none
};

// Returns the template that `transformers` would use for text: chat_template.jinja and the folder
// additional_chat_templates, else the field chat_template of tokenizer_config.json, else
// chat_template.json (which only `transformers`' processors read). Of several named ones it is
// "default". Errors: InvalidArgument for a file or field that is malformed and for several
// templates without a default; those of ReadFile.
absl::StatusOr<TemplateText> FindChatTemplate(const std::string& model_dir);

// Returns the template of the file `path`. NotFound; InvalidArgument for an empty file.
absl::StatusOr<TemplateText> ReadChatTemplate(const std::string& path);

// Returns the folder's named tokens ("bos_token": "<s>", ...) as `transformers` gives them to a
// template: those of tokenizer_config.json, in old folders of special_tokens_map.json, else those
// of the tokenizer's class. InvalidArgument for a file that is no JSON object.
absl::StatusOr<nlohmann::json> NamedTokens(const std::string& model_dir);

// Returns the tokens that the post_processor of tokenizer.json puts before a text, such as
// <|begin_of_text|>; none for most models, and for a folder without the file. InvalidArgument for a
// file that is no JSON object.
absl::StatusOr<std::vector<int32_t>> BeginTokens(const std::string& model_dir);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CHAT_TEMPLATE_FILES_H_
