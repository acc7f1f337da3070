// Shows what a model folder's chat template makes of conversations. Standard input has one JSON
// object a line: {"messages": [{"role", "content"}, ...], "add_generation_prompt": true (default)}.
// Standard output has a line about the template, then one for each conversation: its text and
// tokens, or the error.

#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "model/chat/chat_template.h"
#include "nlohmann/json.hpp"

ABSL_FLAG(std::string, model, "", "Folder with tokenizer.json and the template.");
ABSL_FLAG(std::string, chat_template, "auto", "auto, none, or the path of a Jinja file.");
ABSL_FLAG(std::optional<bool>, enable_thinking, std::nullopt,
          "The template's variable enable_thinking; not given: the template's own default.");
ABSL_FLAG(std::string, chat_arguments, "", "More variables of the template, as a JSON object.");

namespace tritonrl {
namespace {

using Json = nlohmann::json;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<ChatMessage> ReadMessages(const Json& list) {
  std::vector<ChatMessage> messages;
  for (const Json& entry : list) {
    ChatMessage message{entry.at("role").get<std::string>(), entry.at("content").get<std::string>(),
                        std::nullopt};
    if (entry.contains("reasoning_content")) {
      message.reasoning = entry["reasoning_content"].get<std::string>();
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

absl::StatusOr<Json> Answer(const ChatTemplate& chat, const std::string& line) {
  try {
    const Json request = Json::parse(line);
    const std::vector<ChatMessage> messages = ReadMessages(request.at("messages"));
    const bool prompt = request.value("add_generation_prompt", true);
    ASSIGN_OR_RETURN(const std::string text, chat.Render(messages, prompt));
    ASSIGN_OR_RETURN(const std::vector<int32_t> ids, chat.Encode(messages, prompt));
    return Json{{"text", text}, {"ids", ids}};
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not a conversation: ", error.what()));
  }
}

absl::Status Run() {
  const std::string dir = UserPath(absl::GetFlag(FLAGS_model));
  ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(JoinPath(dir, "tokenizer.json")));
  ChatOptions options;
  options.chat_template = absl::GetFlag(FLAGS_chat_template);
  options.enable_thinking = absl::GetFlag(FLAGS_enable_thinking);
  options.arguments = absl::GetFlag(FLAGS_chat_arguments);
  ASSIGN_OR_RETURN(const ChatTemplate chat, ChatTemplate::Load(dir, options, tokenizer));
  const EndOfTurn& end = chat.end_of_turn();
  std::cout << Dump({{"template", chat.source()},
                     {"end_of_turn", end.text},
                     {"end_of_turn_ids", end.ids}})
            << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const absl::StatusOr<Json> answer = Answer(chat, line);
    std::cout << Dump(answer.ok() ? *answer : Json{{"error", Message(answer.status())}})
              << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram(
      "Shows the text and tokens that a model's chat template makes of conversations.\n"
      "  bazel run //model/chat:render -- --model=FOLDER < conversations.jsonl",
      argc, argv);
  const absl::Status status = tritonrl::Run();
  if (!status.ok()) {
    std::cerr << "render: " << tritonrl::Message(status) << "\n";
    return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? 2 : 1;
  }
  return 0;
}
