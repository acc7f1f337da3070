#include "rollout/serve/openai/generation_params.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "rollout/serve/openai/api_json.h"

namespace tritonrl {
namespace {

constexpr int64_t kMaxTokens = 1 << 30;

absl::Status ReadStop(JsonFields* fields, std::vector<std::string>* stop) {
  const nlohmann::json* json = fields->Find("stop");
  if (json == nullptr) return absl::OkStatus();
  if (!json->is_string() && !json->is_array()) {
    return FieldError(
        "stop", absl::StrCat("must be a string or a list of strings, not ", JsonTypeName(*json)));
  }
  const nlohmann::json list = json->is_array() ? *json : nlohmann::json::array({*json});
  if (list.size() > kMaxStops) {
    return FieldError("stop", absl::StrCat("holds ", list.size(), " strings, at most ", kMaxStops,
                                           " are allowed"));
  }
  for (const nlohmann::json& entry : list) {
    if (!entry.is_string() || entry.get_ref<const std::string&>().empty()) {
      return FieldError("stop", "must hold strings that are not empty");
    }
    stop->push_back(entry.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status ReadStopIds(JsonFields* fields, std::vector<int32_t>* ids) {
  const nlohmann::json* json = fields->Find("stop_token_ids");
  if (json == nullptr) return absl::OkStatus();
  if (!json->is_array()) {
    return FieldError("stop_token_ids",
                      absl::StrCat("must be a list of token ids, not ", JsonTypeName(*json)));
  }
  if (json->size() > kMaxStops) {
    return FieldError("stop_token_ids", absl::StrCat("holds ", json->size(), " ids, at most ",
                                                     kMaxStops, " are allowed"));
  }
  ASSIGN_OR_RETURN(*ids, ReadIds(*json, "stop_token_ids"));
  return absl::OkStatus();
}

absl::Status ReadStreamOptions(JsonFields* fields, GenerationParams* params) {
  const nlohmann::json* json = fields->Find("stream_options");
  if (json == nullptr) return absl::OkStatus();
  if (!json->is_object()) {
    return FieldError("stream_options",
                      absl::StrCat("must be an object, not ", JsonTypeName(*json)));
  }
  if (!params->stream) return FieldError("stream_options", "is only for stream=true");
  JsonFields options(*json, "stream_options.");
  RETURN_IF_ERROR(options.Read("include_usage", &params->include_usage));
  RETURN_IF_ERROR(options.Refuse("continuous_usage_stats", {false},
                                 "must be false: the usage comes with the last chunk alone"));
  options.Ignore({"include_obfuscation"});
  return options.RefuseUnknown();
}

// Reads {"token id": number, ...}.
absl::Status ReadLogitBias(JsonFields* fields, std::vector<std::pair<int32_t, float>>* bias) {
  const nlohmann::json* json = fields->Find("logit_bias");
  if (json == nullptr) return absl::OkStatus();
  if (!json->is_object()) {
    return FieldError("logit_bias", absl::StrCat("must be an object of token ids and numbers, not ",
                                                 JsonTypeName(*json)));
  }
  if (json->size() > SamplingSettings::kMaxLogitBias) {
    return FieldError("logit_bias", absl::StrCat("holds ", json->size(), " tokens, at most ",
                                                 SamplingSettings::kMaxLogitBias, " are allowed"));
  }
  for (const auto& [key, value] : json->items()) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(key, &id) || id < 0 || absl::StrCat(id) != key) {
      return FieldError("logit_bias", absl::StrCat("has the key \"", key.substr(0, 64),
                                                   "\", keys must be token ids"));
    }
    const double number = value.is_number() ? value.get<double>() : 1e9;
    if (!(number >= -100 && number <= 100)) {
      return FieldError("logit_bias",
                        absl::StrCat("has ", value.is_number() ? value.dump() : JsonTypeName(value),
                                     " for token ", id, ", must be a number from -100 to 100"));
    }
    bias->emplace_back(id, static_cast<float>(number));
  }
  return absl::OkStatus();
}

// Reads the settings that change the logits, and min_p.
absl::Status ReadPenalties(JsonFields* fields, SamplingSettings* sampling) {
  RETURN_IF_ERROR(fields->Read("presence_penalty", -2.0, 2.0, &sampling->presence_penalty));
  RETURN_IF_ERROR(fields->Read("frequency_penalty", -2.0, 2.0, &sampling->frequency_penalty));
  RETURN_IF_ERROR(fields->Read("repetition_penalty", 0.01, 100.0, &sampling->repetition_penalty));
  RETURN_IF_ERROR(fields->Read("min_p", 0.0, 1.0, &sampling->min_p));
  return ReadLogitBias(fields, &sampling->logit_bias);
}

// Refuses settings that would change the draws and that this server does not support.
absl::Status RefuseOtherDraws(JsonFields* fields) {
  const char* const kNotHere = "would change the draws, and this server has no such setting";
  for (const char* name : {"min_tokens", "min_new_tokens"}) {
    RETURN_IF_ERROR(fields->Refuse(name, {0}, kNotHere));
  }
  RETURN_IF_ERROR(fields->Refuse("length_penalty", {1}, kNotHere));
  RETURN_IF_ERROR(fields->Refuse("use_beam_search", {false}, kNotHere));
  return fields->Refuse("response_format", {{{"type", "text"}}},
                        "asks for a format that this server cannot enforce");
}

// Accepts fields of vLLM's and SGLang's clients only if they request this server's normal
// behaviour.
absl::Status RefuseOtherTexts(JsonFields* fields) {
  RETURN_IF_ERROR(fields->Refuse("skip_special_tokens", {true},
                                 "must be true: special tokens have no text here; "
                                 "return_token_ids=true gives their ids"));
  RETURN_IF_ERROR(fields->Refuse("include_stop_str_in_output", {false},
                                 "must be false: the text ends before a stop string"));
  RETURN_IF_ERROR(fields->Refuse("priority", {0}, "must be 0: requests run in order of arrival"));
  fields->Ignore({"spaces_between_special_tokens"});
  return absl::OkStatus();
}

absl::Status ReadSampling(JsonFields* fields, GenerationParams* params) {
  SamplingSettings& sampling = params->sampling;
  RETURN_IF_ERROR(fields->Read("temperature", 0.0, 100.0, &sampling.temperature));
  RETURN_IF_ERROR(fields->Read("top_p", 0.0, 1.0, &sampling.top_p));
  if (sampling.top_p == 0) return FieldError("top_p", "must be above 0");
  std::optional<int64_t> top_k, n, seed;
  RETURN_IF_ERROR(fields->Read("top_k", -1, INT32_MAX, &top_k));
  RETURN_IF_ERROR(fields->Read("n", 1, kMaxChoices, &n));
  RETURN_IF_ERROR(fields->Read("seed", INT64_MIN, INT64_MAX, &seed));
  sampling.top_k = static_cast<int>(std::max<int64_t>(top_k.value_or(0), 0));
  params->n = static_cast<int32_t>(n.value_or(1));
  if (seed) params->seed = static_cast<uint64_t>(*seed);
  RETURN_IF_ERROR(ReadPenalties(fields, &sampling));
  return RefuseOtherDraws(fields);
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> ReadIds(const nlohmann::json& list, const std::string& name) {
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const nlohmann::json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > uint64_t{INT32_MAX}) {
      return FieldError(name, absl::StrCat("must hold token ids alone, not ",
                                           id.is_number() ? id.dump() : JsonTypeName(id)));
    }
    ids.push_back(static_cast<int32_t>(id.get<uint64_t>()));
  }
  return ids;
}

absl::Status ReadMaxTokens(JsonFields* fields, const char* name, GenerationParams* params) {
  std::optional<int64_t> value;
  RETURN_IF_ERROR(fields->Read(name, 0, kMaxTokens, &value));
  if (value && params->max_tokens && *value != *params->max_tokens) {
    return FieldError(name, absl::StrCat("is ", *value, ", but max_tokens is ", *params->max_tokens,
                                         ": give one of them"));
  }
  if (value) params->max_tokens = static_cast<int32_t>(*value);
  return absl::OkStatus();
}

absl::Status ReadGenerationParams(JsonFields* fields, GenerationParams* params) {
  RETURN_IF_ERROR(fields->Read("model", &params->model));
  RETURN_IF_ERROR(ReadMaxTokens(fields, "max_tokens", params));
  RETURN_IF_ERROR(ReadSampling(fields, params));
  RETURN_IF_ERROR(ReadStop(fields, &params->stop));
  RETURN_IF_ERROR(ReadStopIds(fields, &params->stop_token_ids));
  RETURN_IF_ERROR(fields->Read("ignore_eos", &params->ignore_eos));
  RETURN_IF_ERROR(fields->Read("return_token_ids", &params->return_token_ids));
  std::optional<int64_t> prompt_log_probs;
  RETURN_IF_ERROR(fields->Read("prompt_logprobs", 0, kMaxTopLogProbs, &prompt_log_probs));
  if (prompt_log_probs) params->prompt_log_probs = static_cast<int32_t>(*prompt_log_probs);
  RETURN_IF_ERROR(RefuseOtherTexts(fields));
  RETURN_IF_ERROR(fields->Read("stream", &params->stream));
  RETURN_IF_ERROR(ReadStreamOptions(fields, params));
  // These fields describe the client, not the completion.
  fields->Ignore({"user", "metadata", "store", "service_tier", "safety_identifier",
                  "prompt_cache_key", "prompt_cache_retention"});
  return absl::OkStatus();
}

absl::Status CheckPromptFields(const GenerationParams& params) {
  if (params.max_tokens == 0 && !params.echo && !params.prompt_log_probs) {
    return FieldError("max_tokens", "is 0, which is only for echo=true or prompt_logprobs");
  }
  if (params.prompt_log_probs && params.stream) {
    return FieldError("prompt_logprobs", "is only for stream=false");
  }
  return absl::OkStatus();
}

}  // namespace tritonrl
