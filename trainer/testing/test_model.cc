#include "trainer/testing/test_model.h"

#include <cstdio>
#include <cstdlib>

#include "absl/status/status.h"
#include "base/file.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

// The character, as UTF-8, that byte-level BPE files use for a byte (GPT-2's table).
std::string ByteCharacter(int byte) {
  const auto printable = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  };
  int code = byte;
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

nlohmann::json AddedToken(int id, const std::string& content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

}  // namespace

ModelConfig TinyModelConfig() {
  ModelConfig config;
  config.hidden_size = 32;
  config.num_layers = 2;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 8;
  config.intermediate_size = 64;
  config.vocab_size = 272;
  config.max_positions = 512;
  config.tie_word_embeddings = true;
  config.eos_token_ids = {258};
  return config;
}

void WriteTinyModel(const std::string& dir) {
  Check(CreateDirectories(dir));
  Check(WriteModelConfig(TinyModelConfig(), dir));
  nlohmann::json vocab;
  for (int byte = 0; byte < 256; ++byte) vocab[ByteCharacter(byte)] = byte;
  const nlohmann::json byte_level = {{"type", "ByteLevel"},
                                     {"add_prefix_space", false},
                                     {"trim_offsets", true},
                                     {"use_regex", true}};
  const nlohmann::json tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens",
       {AddedToken(256, "<think>"), AddedToken(257, "</think>"), AddedToken(258, "<|endoftext|>")}},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"vocab", vocab},
        {"merges", nlohmann::json::array()}}}};
  Check(WriteFileAtomic(JoinPath(dir, "tokenizer.json"), tokenizer.dump()));
}

PolicyConfig TinyPolicyConfig(const std::string& dir) {
  PolicyConfig config;
  config.set_dir(dir);
  config.set_random_init(true);
  config.set_device("cpu");
  return config;
}

Policy LoadTinyPolicy(const std::string& dir) {
  WriteTinyModel(dir);
  absl::StatusOr<Policy> policy = LoadPolicy(TinyPolicyConfig(dir), {.threads = 1});
  Check(policy.status());
  return *std::move(policy);
}

}  // namespace tritonrl
