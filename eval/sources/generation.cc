#include "eval/sources/generation.h"

#include "base/status.h"
#include "eval/sources/json_fields.h"
#include "eval/sources/readers.h"
#include "nlohmann/json.hpp"
#include "tasks/response_style.h"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<ResponseStyle> StyleOf(const JsonFields& json, const ResponseStyle& style) {
  std::string plan(PlanStyleName(style.plan)), block(CodeBlockName(style.code_block));
  if (json.Has("response_style")) {
    ASSIGN_OR_RETURN(plan, json.Text("response_style"));
  }
  if (json.Has("code_block")) {
    ASSIGN_OR_RETURN(block, json.Text("code_block"));
  }
  return ResponseStyleFromNames(plan, block);
}

}  // namespace

std::string GenerationToJson(const Generation& generation) {
  Json json = {{"task", generation.task}, {"sample", generation.sample}};
  if (generation.turn > 0) json["turn"] = generation.turn;
  if (generation.response.has_value()) {
    json["response"] = *generation.response;
    json["response_style"] = std::string(PlanStyleName(generation.style.plan));
    json["code_block"] = std::string(CodeBlockName(generation.style.code_block));
    if (generation.truncated) json["truncated"] = true;
    if (generation.tokens > 0) json["tokens"] = generation.tokens;
  } else {
    json["code"] = generation.code;
  }
  if (!generation.source.empty()) json["source"] = generation.source;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::Status ReadProgramFields(const JsonFields& json, const ResponseStyle& style,
                               Generation* generation) {
  if (json.Has("response") == json.Has("code")) {
    return absl::InvalidArgumentError(
        json.Has("code") ? "there are both 'response' and 'code'; leave one of them out"
                         : "there is neither 'response' (a model's whole text) nor 'code' (a "
                           "program); add one of them");
  }
  if (json.Has("turn")) {
    ASSIGN_OR_RETURN(generation->turn, json.Number("turn", 0));
  }
  if (json.Has("source")) {
    ASSIGN_OR_RETURN(generation->source, json.Text("source"));
  }
  if (json.Has("code")) {
    ASSIGN_OR_RETURN(generation->code, json.Text("code"));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(generation->response, json.Text("response"));
  ASSIGN_OR_RETURN(generation->style, StyleOf(json, style));
  if (json.Has("truncated")) {
    ASSIGN_OR_RETURN(generation->truncated, json.Flag("truncated"));
  } else if (json.Has("finish_reason")) {
    ASSIGN_OR_RETURN(const std::string reason, json.Text("finish_reason"));
    generation->truncated = reason == "length";
  }
  if (json.Has("tokens")) {
    ASSIGN_OR_RETURN(generation->tokens, json.Number("tokens", 0));
  }
  return absl::OkStatus();
}

absl::StatusOr<Generation> GenerationFromJson(const std::string& line, const ResponseStyle& style) {
  ASSIGN_OR_RETURN(const JsonFields json, JsonFields::Parse(line));
  Generation generation;
  ASSIGN_OR_RETURN(generation.task, json.Text("task"));
  ASSIGN_OR_RETURN(generation.sample, json.Number("sample", 0));
  RETURN_IF_ERROR(ReadProgramFields(json, style, &generation));
  return generation;
}

}  // namespace tritonrl
