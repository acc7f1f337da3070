#include "rollout/serve/openai/generation_params.h"

#include <algorithm>

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

// Refuses settings that would change the draws and that this server does not support.
absl::Status RefusePenalties(JsonFields* fields) {
  const char* const kNotHere = "would change the draws, and this server has no such setting";
  for (const char* name :
       {"presence_penalty", "frequency_penalty", "min_p", "min_tokens", "min_new_tokens"}) {
    RETURN_IF_ERROR(fields->Refuse(name, {0}, kNotHere));
  }
  for (const char* name : {"repetition_penalty", "length_penalty"}) {
    RETURN_IF_ERROR(fields->Refuse(name, {1}, kNotHere));
  }
  RETURN_IF_ERROR(fields->Refuse("logit_bias", {nlohmann::json::object()}, kNotHere));
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
  RETURN_IF_ERROR(fields->Refuse("prompt_logprobs", {},
                                 "cannot be had: this server has log-probabilities of answers "
                                 "alone"));
  RETURN_IF_ERROR(fields->Refuse("priority", {0}, "must be 0: requests run in order of arrival"));
  fields->Ignore({"spaces_between_special_tokens"});
  return absl::OkStatus();
}

absl::Status ReadSampling(JsonFields* fields, GenerationParams* params) {
  RETURN_IF_ERROR(fields->Read("temperature", 0.0, 100.0, &params->temperature));
  RETURN_IF_ERROR(fields->Read("top_p", 0.0, 1.0, &params->top_p));
  if (params->top_p == 0) return FieldError("top_p", "must be above 0");
  std::optional<int64_t> top_k, n, seed;
  RETURN_IF_ERROR(fields->Read("top_k", -1, INT32_MAX, &top_k));
  RETURN_IF_ERROR(fields->Read("n", 1, kMaxChoices, &n));
  RETURN_IF_ERROR(fields->Read("seed", INT64_MIN, INT64_MAX, &seed));
  params->top_k = static_cast<int32_t>(std::max<int64_t>(top_k.value_or(0), 0));
  params->n = static_cast<int32_t>(n.value_or(1));
  if (seed) params->seed = static_cast<uint64_t>(*seed);
  return RefusePenalties(fields);
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
  RETURN_IF_ERROR(fields->Read(name, 1, kMaxTokens, &value));
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
  RETURN_IF_ERROR(RefuseOtherTexts(fields));
  RETURN_IF_ERROR(fields->Read("stream", &params->stream));
  RETURN_IF_ERROR(ReadStreamOptions(fields, params));
  // These fields describe the client, not the answer.
  fields->Ignore({"user", "metadata", "store", "service_tier", "safety_identifier",
                  "prompt_cache_key", "prompt_cache_retention"});
  return absl::OkStatus();
}

// The engine returns the log-probability of the drawn token only.
absl::Status CheckAlternatives(const char* name, int64_t wanted, GenerationParams* params) {
  if (wanted > 1 || (wanted == 1 && params->temperature > 0)) {
    return FieldError(name, absl::StrCat("is ", wanted,
                                         ": this server gives the log-probability of the token "
                                         "that was drawn alone, use 0 (or 1 at temperature 0)"));
  }
  params->top_log_probs = static_cast<int32_t>(wanted);
  return absl::OkStatus();
}

}  // namespace tritonrl
