#include "model/chat/template_files.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;
using NamedTemplates = std::map<std::string, std::string>;

constexpr char kDefault[] = "default";
constexpr const char* kTokenNames[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};

// Text as Python reads a file: line ends become \n.
absl::StatusOr<std::string> ReadText(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return absl::StrReplaceAll(text, {{"\r\n", "\n"}, {"\r", "\n"}});
}

// The object in a JSON file; null if there is no such file.
absl::StatusOr<Json> ReadObject(const std::string& path) {
  if (!FileExists(path)) return Json();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a JSON object"));
  }
  return json;
}

absl::StatusOr<TemplateText> Choose(const std::string& source, const NamedTemplates& templates) {
  const auto found = templates.find(kDefault);
  if (found != templates.end()) return TemplateText{source, found->second};
  return absl::InvalidArgumentError(absl::StrCat(
      source, " has the chat templates ",
      absl::StrJoin(templates, ", ",
                    [](std::string* out, const auto& entry) { out->append(entry.first); }),
      " and none named \"default\"; give the path of one as the chat template"));
}

// The field chat_template of a JSON file: a text, or a list of {"name", "template"}.
absl::StatusOr<TemplateText> TemplateField(const std::string& path) {
  ASSIGN_OR_RETURN(const Json json, ReadObject(path));
  const Json field = json.is_object() ? json.value("chat_template", Json()) : Json();
  if (field.is_null()) return TemplateText();
  const std::string source = absl::StrCat("chat_template of ", path);
  if (field.is_string()) return TemplateText{source, field.get<std::string>()};
  NamedTemplates templates;
  for (const Json& entry : field.is_array() ? field : Json::array({field})) {
    const bool good = entry.is_object() && entry.value("name", Json()).is_string() &&
                      entry.value("template", Json()).is_string();
    if (!good) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, " must be a text or a list of objects with name and template"));
    }
    templates[entry["name"].get<std::string>()] = entry["template"].get<std::string>();
  }
  return Choose(source, templates);
}

absl::StatusOr<TemplateText> TemplateOfJinjaFiles(const std::string& model_dir) {
  const std::string alone = JoinPath(model_dir, "chat_template.jinja");
  const std::string more = JoinPath(model_dir, "additional_chat_templates");
  NamedTemplates templates;
  if (FileExists(alone)) {
    ASSIGN_OR_RETURN(templates[kDefault], ReadText(alone));
  }
  if (DirectoryExists(more)) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(more));
    for (const std::string& name : names) {
      if (!absl::EndsWith(name, ".jinja")) continue;
      const std::string stem(absl::StripSuffix(name, ".jinja"));
      ASSIGN_OR_RETURN(templates[stem], ReadText(JoinPath(more, name)));
    }
  }
  if (templates.empty()) return TemplateText();
  return Choose(FileExists(alone) ? alone : more, templates);
}

// The tokens that a class of tokenizers has unless its configuration says otherwise.
Json TokensOfClass(const std::string& name) {
  const std::string stem(absl::StripSuffix(name, "Fast"));
  if (stem == "LlamaTokenizer") {
    return {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}};
  }
  const char* const end = "<|endoftext|>";
  if (stem == "Qwen2Tokenizer") {
    return {{"eos_token", end}, {"unk_token", end}, {"pad_token", end}};
  }
  if (stem == "GPT2Tokenizer") return {{"bos_token", end}, {"eos_token", end}, {"unk_token", end}};
  return Json::object();
}

// The tokenizer's class: that of tokenizer_config.json, of config.json, or of the model's type.
std::string TokenizerClass(const Json& tokenizer_config, const Json& model_config) {
  for (const Json* config : {&tokenizer_config, &model_config}) {
    const auto it = config->find("tokenizer_class");
    if (it != config->end() && it->is_string()) return it->get<std::string>();
  }
  const auto type = model_config.find("model_type");
  if (type == model_config.end() || !type->is_string()) return "";
  if (*type == "llama") return "LlamaTokenizer";
  return *type == "qwen2" || *type == "qwen3" ? "Qwen2Tokenizer" : "";
}

// A token as text: itself, or the content of an object. Null for everything else.
Json TokenText(const Json& token) {
  if (token.is_string()) return token;
  if (!token.is_object()) return Json();
  const Json content = token.value("content", Json());
  return content.is_string() ? content : Json();
}

// Sets the tokens that `from` names, also those that it sets to null.
void TakeTokens(const Json& from, Json* tokens) {
  for (const char* name : kTokenNames) {
    if (from.contains(name)) (*tokens)[name] = TokenText(from[name]);
  }
  const char* const kMore = "additional_special_tokens";
  if (const auto list = from.find(kMore); list != from.end() && list->is_array()) {
    Json texts = Json::array();
    for (const Json& token : *list) texts.push_back(TokenText(token));
    (*tokens)[kMore] = texts;
  }
  if (const auto own = from.find("extra_special_tokens"); own != from.end() && own->is_object()) {
    for (const auto& [name, token] : own->items()) (*tokens)[name] = TokenText(token);
  }
}

// The tokens before the text in a post_processor of the kind TemplateProcessing.
std::vector<int32_t> TokensBefore(const Json& processor) {
  std::vector<int32_t> ids;
  for (const Json& piece : processor.value("single", Json::array())) {
    if (!piece.contains("SpecialToken")) break;
    const std::string name = piece["SpecialToken"].value("id", "");
    for (const Json& id : processor.at("special_tokens").at(name).at("ids")) {
      ids.push_back(id.get<int32_t>());
    }
  }
  return ids;
}

}  // namespace

absl::StatusOr<TemplateText> FindChatTemplate(const std::string& model_dir) {
  ASSIGN_OR_RETURN(TemplateText found, TemplateOfJinjaFiles(model_dir));
  for (const char* name : {"tokenizer_config.json", "chat_template.json"}) {
    if (!found.text.empty()) break;
    ASSIGN_OR_RETURN(found, TemplateField(JoinPath(model_dir, name)));
  }
  if (found.text.empty()) return TemplateText();
  return found;
}

absl::StatusOr<TemplateText> ReadChatTemplate(const std::string& path) {
  absl::StatusOr<std::string> text = ReadText(path);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat("the chat template ", path,
                                            " does not exist; it must be auto, none or the path "
                                            "of a Jinja file"));
  }
  RETURN_IF_ERROR(text.status());
  if (text->empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the chat template ", path, " is empty"));
  }
  return TemplateText{path, *std::move(text)};
}

absl::StatusOr<nlohmann::json> NamedTokens(const std::string& model_dir) {
  const auto read = [&](const char* name) { return ReadObject(JoinPath(model_dir, name)); };
  ASSIGN_OR_RETURN(Json config, read("tokenizer_config.json"));
  ASSIGN_OR_RETURN(Json old, read("special_tokens_map.json"));
  ASSIGN_OR_RETURN(Json model, read("config.json"));
  for (Json* json : {&config, &old, &model}) {
    if (json->is_null()) *json = Json::object();
  }
  Json tokens = TokensOfClass(TokenizerClass(config, model));
  TakeTokens(config, &tokens);
  // Folders that list their added tokens in tokenizer_config.json name them there too.
  if (!config.contains("added_tokens_decoder")) TakeTokens(old, &tokens);
  Json named = Json::object();
  for (const auto& [name, token] : tokens.items()) {
    if (!token.is_null() && !token.empty() && token != "") named[name] = token;
  }
  return named;
}

absl::StatusOr<std::vector<int32_t>> BeginTokens(const std::string& model_dir) {
  const std::string path = JoinPath(model_dir, "tokenizer.json");
  ASSIGN_OR_RETURN(const Json json, ReadObject(path));
  if (json.is_null()) return std::vector<int32_t>();
  try {
    const Json processor = json.value("post_processor", Json());
    if (!processor.is_object()) return std::vector<int32_t>();
    std::vector<int32_t> ids;
    for (const Json& part : processor.value("processors", Json::array({processor}))) {
      if (part.value("type", "") == "TemplateProcessing") ids = TokensBefore(part);
    }
    return ids;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the post_processor cannot be read: ", error.what()));
  }
}

}  // namespace tritonrl
