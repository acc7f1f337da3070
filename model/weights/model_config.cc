#include "model/weights/model_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/git_lfs.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "model/weights/config_fields.h"
#include "model/weights/model_folder.h"
#include "model/weights/safetensors.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

// model_type of each family.
constexpr std::pair<const char*, ModelFamily> kFamilies[] = {
    {"qwen3", ModelFamily::kQwen3}, {"llama", ModelFamily::kLlama}, {"qwen2", ModelFamily::kQwen2}};

// Refuses settings that change the computation and that this implementation does not support.
void RefuseUnsupported(const Json& json, ConfigFields* fields) {
  bool sliding = false;
  fields->Bool("use_sliding_window", &sliding);
  if (sliding) fields->Fail("use_sliding_window", "is true, which is not supported");
  if (fields->Has("layer_types")) {
    for (const Json& type : json.at("layer_types")) {
      if (type == "full_attention") continue;
      fields->Fail("layer_types",
                   absl::StrCat("names ", type.dump(), "; only \"full_attention\" is supported"));
    }
  }
  if (fields->Has("hidden_act") && json.at("hidden_act") != "silu") {
    fields->Fail("hidden_act",
                 absl::StrCat("is ", json.at("hidden_act").dump(), "; only \"silu\" is supported"));
  }
  for (const char* field : {"quantization_config", "compression_config"}) {
    if (!fields->Has(field)) continue;
    const Json& quantization = json.at(field);
    const std::string method =
        quantization.is_object() && quantization.contains("quant_method")
            ? absl::StrCat(" (quant_method ", quantization.at("quant_method").dump(), ")")
            : "";
    fields->Fail(field,
                 absl::StrCat("says that the weights are quantized", method,
                              ", which is not supported; use the bf16 weights of the model"));
  }
}

std::optional<ModelFamily> FamilyNamed(const std::string& type) {
  for (const auto& [name, family] : kFamilies) {
    if (type == name) return family;
  }
  return std::nullopt;
}

void ReadSpecialTokens(const Json& json, ConfigFields* fields, ModelConfig* config) {
  if (fields->Has("bos_token_id")) fields->Integer("bos_token_id", false, &config->bos_token_id);
  if (!fields->Has("eos_token_id")) return;
  const Json& eos = json.at("eos_token_id");
  for (const Json& id : eos.is_array() ? eos : Json::array({eos})) {
    if (!id.is_number_integer()) {
      return fields->Fail("eos_token_id", "must be a whole number or a list of them");
    }
    config->eos_token_ids.push_back(id.get<int64_t>());
  }
}

}  // namespace

int64_t ModelConfig::NumParameters() const {
  int64_t layer = hidden_size * (query_size() + 2 * kv_size()) + query_size() * hidden_size +
                  3 * hidden_size * intermediate_size + 2 * hidden_size;
  if (qk_norm()) layer += 2 * head_dim;
  if (qkv_bias()) layer += query_size() + 2 * kv_size();
  if (o_bias()) layer += hidden_size;
  if (mlp_bias) layer += 2 * intermediate_size + hidden_size;
  const int64_t embedding = vocab_size * hidden_size;
  return num_layers * layer + hidden_size + (tie_word_embeddings ? 1 : 2) * embedding;
}

absl::Status ValidateModelConfig(const ModelConfig& config, const std::string& where) {
  constexpr int64_t kMaxSize = int64_t{1} << 31;
  const std::pair<const char*, int64_t> sizes[] = {
      {"hidden_size", config.hidden_size},
      {"num_hidden_layers", config.num_layers},
      {"num_attention_heads", config.num_heads},
      {"num_key_value_heads", config.num_kv_heads},
      {"head_dim", config.head_dim},
      {"intermediate_size", config.intermediate_size},
      {"vocab_size", config.vocab_size},
      {"max_position_embeddings", config.max_positions}};
  for (const auto& [field, value] : sizes) {
    if (value < 1 || value > kMaxSize) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": field ", field, " is ", value, ", must be from 1 to ", kMaxSize));
    }
  }
  if (config.num_heads % config.num_kv_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": num_attention_heads ", config.num_heads,
                     " is not a multiple of num_key_value_heads ", config.num_kv_heads));
  }
  if (config.head_dim % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": head_dim ", config.head_dim, " must be even for RoPE"));
  }
  if (!(config.rope_theta > 0) || !(config.rms_norm_eps > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": rope_theta and rms_norm_eps must be positive"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelConfig> ParseModelConfig(const std::string& json_text,
                                             const std::string& where) {
  const Json json = Json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": not a JSON object"));
  }
  ModelConfig config;
  ConfigFields fields(json, where);
  const std::string type =
      json.contains("model_type") && json.at("model_type").is_string() ? json.at("model_type") : "";
  const std::optional<ModelFamily> family = FamilyNamed(type);
  if (!family) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": field model_type is \"", type,
                     "\"; \"qwen3\", \"qwen2\" and \"llama\" are supported"));
  }
  config.family = *family;
  fields.Integer("hidden_size", true, &config.hidden_size);
  fields.Integer("num_hidden_layers", true, &config.num_layers);
  fields.Integer("num_attention_heads", true, &config.num_heads);
  config.num_kv_heads = config.num_heads;
  fields.Integer("num_key_value_heads", false, &config.num_kv_heads);
  if (config.num_heads > 0) config.head_dim = config.hidden_size / config.num_heads;
  fields.Integer("head_dim", false, &config.head_dim);
  fields.Integer("intermediate_size", true, &config.intermediate_size);
  fields.Integer("vocab_size", true, &config.vocab_size);
  fields.Integer("max_position_embeddings", false, &config.max_positions);
  fields.Number("rms_norm_eps", false, &config.rms_norm_eps);
  fields.Bool("tie_word_embeddings", &config.tie_word_embeddings);
  if (config.family != ModelFamily::kQwen2) fields.Bool("attention_bias", &config.attention_bias);
  if (config.family == ModelFamily::kLlama) fields.Bool("mlp_bias", &config.mlp_bias);
  ReadRope(json, where, config.max_positions, &fields, &config.rope_theta, &config.rope_scaling);
  RefuseUnsupported(json, &fields);
  ReadSpecialTokens(json, &fields, &config);
  RETURN_IF_ERROR(fields.status());
  RETURN_IF_ERROR(ValidateModelConfig(config, where));
  return config;
}

namespace {

// Corrects *config, read from `json`, by the weights of `dir`, see the header.
absl::Status CorrectByWeights(const Json& json, const std::string& dir, ModelConfig* config) {
  const bool no_head_dim = config->qk_norm() && json.value("head_dim", Json()).is_null();
  if (!config->tie_word_embeddings && !no_head_dim) return absl::OkStatus();
  const absl::StatusOr<SafetensorsReader> reader = SafetensorsReader::OpenFolder(dir);
  if (!reader.ok()) return absl::OkStatus();  // loading the weights reports it
  const auto find = [&](const char* name) {
    const auto found = reader->entries().find(name);
    return found == reader->entries().end() ? nullptr : &found->second;
  };
  const SafetensorsEntry* norm = find("model.layers.0.self_attn.q_norm.weight");
  if (no_head_dim && norm != nullptr && norm->shape.size() == 1) config->head_dim = norm->shape[0];
  const SafetensorsEntry* head = find("lm_head.weight");
  const SafetensorsEntry* embedding = find("model.embed_tokens.weight");
  if (config->tie_word_embeddings && head != nullptr && embedding != nullptr) {
    ASSIGN_OR_RETURN(config->tie_word_embeddings, SameElements(*head, *embedding));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& dir) {
  const std::string path = JoinPath(dir, "config.json");
  if (!FileExists(path) && FileExists(JoinPath(dir, "adapter_config.json"))) {
    return AdapterError(dir);
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  RETURN_IF_ERROR(RefuseGitLfsPointer(text, path));
  ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(text, path));
  RETURN_IF_ERROR(CorrectByWeights(Json::parse(text), dir, &config));
  RETURN_IF_ERROR(ValidateModelConfig(config, path));
  return config;
}

absl::Status WriteModelConfig(const ModelConfig& config, const std::string& dir,
                              const std::string& torch_dtype) {
  RETURN_IF_ERROR(ValidateModelConfig(config, JoinPath(dir, "config.json")));
  const bool llama = config.family == ModelFamily::kLlama;
  const bool qwen3 = config.family == ModelFamily::kQwen3;
  nlohmann::ordered_json json = {
      {"architectures",
       {llama ? "LlamaForCausalLM" : (qwen3 ? "Qwen3ForCausalLM" : "Qwen2ForCausalLM")}},
      {"model_type", llama ? "llama" : (qwen3 ? "qwen3" : "qwen2")},
      {"hidden_size", config.hidden_size},
      {"num_hidden_layers", config.num_layers},
      {"num_attention_heads", config.num_heads},
      {"num_key_value_heads", config.num_kv_heads},
      {"head_dim", config.head_dim},
      {"intermediate_size", config.intermediate_size},
      {"vocab_size", config.vocab_size},
      {"max_position_embeddings", config.max_positions},
      {"rope_theta", config.rope_theta},
      {"rms_norm_eps", config.rms_norm_eps},
      {"tie_word_embeddings", config.tie_word_embeddings},
      {"hidden_act", "silu"},
      {"attention_bias", config.attention_bias},
      {"attention_dropout", 0.0},
      {"initializer_range", 0.02},
      {"use_cache", true},
      {"torch_dtype", torch_dtype}};
  if (config.mlp_bias) json["mlp_bias"] = true;
  if (!llama) {
    json["use_sliding_window"] = false;
    json["max_window_layers"] = config.num_layers;
  }
  if (config.rope_scaling.type != RopeType::kDefault) {
    json["rope_scaling"] = RopeScalingJson(config.rope_scaling);
  }
  json["bos_token_id"] = config.bos_token_id < 0 ? Json() : Json(config.bos_token_id);
  if (config.eos_token_ids.size() == 1) {
    json["eos_token_id"] = config.eos_token_ids[0];
  } else {
    json["eos_token_id"] = config.eos_token_ids.empty() ? Json() : Json(config.eos_token_ids);
  }
  RETURN_IF_ERROR(CreateDirectories(dir));
  return WriteFileAtomic(JoinPath(dir, "config.json"), json.dump(2) + "\n");
}

absl::StatusOr<std::string> ModelConfigPath(absl::string_view name_or_path) {
  const std::string name(name_or_path);
  if (absl::EndsWith(name, ".json")) return name;
  ASSIGN_OR_RETURN(const std::string folder, Runfile("model/configs"));
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(folder));
  for (std::string& known : names) known = std::string(absl::StripSuffix(known, ".json"));
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no model configuration \"", name,
                                                   "\"; known are ", absl::StrJoin(names, ", "),
                                                   ", or give the path of a config.json"));
  }
  return JoinPath(folder, name + ".json");
}

absl::StatusOr<ModelConfig> ReadModelShape(absl::string_view name_or_path) {
  ASSIGN_OR_RETURN(const std::string path, ModelConfigPath(name_or_path));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseModelConfig(text, path);
}

}  // namespace tritonrl
