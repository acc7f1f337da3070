// Model folders with chat templates for tests: a tokenizer of bytes, no weights.
#ifndef TRITONRL_MODEL_CHAT_TESTING_CHAT_FOLDER_H_
#define TRITONRL_MODEL_CHAT_TESTING_CHAT_FOLDER_H_

#include <stdlib.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "model/chat/testing/byte_tokenizer.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// Turns of ChatML: <|im_start|>role, content, <|im_end|>.
inline constexpr char kChatMl[] = R"({%- for message in messages %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %})";

// ChatML of a thinking model: only the last turn shows its thought, the others their answer;
// enable_thinking=false asks for an answer with an empty thought.
inline constexpr char kThinkingChatMl[] = R"({%- for message in messages %}
  {%- set thought = message.reasoning_content | default('') %}
  {%- set answer = message.content %}
  {%- if message.role == 'assistant' and '</think>' in answer %}
    {%- set thought = answer.split('</think>')[0].split('<think>')[-1].strip('\n') %}
    {%- set answer = answer.split('</think>')[-1].lstrip('\n') %}
  {%- endif %}
  {{- '<|im_start|>' + message.role + '\n' }}
  {%- if message.role == 'assistant' and loop.last %}
    {{- '<think>\n' + thought + '\n</think>\n\n' }}
  {%- endif %}
  {{- answer + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- '<|im_start|>assistant\n' }}
  {%- if enable_thinking is defined and not enable_thinking %}
    {{- '<think>\n\n</think>\n\n' }}
  {%- endif %}
{%- endif %})";

// Turns of Llama 3: headers, contents without white space around them, <|eot_id|>.
inline constexpr char kLlama3Template[] = R"({{- bos_token }}
{%- for message in messages %}
{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' }}
{{- message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %})";

inline Tokenizer QwenLikeTokenizer() {
  return ByteTokenizer({"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, {"<think>", "</think>"});
}

inline Tokenizer LlamaLikeTokenizer() {
  return ByteTokenizer({"<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>",
                        "<|end_header_id|>", "<|eot_id|>"});
}

// A temporary folder that is removed at the end. Errors end the test program.
class ChatFolder {
 public:
  ChatFolder() : dir_(MakeTempDirectory("chat").value()) {}
  // With tokenizer_config.json for this template.
  explicit ChatFolder(const std::string& chat_template, nlohmann::json more = {}) : ChatFolder() {
    nlohmann::json config = {{"chat_template", chat_template},
                             {"tokenizer_class", "PreTrainedTokenizerFast"}};
    config.update(more.is_null() ? nlohmann::json::object() : more);
    Write("tokenizer_config.json", config.dump());
  }
  ~ChatFolder() { (void)RemoveTree(dir_); }
  ChatFolder(const ChatFolder&) = delete;
  ChatFolder& operator=(const ChatFolder&) = delete;

  const std::string& dir() const { return dir_; }
  std::string Path(const std::string& name) const { return JoinPath(dir_, name); }
  void Write(const std::string& name, const std::string& text) const {
    if (!CreateDirectories(DirName(Path(name))).ok() || !WriteFileAtomic(Path(name), text).ok()) {
      abort();
    }
  }

 private:
  const std::string dir_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CHAT_TESTING_CHAT_FOLDER_H_
