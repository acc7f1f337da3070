#include "rollout/serve/openai/response.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "rollout/serve/openai/api_json.h"

namespace tritonrl {
namespace {

using nlohmann::json;

// JSON has no minus infinity; OpenAI writes this number for a practically impossible token.
double FiniteLogProb(float log_prob) { return std::max<double>(log_prob, -9999.0); }

// A token in the form of completions: its text, or its bytes if they are not whole characters.
std::string TokenText(const std::string& bytes) {
  if (IsValidUtf8(bytes)) return bytes;
  std::string text = "bytes:";
  for (const char byte : bytes) {
    absl::StrAppend(&text, "\\x", absl::BytesToHexString(absl::string_view(&byte, 1)));
  }
  return text;
}

json CompletionLogProbs(const CompletionHeader& head, const std::vector<TextToken>& tokens) {
  json texts = json::array(), values = json::array(), offsets = json::array();
  json top = json::array();
  for (const TextToken& token : tokens) {
    const std::string text = TokenText(token.bytes);
    texts.push_back(text);
    values.push_back(FiniteLogProb(token.log_prob));
    offsets.push_back(token.char_start);
    top.push_back({{text, FiniteLogProb(token.log_prob)}});
  }
  return {{"tokens", texts},
          {"token_logprobs", values},
          {"top_logprobs", head.top_log_probs > 0 ? top : json()},
          {"text_offset", offsets}};
}

json ChatLogProbs(const CompletionHeader& head, const std::vector<TextToken>& tokens) {
  json content = json::array();
  for (const TextToken& token : tokens) {
    json bytes = json::array();
    for (const char byte : token.bytes) bytes.push_back(static_cast<unsigned char>(byte));
    json entry = {{"token", RepairUtf8(token.bytes)},
                  {"logprob", FiniteLogProb(token.log_prob)},
                  {"bytes", bytes}};
    json top = json::array();
    if (head.top_log_probs > 0) top.push_back(entry);
    entry["top_logprobs"] = top;
    content.push_back(std::move(entry));
  }
  return {{"content", content}, {"refusal", nullptr}};
}

json LogProbs(const CompletionHeader& head, const std::vector<TextToken>& tokens) {
  if (!head.log_probs) return nullptr;
  return head.chat ? ChatLogProbs(head, tokens) : CompletionLogProbs(head, tokens);
}

json Reason(const ChoiceText& choice) {
  return choice.finish_reason ? json(*choice.finish_reason) : json();
}

json Frame(const CompletionHeader& head, const char* object, json choices) {
  return {{"id", head.id},
          {"object", object},
          {"created", head.created},
          {"model", head.model},
          {"choices", std::move(choices)}};
}

// Adds the fields beside a choice's text.
void AddEnd(const CompletionHeader& head, const ChoiceText& choice, json* entry) {
  (*entry)["index"] = choice.index;
  (*entry)["finish_reason"] = Reason(choice);
  (*entry)["stop_reason"] = choice.stop_reason;
  if (head.token_ids) (*entry)["token_ids"] = choice.token_ids;
}

json CompletionEntry(const CompletionHeader& head, const ChoiceText& choice) {
  json entry = {{"text", choice.piece.text}, {"logprobs", LogProbs(head, choice.piece.tokens)}};
  AddEnd(head, choice, &entry);
  if (head.token_ids && choice.first) {
    entry["prompt_token_ids"] = head.prompts[choice.index / head.n];
  }
  return entry;
}

const char* ChunkObject(const CompletionHeader& head) {
  return head.chat ? "chat.completion.chunk" : "text_completion";
}

json UsageJson(const TokenUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

json DeltaChunk(const CompletionHeader& head, const ChoiceText& choice, json delta) {
  json entry = {
      {"delta", std::move(delta)},
      {"logprobs", choice.piece.tokens.empty() ? json() : LogProbs(head, choice.piece.tokens)}};
  AddEnd(head, choice, &entry);
  return Frame(head, ChunkObject(head), json::array({std::move(entry)}));
}

}  // namespace

json FullResponse(const CompletionHeader& head, const std::vector<ChoiceText>& choices,
                  const TokenUsage& usage) {
  json list = json::array();
  for (const ChoiceText& choice : choices) {
    if (!head.chat) {
      list.push_back(CompletionEntry(head, choice));
      continue;
    }
    json entry = {
        {"message", {{"role", "assistant"}, {"content", choice.piece.text}, {"refusal", nullptr}}},
        {"logprobs", LogProbs(head, choice.piece.tokens)}};
    AddEnd(head, choice, &entry);
    list.push_back(std::move(entry));
  }
  json answer = Frame(head, head.chat ? "chat.completion" : "text_completion", std::move(list));
  answer["usage"] = UsageJson(usage);
  if (head.chat && head.token_ids) answer["prompt_token_ids"] = head.prompts[0];
  return answer;
}

json RoleChunk(const CompletionHeader& head, int index) {
  ChoiceText empty;
  empty.index = index;
  json chunk = DeltaChunk(head, empty, {{"role", "assistant"}, {"content", ""}});
  if (head.token_ids && index == 0) chunk["prompt_token_ids"] = head.prompts[0];
  return chunk;
}

json TextChunk(const CompletionHeader& head, const ChoiceText& choice) {
  if (head.chat) {
    json delta = json::object();
    if (!choice.piece.text.empty()) delta["content"] = choice.piece.text;
    return DeltaChunk(head, choice, std::move(delta));
  }
  return Frame(head, ChunkObject(head), json::array({CompletionEntry(head, choice)}));
}

json UsageChunk(const CompletionHeader& head, const TokenUsage& usage) {
  json chunk = Frame(head, ChunkObject(head), json::array());
  chunk["usage"] = UsageJson(usage);
  return chunk;
}

std::string SseEvent(const json& json) { return absl::StrCat("data: ", JsonText(json), "\n\n"); }

json ModelCard(const std::string& model, int64_t created, int64_t context) {
  return {{"id", model},
          {"object", "model"},
          {"created", created},
          {"owned_by", "tritonrl"},
          {"max_model_len", context}};
}

json ModelList(const std::string& model, int64_t created, int64_t context) {
  return {{"object", "list"}, {"data", json::array({ModelCard(model, created, context)})}};
}

}  // namespace tritonrl
