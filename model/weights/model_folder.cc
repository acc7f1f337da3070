#include "model/weights/model_folder.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tritonrl {

absl::Status AdapterError(const std::string& dir) {
  std::string base;
  if (const auto text = ReadFile(JoinPath(dir, "adapter_config.json")); text.ok()) {
    const nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("base_model_name_or_path") &&
        json.at("base_model_name_or_path").is_string()) {
      base = absl::StrCat(" for ", json.at("base_model_name_or_path").get<std::string>());
    }
  }
  return absl::FailedPreconditionError(
      absl::StrCat(dir, ": holds a LoRA adapter", base,
                   ", not a model; merge it into its base model (merge_and_unload of peft, then "
                   "save_pretrained) and give the merged folder"));
}

absl::Status NoWeightsError(const std::string& dir) {
  std::vector<std::string> names;
  if (auto listed = ListDirectory(dir); listed.ok()) names = *std::move(listed);
  for (const std::string& name : names) {
    if (name == "adapter_config.json") return AdapterError(dir);
    const bool pickled = absl::StartsWith(name, "pytorch_model") && absl::EndsWith(name, ".bin");
    if (pickled || absl::EndsWith(name, ".gguf")) {
      return absl::FailedPreconditionError(
          absl::StrCat(dir, ": the weights are in ", name,
                       ", which is not read, and there is no model.safetensors; convert it with "
                       "transformers (from_pretrained, then save_pretrained)"));
    }
  }
  return absl::NotFoundError(
      absl::StrCat(dir, ": holds neither model.safetensors nor model.safetensors.index.json"));
}

std::string UnexpectedTensorHint(const std::string& name, int64_t num_layers) {
  for (const char* scale : {"scale_inv", "weight_scale", "input_scale", ".scales", "qweight",
                            "qzeros", "g_idx", "absmax", "quant_state"}) {
    if (absl::StrContains(name, scale)) {
      return "it belongs to quantized weights, which are not supported; use the bf16 weights of "
             "the model";
    }
  }
  if (absl::StrContains(name, "lora_")) {
    return "it belongs to a LoRA adapter; merge the adapter into the model first";
  }
  if (absl::EndsWith(name, ".bias")) {
    return "if the model has biases, config.json must say so (attention_bias for q, k, v and o, "
           "mlp_bias for the MLP; model_type qwen2 has them in q, k and v)";
  }
  return absl::StrCat("config.json describes another model (", num_layers, " layers)");
}

std::string MissingTensorHint(const std::string& name, bool without_prefix) {
  if (without_prefix) {
    return "; the file has it without \"model.\" before its name: save the model with its head "
           "(AutoModelForCausalLM)";
  }
  if (name == "lm_head.weight") {
    return "; if the head is the embedding, set tie_word_embeddings to true";
  }
  return "";
}

}  // namespace tritonrl
