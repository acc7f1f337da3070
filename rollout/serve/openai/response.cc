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

// The first `count` alternatives of a token.
std::span<const AlternativeToken> TopOf(const TextToken& token, int count) {
  return std::span(token.top).first(std::min<size_t>(count, token.top.size()));
}

// The alternatives by text, with the token itself. Of tokens with the same text the most likely
// stays.
json CompletionAlternatives(const TextToken& token, int count) {
  if (!token.log_prob) return nullptr;
  json top = json::object();
  for (const AlternativeToken& other : TopOf(token, count)) {
    top.emplace(TokenText(other.bytes), FiniteLogProb(other.log_prob));
  }
  top.emplace(TokenText(token.bytes), FiniteLogProb(*token.log_prob));
  return top;
}

json CompletionLogProbs(const CompletionHeader& head, const std::vector<TextToken>& tokens) {
  json texts = json::array(), values = json::array(), offsets = json::array();
  json top = json::array();
  for (const TextToken& token : tokens) {
    texts.push_back(TokenText(token.bytes));
    values.push_back(token.log_prob ? json(FiniteLogProb(*token.log_prob)) : json());
    offsets.push_back(token.char_start);
    if (head.top_log_probs > 0) top.push_back(CompletionAlternatives(token, head.top_log_probs));
  }
  return {{"tokens", texts},
          {"token_logprobs", values},
          {"top_logprobs", head.top_log_probs > 0 ? top : json()},
          {"text_offset", offsets}};
}

json ChatToken(const std::string& token, float log_prob) {
  json bytes = json::array();
  for (const char byte : token) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", RepairUtf8(token)}, {"logprob", FiniteLogProb(log_prob)}, {"bytes", bytes}};
}

json ChatLogProbs(const CompletionHeader& head, const std::vector<TextToken>& tokens) {
  json content = json::array();
  for (const TextToken& token : tokens) {
    json entry = ChatToken(token.bytes, token.log_prob.value_or(0));
    json top = json::array();
    for (const AlternativeToken& other : TopOf(token, head.top_log_probs)) {
      top.push_back(ChatToken(other.bytes, other.log_prob));
    }
    entry["top_logprobs"] = std::move(top);
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
  if (!choice.prompt_log_probs.is_null()) entry["prompt_logprobs"] = choice.prompt_log_probs;
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

json PromptLogProbsJson(const Tokenizer& tokenizer, const GenerateRequest::PromptLogProbs& prompt,
                        int top) {
  json list = json::array({nullptr});
  for (const TokenLogProbs& position : prompt) {
    json entry = json::object();
    const auto add = [&](const TokenLogProb& token, int64_t rank) {
      entry[absl::StrCat(token.token)] = {
          {"logprob", FiniteLogProb(token.log_prob)},
          {"rank", rank},
          {"decoded_token", RepairUtf8(tokenizer.TokenBytes(token.token))}};
    };
    for (size_t i = 0; i < std::min<size_t>(top, position.top.size()); ++i) {
      add(position.top[i], static_cast<int64_t>(i) + 1);
    }
    add(position.token, position.rank);
    list.push_back(std::move(entry));
  }
  return list;
}

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
  if (head.chat && !choices.empty() && !choices[0].prompt_log_probs.is_null()) {
    answer["prompt_logprobs"] = choices[0].prompt_log_probs;
  }
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
