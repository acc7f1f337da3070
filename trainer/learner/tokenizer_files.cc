#include "trainer/learner/tokenizer_files.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "model/chat/template_files.h"
#include "model/weights/stop_tokens.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kGenerationConfig[] = "generation_config.json";
constexpr char kMoreTemplates[] = "additional_chat_templates";

// Files that `transformers` reads in addition to config.json and the weights.
constexpr const char* kTokenizerFiles[] = {"tokenizer.json",
                                           "tokenizer_config.json",
                                           "special_tokens_map.json",
                                           "added_tokens.json",
                                           "vocab.json",
                                           "merges.txt",
                                           "chat_template.jinja",
                                           "chat_template.json",
                                           kGenerationConfig};

absl::Status CheckStopTokens(const Policy& policy) {
  const std::string& dir = policy.folder;
  if (policy.stop_tokens.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        dir,
        "/config.json: eos_token_id is missing, as in generation_config.json; it is the token "
        "that ends a response"));
  }
  for (const int32_t id : policy.stop_tokens) {
    if (id >= 0 && id < policy.config.vocab_size) continue;
    return absl::InvalidArgumentError(absl::StrCat(dir, "/config.json: eos_token_id ", id,
                                                   " lies outside the vocabulary of ",
                                                   policy.config.vocab_size));
  }
  return absl::OkStatus();
}

absl::Status CopyIfThere(const std::string& from, const std::string& to) {
  if (!FileExists(from) || from == to) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string contents, ReadFile(from));
  return WriteFileAtomic(to, contents);
}

absl::Status SaveTemplates(const Policy& policy, const std::string& dir) {
  const std::string more = JoinPath(policy.folder, kMoreTemplates);
  if (DirectoryExists(more) && policy.folder != dir) {
    RETURN_IF_ERROR(CreateDirectories(JoinPath(dir, kMoreTemplates)));
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(more));
    for (const std::string& name : names) {
      if (!absl::EndsWith(name, ".jinja")) continue;
      RETURN_IF_ERROR(
          CopyIfThere(JoinPath(more, name), JoinPath(JoinPath(dir, kMoreTemplates), name)));
    }
  }
  if (policy.chat == nullptr || policy.chat->plain()) return absl::OkStatus();
  // The policy learned another template than that of its folder.
  const absl::StatusOr<TemplateText> found = FindChatTemplate(policy.folder);
  if (found.ok() && found->text == policy.chat->text()) return absl::OkStatus();
  return WriteFileAtomic(JoinPath(dir, "chat_template.jinja"), policy.chat->text());
}

// The ids that eos_token_id names: none, one or a list.
std::vector<int64_t> EosIds(const Json& config) {
  const auto eos = config.find("eos_token_id");
  if (eos == config.end()) return {};
  if (eos->is_number_integer()) return {eos->get<int64_t>()};
  std::vector<int64_t> ids;
  if (!eos->is_array()) return ids;
  for (const Json& id : *eos) {
    if (id.is_number_integer()) ids.push_back(id.get<int64_t>());
  }
  return ids;
}

absl::Status SaveGenerationConfig(const Policy& policy, const std::string& dir) {
  const std::string from = JoinPath(policy.folder, kGenerationConfig);
  Json config = Json::object();
  if (FileExists(from)) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(from));
    config = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!config.is_object()) {
      return absl::InvalidArgumentError(absl::StrCat(from, " is not a JSON object"));
    }
  }
  // Without the field, transformers takes that of config.json.
  std::vector<int64_t> ids = EosIds(config);
  if (ids.empty()) ids = policy.config.eos_token_ids;
  if (std::find(ids.begin(), ids.end(), policy.end_token()) != ids.end()) return absl::OkStatus();
  ids.push_back(policy.end_token());
  config["eos_token_id"] = ids;
  return WriteFileAtomic(JoinPath(dir, kGenerationConfig), config.dump(2) + "\n");
}

}  // namespace

int32_t Policy::end_token() const {
  if (chat != nullptr && !chat->end_of_turn().empty()) return chat->end_of_turn().stop_id();
  if (!config.eos_token_ids.empty()) return static_cast<int32_t>(config.eos_token_ids.front());
  return stop_tokens.front();
}

absl::Status LoadTokenizerFiles(const ChatConfig& config, Policy* policy) {
  const std::string& dir = policy->folder;
  ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Load(JoinPath(dir, "tokenizer.json")));
  RETURN_IF_ERROR(tokenizer.CheckFits(policy->config.vocab_size, dir));
  ChatOptions options;
  options.chat_template = config.template_();
  if (config.has_enable_thinking()) options.enable_thinking = config.enable_thinking();
  options.arguments = config.arguments();
  absl::StatusOr<ChatTemplate> chat = ChatTemplate::Load(dir, options, tokenizer);
  if (!chat.ok()) return AddContext(chat.status(), "policy.chat");
  ASSIGN_OR_RETURN(std::vector<int32_t> stop_tokens, StopTokens(dir));
  policy->tokenizer = std::make_shared<const Tokenizer>(std::move(tokenizer));
  policy->stop_tokens = chat->WithEndOfTurn(std::move(stop_tokens));
  policy->chat = std::make_shared<const ChatTemplate>(*std::move(chat));
  return CheckStopTokens(*policy);
}

absl::Status SaveTokenizerFiles(const Policy& policy, const std::string& dir) {
  for (const char* name : kTokenizerFiles) {
    RETURN_IF_ERROR(CopyIfThere(JoinPath(policy.folder, name), JoinPath(dir, name)));
  }
  RETURN_IF_ERROR(SaveTemplates(policy, dir));
  return SaveGenerationConfig(policy, dir);
}

}  // namespace tritonrl
