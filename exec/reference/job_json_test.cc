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
    "outcome": "ran", "fault": "none", "phase": "done", "message": "m",
    "detail": "d", "line": 7, "compiled": true,
    "launches": [{"name": "k", "line": 4, "grid": [8, 1, 1], "num_warps": 4, "num_stages": 3,
                  "shared_bytes": 1024,
                  "arguments": [{"name": "x", "dtype": "float32", "shape": [8, 16],
                                 "what": "input 0"}],
                  "load_bytes": 4096, "store_bytes": 2048,
                  "atomic_bytes": 0, "sector_bytes": 6144, "unique_bytes": 6144, "flops": 1e12,
                  "dot_flops": 0, "tensor_flops": 0, "modelled_seconds": 2e-6}],
    "aten_ops": [{"name": "empty", "calls": 1, "bytes": 0, "flops": 0, "elements": 64,
                  "largest": 64, "view": true}],
    "modelled": true, "candidate_seconds": 2e-6, "own_parameters": ["parameter 'w'", 1],
    "device_name": "x", "seconds": {"forward": 0.1}, "versions": {"torch": "2.11.0"}})");
}

absl::StatusOr<JobChannel> Parse(const Json& result, JobRole role = JobRole::kRunner) {
  return ParseChannel("{\"phase\": \"import\"}\n" + Json{{"result", result}}.dump() + "\n", role);
}

TEST(ResultJsonTest, TellsTheDevicesMemoryFromTheJobsOwn) {
  for (const bool device : {false, true}) {
    Json result = Result();
    result["outcome"] = device ? "out_of_device_memory" : "out_of_memory";
    const auto channel = Parse(result);
    ASSERT_TRUE(channel.ok()) << channel.status();
    EXPECT_EQ(channel->result.outcome().reason(), Outcome::OUT_OF_MEMORY);
    EXPECT_EQ(channel->result.outcome().device_memory(), device);
  }
}

TEST(ResultJsonTest, ReadsEveryField) {
  const auto channel = Parse(Result());
  ASSERT_TRUE(channel.ok()) << channel.status();
  EXPECT_TRUE(channel->has_result);
  EXPECT_TRUE(channel->candidate_began);
  EXPECT_EQ(Json::parse(channel->result_text), Result());
  const ExecResult& r = channel->result;
  EXPECT_EQ(r.outcome().reason(), Outcome::OK);
  EXPECT_FALSE(r.has_correct());
  EXPECT_EQ(r.outcome().line(), 7);
  EXPECT_TRUE(r.compiled());
  ASSERT_EQ(r.launches_size(), 1);
  EXPECT_EQ(r.launches(0).grid(0), 8);
  EXPECT_EQ(r.launches(0).flops(), 1e12);
  ASSERT_EQ(r.candidate_ops_size(), 1);
  EXPECT_EQ(r.candidate_ops(0).largest(), 64);
  EXPECT_TRUE(r.candidate_ops(0).view());
  ASSERT_EQ(r.launches(0).arguments_size(), 1);
  EXPECT_EQ(r.launches(0).arguments(0).what(), "input 0");
  EXPECT_EQ(r.launches(0).arguments(0).shape(1), 16);
  EXPECT_TRUE(r.modelled());
  EXPECT_EQ(r.candidate_seconds(), 2e-6);
  ASSERT_EQ(r.own_parameters_size(), 1);
  EXPECT_EQ(r.own_parameters(0), "parameter 'w'");
  EXPECT_EQ(r.phase_seconds().at("forward"), 0.1);
  EXPECT_EQ(r.versions().at("torch"), "2.11.0");
}

TEST(ResultJsonTest, AGridBeyond32BitsIsRefused) {
  for (const Json& size : {Json(int64_t{1} << 32), Json(-(int64_t{1} << 32)), Json(UINT64_MAX)}) {
    Json result = Result();
    result["launches"][0]["grid"][0] = size;
    EXPECT_FALSE(Parse(result).ok()) << size;
  }
}

TEST(ResultJsonTest, NullMeansAbsent) {
  Json result = Result();
  for (const char* name : {"compiled", "candidate_seconds"}) result[name] = nullptr;
  const auto channel = Parse(result);
  ASSERT_TRUE(channel.ok()) << channel.status();
  EXPECT_FALSE(channel->result.has_compiled());
  EXPECT_FALSE(channel->result.has_candidate_seconds());
}

TEST(ResultJsonTest, ARunnerHasNoWordForCorrect) {
  for (const char* outcome : {"ok", "mismatch", "reference_error", "correct"}) {
    Json result = Result();
    result["outcome"] = outcome;
    EXPECT_FALSE(Parse(result).ok()) << outcome;
  }
  for (const char* field : {"correct", "speedup", "reference_seconds", "trials_run", "max_error"}) {
    Json result = Result();
    result[field] = 1;
    EXPECT_FALSE(Parse(result).ok()) << field;
  }
}

TEST(ResultJsonTest, AReferenceResultHasItsOwnFields) {
  Json result = Result();
  for (const char* name :
       {"compiled", "launches", "aten_ops", "own_parameters", "candidate_seconds"}) {
    result.erase(name);
  }
  result["outcome"] = "ok";
  result["reference_ops"] = Result()["aten_ops"];
  result["reference_seconds"] = 3e-6;
  for (const char* name : {"visible", "calls", "trials", "shares_memory", "mutates_inputs",
                           "has_buffers", "bytes_per_second"}) {
    result[name] = nullptr;
  }
  const auto channel = Parse(result, JobRole::kReference);
  ASSERT_TRUE(channel.ok()) << channel.status();
  EXPECT_EQ(channel->result.reference_ops(0).name(), "empty");
  EXPECT_EQ(channel->result.reference_seconds(), 3e-6);
  EXPECT_FALSE(Parse(result, JobRole::kRunner).ok());
  EXPECT_FALSE(Parse(Result(), JobRole::kReference).ok());
}

TEST(ResultJsonTest, EveryFieldOfTheWrongTypeIsRefused) {
  const Json good = Result();
  for (const auto& [name, value] : good.items()) {
    Json result = Result();
    // Text becomes a number; numbers and containers become text.
    result[name] = value.is_string() ? Json(3.5) : Json("text");
    const auto channel = Parse(result);
    // The supervisor derives the fault from the outcome and ignores the runner's value.
    EXPECT_EQ(channel.ok(), name == "fault") << name;
  }
  for (const char* name : {"launches", "aten_ops", "outcome", "modelled"}) {
    Json result = Result();
    result.erase(name);
    EXPECT_FALSE(Parse(result).ok()) << name;
  }
  Json result = Result();
  result["launches"][0]["shared_bytes"] = 1e30;
  EXPECT_FALSE(Parse(result).ok());
}

TEST(ResultJsonTest, ChannelRules) {
  const std::string result = Json{{"result", Result()}}.dump() + "\n";
  EXPECT_TRUE(ParseChannel("", JobRole::kRunner).ok());
  EXPECT_FALSE(ParseChannel("", JobRole::kRunner)->has_result);
  EXPECT_FALSE(ParseChannel("{\"phase\": \"reference\"}\n", JobRole::kRunner)->candidate_began);
  EXPECT_TRUE(ParseChannel(result, JobRole::kRunner).ok());
  for (const std::string& bad :
       {result + result, result + "{\"phase\": \"x\"}\n", std::string("{\"phase\": 3}\n"),
        std::string("{\"verdict\": {}}\n"), std::string("[]\n"), std::string("{\"result\": 1}\n"),
        std::string("{\"phase\": \"a\", \"result\": {}}\n"), std::string("\xff\xfe\n"),
        result.substr(0, result.size() / 2), std::string("{\"result\": NaN}\n")}) {
    EXPECT_FALSE(ParseChannel(bad, JobRole::kRunner).ok()) << bad;
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
    refused += !ParseChannel(text, JobRole::kRunner).ok();
  }
  EXPECT_GT(refused, 1000);
  EXPECT_FALSE(ParseChannel(std::string(1 << 20, '['), JobRole::kRunner).ok());
}

TEST(JobJsonTest, FillsDefaultsAndKeepsBytes) {
  ExecRequest request;
  request.set_reference_source("the reference");
  request.set_candidate_source("é\n\"quoted\"");
  request.set_seed(uint64_t{1} << 63);
  request.set_atol(0.125);
  const JobContext context{request, "interpreter", DeriveSeeds(kKey, request.seed(), 5), 5};
  const Json reference_result = Json::parse(ReferenceJobJson(context));
  EXPECT_EQ(reference_result["role"], "oracle");
  EXPECT_EQ(reference_result["calls"], Json({0, 0, 1, 2, 3, 4}));
  EXPECT_EQ(reference_result["reference_source"], "the reference");
  EXPECT_EQ(reference_result["input_seeds"].size(), 5u);
  EXPECT_FALSE(reference_result.contains("candidate_source"));
  const std::string text = RunnerJobJson(context, "{\"inputs\":[]}", 5);
  const Json runner = Json::parse(text);
  EXPECT_EQ(runner["candidate_source"], "é\n\"quoted\"");
  EXPECT_EQ(runner["device_model"], "l40s");
  EXPECT_EQ(runner["measure_time"], true);
  EXPECT_EQ(runner["visible"], Json::parse("{\"inputs\":[]}"));
  // A candidate must not know these.
  for (const char* name : {"reference_source", "input_seeds", "seed", "atol", "rtol"}) {
    EXPECT_FALSE(runner.contains(name)) << name;
  }
  EXPECT_EQ(text.find("the reference"), std::string::npos);
  EXPECT_EQ(text.find("0.125"), std::string::npos);
  EXPECT_EQ(text.find(absl::StrCat(request.seed())), std::string::npos);
  for (const uint64_t seed : context.seeds.inputs) {
    EXPECT_EQ(text.find(absl::StrCat(seed)), std::string::npos);
  }
}

TEST(JobJsonTest, OnlyTheReferenceIsToldOfTheRobustRules) {
  ExecRequest request;
  request.set_rules(RULES_ROBUST);
  const JobContext context{request, "interpreter", DeriveSeeds(kKey, 1, 5, MaxVariants(request)),
                           5};
  const Json reference_result = Json::parse(ReferenceJobJson(context));
  EXPECT_EQ(reference_result["mode"], "robust");
  EXPECT_EQ(reference_result["variant_seeds"].size(), 14u);
  EXPECT_EQ(reference_result["forward_seeds"].size(), 19u);
  const std::string text = RunnerJobJson(context, "{}", 7);
  const Json runner = Json::parse(text);
  EXPECT_EQ(runner["calls"], Json({0, 0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(runner["forward_seeds"].size(), 7u);  // one per trial
  for (const char* word : {"robust", "mode\"", "variant"}) {
    EXPECT_EQ(text.find(word), std::string::npos) << word;
  }
  // Seeds of random trials do not depend on the number of further trials.
  EXPECT_EQ(
      DeriveSeeds(kKey, 1, 5).forward,
      std::vector<uint64_t>(context.seeds.forward.begin(), context.seeds.forward.begin() + 5));
  EXPECT_EQ(DeriveSeeds(kKey, 1, 5).inputs, context.seeds.inputs);
}

TEST(JobJsonTest, ThePapersRulesCopyNoParameters) {
  ExecRequest request;
  const auto runner = [&request] {
    const JobContext context{request, "interpreter", DeriveSeeds(kKey, 1, 5), 5};
    return Json::parse(RunnerJobJson(context, "{}", 5));
  };
  EXPECT_FALSE(runner().contains("copy_parameters"));  // true, the default
  request.set_rules(RULES_PAPER);
  EXPECT_EQ(runner()["copy_parameters"], false);
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
