#include "model/weights/model_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

// Reads fields of one JSON object. status() is the first error; it names the source and the field.
class FieldReader {
 public:
  FieldReader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  bool Has(const char* field) const {
    return object_.contains(field) && !object_.at(field).is_null();
  }

  void Integer(const char* field, bool required, int64_t* value) {
    if (!Has(field)) return Missing(field, required);
    if (!object_.at(field).is_number_integer()) return Fail(field, "must be a whole number");
    *value = object_.at(field).get<int64_t>();
  }

  void Number(const char* field, bool required, double* value) {
    if (!Has(field)) return Missing(field, required);
    if (!object_.at(field).is_number()) return Fail(field, "must be a number");
    *value = object_.at(field).get<double>();
  }

  void Bool(const char* field, bool* value) {
    if (!Has(field)) return;
    if (!object_.at(field).is_boolean()) return Fail(field, "must be true or false");
    *value = object_.at(field).get<bool>();
  }

  void Fail(const char* field, const std::string& problem) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(absl::StrCat(where_, ": field ", field, " ", problem));
    }
  }

  const absl::Status& status() const { return status_; }

 private:
  void Missing(const char* field, bool required) {
    if (required) Fail(field, "is missing");
  }

  const Json& object_;
  std::string where_;
  absl::Status status_;
};

// Reads RoPE base and scaling in the form of transformers 4 (rope_theta, rope_scaling) or 5
// (rope_parameters).
void ReadRope(const Json& json, const std::string& where, FieldReader* fields,
              ModelConfig* config) {
  const bool nested = fields->Has("rope_parameters");
  fields->Number("rope_theta", false, &config->rope_theta);
  const char* name = nested ? "rope_parameters" : "rope_scaling";
  if (!fields->Has(name)) return;
  const Json& rope = json.at(name);
  if (!rope.is_object()) return fields->Fail(name, "must be an object");
  FieldReader nested_fields(rope, absl::StrCat(where, ": ", name));
  nested_fields.Number("rope_theta", false, &config->rope_theta);
  std::string type = "default";
  for (const char* key : {"type", "rope_type"}) {
    if (rope.contains(key) && rope.at(key).is_string()) type = rope.at(key).get<std::string>();
  }
  if (type == "llama3") {
    RopeScaling& scaling = config->rope_scaling;
    nested_fields.Number("factor", true, &scaling.factor);
    nested_fields.Number("low_freq_factor", true, &scaling.low_freq_factor);
    nested_fields.Number("high_freq_factor", true, &scaling.high_freq_factor);
    nested_fields.Integer("original_max_position_embeddings", true,
                          &scaling.original_max_positions);
  } else if (type != "default") {
    fields->Fail(name, absl::StrCat("has rope_type \"", type,
                                    "\"; only \"default\" and \"llama3\" are supported"));
  }
  if (!nested_fields.status().ok()) fields->Fail(name, Message(nested_fields.status()));
}

// Refuses settings that change the computation and that this implementation does not support.
void RefuseUnsupported(const Json& json, FieldReader* fields) {
  bool flag = false;
  for (const char* field : {"attention_bias", "mlp_bias", "use_sliding_window"}) {
    flag = false;
    fields->Bool(field, &flag);
    if (flag) fields->Fail(field, "is true, which is not supported");
  }
  if (fields->Has("hidden_act") && json.at("hidden_act") != "silu") {
    fields->Fail("hidden_act",
                 absl::StrCat("is ", json.at("hidden_act").dump(), "; only \"silu\" is supported"));
  }
}

void ReadSpecialTokens(const Json& json, FieldReader* fields, ModelConfig* config) {
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
  const int64_t embedding = vocab_size * hidden_size;
  return num_layers * layer + hidden_size + (tie_word_embeddings ? 1 : 2) * embedding;
}

std::vector<double> RopeInverseFrequencies(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  std::vector<double> frequencies(config.head_dim / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double f = std::pow(config.rope_theta, -2.0 * static_cast<double>(i) / config.head_dim);
    if (scaling.factor != 1.0) {
      // Llama 3.1 divides the frequencies of long waves by `factor` and keeps those of short waves,
      // with a transition, linear in the frequency, between the wavelengths original /
      // low_freq_factor and original / high_freq_factor.
      const double turns = scaling.original_max_positions * f / (2 * M_PI);
      const double smooth =
          (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
      const double keep = std::min(1.0, std::max(0.0, smooth));
      f = keep * f + (1 - keep) * f / scaling.factor;
    }
    frequencies[i] = f;
  }
  return frequencies;
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
  FieldReader fields(json, where);
  const std::string type =
      json.contains("model_type") && json.at("model_type").is_string() ? json.at("model_type") : "";
  if (type == "llama") {
    config.family = ModelFamily::kLlama;
  } else if (type != "qwen3") {
    return absl::InvalidArgumentError(absl::StrCat(where, ": field model_type is \"", type,
                                                   "\"; \"qwen3\" and \"llama\" are supported"));
  }
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
  ReadRope(json, where, &fields, &config);
  RefuseUnsupported(json, &fields);
  ReadSpecialTokens(json, &fields, &config);
  RETURN_IF_ERROR(fields.status());
  RETURN_IF_ERROR(ValidateModelConfig(config, where));
  return config;
}

absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& dir) {
  const std::string path = JoinPath(dir, "config.json");
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseModelConfig(text, path);
}

absl::Status WriteModelConfig(const ModelConfig& config, const std::string& dir,
                              const std::string& torch_dtype) {
  RETURN_IF_ERROR(ValidateModelConfig(config, JoinPath(dir, "config.json")));
  const bool qwen3 = config.family == ModelFamily::kQwen3;
  nlohmann::ordered_json json = {
      {"architectures", {qwen3 ? "Qwen3ForCausalLM" : "LlamaForCausalLM"}},
      {"model_type", qwen3 ? "qwen3" : "llama"},
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
      {"attention_bias", false},
      {"attention_dropout", 0.0},
      {"initializer_range", 0.02},
      {"use_cache", true},
      {"torch_dtype", torch_dtype}};
  if (qwen3) {
    json["use_sliding_window"] = false;
    json["max_window_layers"] = config.num_layers;
  }
  if (config.rope_scaling.factor != 1.0) {
    const RopeScaling& scaling = config.rope_scaling;
    json["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", scaling.factor},
                            {"low_freq_factor", scaling.low_freq_factor},
                            {"high_freq_factor", scaling.high_freq_factor},
                            {"original_max_position_embeddings", scaling.original_max_positions}};
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
