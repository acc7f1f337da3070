// The shape of a decoder-only transformer, read from and written as Hugging Face `config.json`.

#ifndef TRITONRL_MODEL_WEIGHTS_MODEL_CONFIG_H_
#define TRITONRL_MODEL_WEIGHTS_MODEL_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/weights/rope.h"

namespace tritonrl {

// Families that share one layer structure: RMSNorm, grouped-query attention with RoPE, SwiGLU.
enum class ModelFamily {
  kQwen3,  // RMSNorm over each query and key head before RoPE
  kLlama,  // no query/key norm
  kQwen2,  // no query/key norm; query, key and value projections have biases
};

// Field names in comments are those of `config.json`.
struct ModelConfig {
  ModelFamily family = ModelFamily::kQwen3;  // model_type
  int64_t hidden_size = 0;                   // hidden_size
  int64_t num_layers = 0;                    // num_hidden_layers
  int64_t num_heads = 0;                     // num_attention_heads
  int64_t num_kv_heads = 0;                  // num_key_value_heads; divides num_heads
  int64_t head_dim = 0;                      // head_dim (hidden_size / num_heads if absent); even
  int64_t intermediate_size = 0;             // intermediate_size
  int64_t vocab_size = 0;                    // vocab_size
  int64_t max_positions = 4096;              // max_position_embeddings
  double rope_theta = 10000.0;               // rope_theta, or rope_parameters.rope_theta
  double rms_norm_eps = 1e-6;                // rms_norm_eps
  bool tie_word_embeddings = false;          // tie_word_embeddings
  int64_t bos_token_id = -1;                 // bos_token_id; -1 if null
  std::vector<int64_t> eos_token_ids;        // eos_token_id: one number or a list
  RopeScaling rope_scaling;                  // rope_scaling or rope_parameters
  bool attention_bias = false;               // attention_bias; without effect in kQwen2
  bool mlp_bias = false;                     // mlp_bias (Llama)

  bool qk_norm() const { return family == ModelFamily::kQwen3; }
  // Which projections have biases.
  bool qkv_bias() const { return attention_bias || family == ModelFamily::kQwen2; }
  bool o_bias() const { return attention_bias && family != ModelFamily::kQwen2; }
  bool has_biases() const { return qkv_bias() || mlp_bias; }
  // Query heads that share one key/value head.
  int64_t group_size() const { return num_heads / num_kv_heads; }
  int64_t query_size() const { return num_heads * head_dim; }
  int64_t kv_size() const { return num_kv_heads * head_dim; }
  // Number of parameters, a tied head counted once.
  int64_t NumParameters() const;
};

// ModelConfigPath returns the path of a shipped configuration (model/configs) by name, e.g.
// "qwen3_8b"; it returns a path that ends in .json unchanged. ReadModelShape reads that file.
// InvalidArgument for an unknown name.
absl::StatusOr<std::string> ModelConfigPath(absl::string_view name_or_path);
absl::StatusOr<ModelConfig> ReadModelShape(absl::string_view name_or_path);

// Checks that every size is set and that the sizes are consistent; returns InvalidArgument
// otherwise. `where` names the source in messages.
absl::Status ValidateModelConfig(const ModelConfig& config, const std::string& where);

// Reads `dir`/config.json. Where the file is wrong or silent, the weights of `dir`, if there are
// any, decide: a head that differs from the embedding is a parameter of its own even if the file
// says tie_word_embeddings, and the norms of Qwen3's heads give a missing head_dim. Errors name the
// file and the field; InvalidArgument for a missing, malformed or unsupported field, for a folder
// with only a LoRA adapter, and for a pointer of Git LFS instead of the file.
absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& dir);
// Parses the text of a config.json; `where` names its source in messages.
absl::StatusOr<ModelConfig> ParseModelConfig(const std::string& json_text,
                                             const std::string& where);

// Writes `dir`/config.json, and creates `dir` if it is missing, so that `transformers` builds the
// same model. `torch_dtype` is the type of the weights in `dir`: "float32" or "bfloat16".
absl::Status WriteModelConfig(const ModelConfig& config, const std::string& dir,
                              const std::string& torch_dtype = "float32");

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHTS_MODEL_CONFIG_H_
