#include "model/chat/template_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;

class TemplateFilesTest : public testing::Test {
 protected:
  TemplateFilesTest() : dir_(MakeTempDirectory("template_files").value()) {}
  ~TemplateFilesTest() override { (void)RemoveTree(dir_); }

  void Write(const std::string& name, const std::string& text) {
    const std::string path = JoinPath(dir_, name);
    ASSERT_TRUE(CreateDirectories(DirName(path)).ok());
    ASSERT_TRUE(WriteFileAtomic(path, text).ok());
  }
  // The template's text, or the error's message.
  std::string Found() {
    const auto found = FindChatTemplate(dir_);
    return found.ok() ? found->text : Message(found.status());
  }
  std::string Tokens() { return NamedTokens(dir_).value().dump(); }

  const std::string dir_;
};

TEST_F(TemplateFilesTest, TheFilesComeInTheOrderOfTransformers) {
  EXPECT_EQ(FindChatTemplate(dir_)->source, "none");
  Write("chat_template.json", R"({"chat_template": "of a processor"})");
  EXPECT_EQ(Found(), "of a processor");
  Write("tokenizer_config.json", R"({"chat_template": null})");
  EXPECT_EQ(Found(), "of a processor");
  Write("tokenizer_config.json", R"({"chat_template": "of the config"})");
  EXPECT_EQ(Found(), "of the config");
  EXPECT_EQ(FindChatTemplate(dir_)->source,
            "chat_template of " + JoinPath(dir_, "tokenizer_config.json"));
  Write("tokenizer_config.json",
        R"({"chat_template": [{"name": "tool_use", "template": "tools"},
                              {"name": "default", "template": "first of two"}]})");
  EXPECT_EQ(Found(), "first of two");
  Write("chat_template.jinja", "a\r\nfile");
  EXPECT_EQ(Found(), "a\nfile");
  Write("additional_chat_templates/tool_use.jinja", "tools");
  EXPECT_EQ(Found(), "a\nfile");
}

TEST_F(TemplateFilesTest, SeveralWithoutADefaultAreRefused) {
  Write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "x"},
                                                       {"name": "tool_use", "template": "y"}]})");
  EXPECT_THAT(Found(), HasSubstr("chat templates rag, tool_use and none named \"default\""));
  Write("additional_chat_templates/brief.jinja", "z");
  EXPECT_THAT(Found(), HasSubstr("chat templates brief and none"));
}

TEST_F(TemplateFilesTest, DamagedFilesAreNamed) {
  Write("tokenizer_config.json", "{");
  EXPECT_EQ(Found(), JoinPath(dir_, "tokenizer_config.json") + " is not a JSON object");
  Write("tokenizer_config.json", R"({"chat_template": 7})");
  EXPECT_THAT(Found(), HasSubstr("must be a text or a list of objects"));
  EXPECT_TRUE(absl::IsNotFound(ReadChatTemplate(JoinPath(dir_, "none.jinja")).status()));
  Write("empty.jinja", "");
  EXPECT_THAT(Message(ReadChatTemplate(JoinPath(dir_, "empty.jinja")).status()),
              HasSubstr("is empty"));
}

TEST_F(TemplateFilesTest, NamedTokens) {
  EXPECT_EQ(Tokens(), "{}");
  Write("config.json", R"({"model_type": "llama"})");
  EXPECT_EQ(Tokens(), R"({"bos_token":"<s>","eos_token":"</s>","unk_token":"<unk>"})");
  // What is null in the file is not the class's.
  Write("tokenizer_config.json",
        R"({"tokenizer_class": "Qwen2Tokenizer", "eos_token": {"content": "<|im_end|>"},
            "unk_token": null, "pad_token": "<|endoftext|>",
            "additional_special_tokens": ["<|im_start|>", {"content": "<|x|>"}]})");
  EXPECT_EQ(Tokens(),
            R"({"additional_special_tokens":["<|im_start|>","<|x|>"],"eos_token":"<|im_end|>",)"
            R"("pad_token":"<|endoftext|>"})");
}

TEST_F(TemplateFilesTest, TheOldMapOfTokensCountsInOldFoldersAlone) {
  Write("special_tokens_map.json", R"({"bos_token": "<old>"})");
  Write("tokenizer_config.json", R"({"bos_token": "<new>"})");
  EXPECT_EQ(Tokens(), R"({"bos_token":"<old>"})");
  Write("tokenizer_config.json", R"({"bos_token": "<new>", "added_tokens_decoder": {}})");
  EXPECT_EQ(Tokens(), R"({"bos_token":"<new>"})");
}

}  // namespace
}  // namespace tritonrl
