#include "exec/reference/job_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "exec/outcome/result_json.h"

namespace tritonrl {
namespace {

const SecretKey kKey;  // a known one

using Json = nlohmann::json;

Json Result() {
  return Json::parse(R"({
    "outcome": "ok", "fault": "none", "phase": "done", "message": "m", "detail": "d", "line": 7,
    "reference_ops": [{"name": "empty", "calls": 1, "bytes": 0, "flops": 8, "free": true}],
    "modelled": true, "visible": null, "calls": null, "trials": null, "shares_memory": null,
    "mutates_inputs": null, "has_buffers": null,
    "device_name": "x", "seconds": {"forward": 0.1}, "versions": {"torch": "2.11.0"}})");
}

absl::StatusOr<JobChannel> Parse(const Json& result) {
  return ParseChannel("{\"phase\": \"reference\"}\n" + Json{{"result", result}}.dump() + "\n",
                      JobRole::kReference);
}

TEST(ResultJsonTest, ReadsEveryField) {
  const auto channel = Parse(Result());
  ASSERT_TRUE(channel.ok()) << channel.status();
  EXPECT_TRUE(channel->has_result);
  EXPECT_FALSE(channel->candidate_began);
  EXPECT_EQ(Json::parse(channel->result_text), Result());
  const ExecResult& r = channel->result;
  EXPECT_EQ(r.outcome().reason(), Outcome::OK);
  EXPECT_FALSE(r.has_correct());
  EXPECT_EQ(r.outcome().line(), 7);
  ASSERT_EQ(r.reference_ops_size(), 1);
  EXPECT_EQ(r.reference_ops(0).name(), "empty");
  EXPECT_EQ(r.reference_ops(0).flops(), 8);
  EXPECT_TRUE(r.reference_ops(0).free());
  EXPECT_TRUE(r.modelled());
  EXPECT_EQ(r.phase_seconds().at("forward"), 0.1);
  EXPECT_EQ(r.versions().at("torch"), "2.11.0");
}

TEST(ResultJsonTest, NobodyHasAWordForAVerdict) {
  for (const char* outcome : {"ran", "mismatch", "correct"}) {
    Json result = Result();
    result["outcome"] = outcome;
    EXPECT_FALSE(Parse(result).ok()) << outcome;
  }
  for (const char* field : {"correct", "speedup", "trials_run", "max_error", "candidate_seconds"}) {
    Json result = Result();
    result[field] = 1;
    EXPECT_FALSE(Parse(result).ok()) << field;
  }
}

TEST(ResultJsonTest, ACandidatesProcessHasNoResult) {
  const std::string result = Json{{"result", Result()}}.dump() + "\n";
  EXPECT_TRUE(ParseChannel(result, JobRole::kReference).ok());
  EXPECT_FALSE(ParseChannel(result, JobRole::kRunner).ok());
}

TEST(ResultJsonTest, EveryFieldOfTheWrongTypeIsRefused) {
  const Json good = Result();
  for (const auto& [name, value] : good.items()) {
    Json result = Result();
    // Text becomes a number; numbers and containers become text.
    result[name] = value.is_string() ? Json(3.5) : Json("text");
    const auto channel = Parse(result);
    // The fault follows from the outcome; what is null here is read elsewhere.
    EXPECT_EQ(channel.ok(), name == "fault" || value.is_null()) << name;
  }
  for (const char* name : {"reference_ops", "outcome", "modelled"}) {
    Json result = Result();
    result.erase(name);
    EXPECT_FALSE(Parse(result).ok()) << name;
  }
  for (const char* name : {"calls", "bytes"}) {
    Json result = Result();
    result["reference_ops"][0][name] = "many";
    EXPECT_FALSE(Parse(result).ok()) << name;
  }
  Json result = Result();
  result["reference_ops"][0]["calls"] = 1e30;
  EXPECT_FALSE(Parse(result).ok());
}

TEST(ResultJsonTest, ChannelRules) {
  const std::string result = Json{{"result", Result()}}.dump() + "\n";
  EXPECT_TRUE(ParseChannel("", JobRole::kReference).ok());
  EXPECT_FALSE(ParseChannel("", JobRole::kReference)->has_result);
  EXPECT_FALSE(ParseChannel("{\"phase\": \"reference\"}\n", JobRole::kReference)->candidate_began);
  EXPECT_TRUE(ParseChannel(result, JobRole::kReference).ok());
  for (const std::string& bad :
       {result + result, result + "{\"phase\": \"x\"}\n", std::string("{\"phase\": 3}\n"),
        std::string("{\"verdict\": {}}\n"), std::string("[]\n"), std::string("{\"result\": 1}\n"),
        std::string("{\"phase\": \"a\", \"result\": {}}\n"), std::string("\xff\xfe\n"),
        result.substr(0, result.size() / 2), std::string("{\"result\": NaN}\n")}) {
    EXPECT_FALSE(ParseChannel(bad, JobRole::kReference).ok()) << bad;
  }
}

TEST(ResultJsonTest, LongTextIsCutBetweenCharacters) {
  Json result = Result();
  std::string text = "x";
  while (text.size() < 5000) text += "é";
  result["message"] = text;
  const auto channel = Parse(result);
  ASSERT_TRUE(channel.ok()) << channel.status();
  // 4000 bytes would split a character.
  EXPECT_EQ(channel->result.outcome().message(), text.substr(0, 3999));
}

TEST(ResultJsonTest, HostileBytesNeverBreakTheParser) {
  const std::string good = "{\"phase\": \"import\"}\n" + Json{{"result", Result()}}.dump() + "\n";
  uint32_t state = 1;
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (int k = 0; k < 3; ++k) {
      state = state * 1664525 + 1013904223;
      text[(state >> 8) % text.size()] = static_cast<char>(state >> 24);
    }
    refused += !ParseChannel(text, JobRole::kReference).ok();
  }
  EXPECT_GT(refused, 1000);
  EXPECT_FALSE(ParseChannel(std::string(1 << 20, '['), JobRole::kReference).ok());
}

TEST(JobJsonTest, FillsDefaultsAndKeepsBytes) {
  ExecRequest request;
  request.set_reference_source("é\n\"quoted\"");
  request.set_seed(uint64_t{1} << 63);
  request.set_atol(0.125);
  const JobContext context{request, "cpu", DeriveSeeds(kKey, request.seed(), 5), 5};
  const Json reference_result = Json::parse(ReferenceJobJson(context));
  EXPECT_EQ(reference_result["role"], "oracle");
  EXPECT_EQ(reference_result["calls"], Json({0, 0, 1, 2, 3, 4}));
  EXPECT_EQ(reference_result["reference_source"], "é\n\"quoted\"");
  EXPECT_EQ(reference_result["input_seeds"].size(), 5u);
  for (const char* name : {"candidate_source", "seed", "atol", "rtol"}) {
    EXPECT_FALSE(reference_result.contains(name)) << name;
  }
}

TEST(JobJsonTest, TellsTheRobustRules) {
  ExecRequest request;
  request.set_rules(RULES_ROBUST);
  const JobContext context{request, "cpu", DeriveSeeds(kKey, 1, 5, MaxVariants(request)), 5};
  const Json reference_result = Json::parse(ReferenceJobJson(context));
  EXPECT_EQ(reference_result["mode"], "robust");
  EXPECT_EQ(reference_result["variant_seeds"].size(), 14u);
  EXPECT_EQ(reference_result["forward_seeds"].size(), 19u);
  // Seeds of random trials do not depend on the number of further trials.
  EXPECT_EQ(
      DeriveSeeds(kKey, 1, 5).forward,
      std::vector<uint64_t>(context.seeds.forward.begin(), context.seeds.forward.begin() + 5));
  EXPECT_EQ(DeriveSeeds(kKey, 1, 5).inputs, context.seeds.inputs);
}

TEST(SeedsTest, DifferAndRepeat) {
  std::set<uint64_t> seen;
  for (uint64_t run = 0; run < 20; ++run) {
    const JobSeeds seeds = DeriveSeeds(kKey, run, 5);
    seen.insert(seeds.weights);
    seen.insert(seeds.decoy);
    seen.insert(seeds.inputs.begin(), seeds.inputs.end());
    seen.insert(seeds.forward.begin(), seeds.forward.end());
    EXPECT_EQ(DeriveSeeds(kKey, run, 5).inputs, seeds.inputs);
  }
  EXPECT_EQ(seen.size(), 20u * 12);
  EXPECT_EQ(*seen.rbegin() >> 63, 0u);
  // Who knows the run's seed, but not the key, knows none of them.
  const JobSeeds others = DeriveSeeds(*SecretKey::Parse(std::string(64, 'a')), 0, 5);
  for (const uint64_t seed : others.inputs) EXPECT_EQ(seen.count(seed), 0u);
  EXPECT_EQ(seen.count(others.weights) + seen.count(others.decoy), 0u);
}

}  // namespace
}  // namespace tritonrl
