#include "exec/result_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

Json Result() {
  return Json::parse(R"({
    "outcome": "mismatch", "fault": "candidate", "phase": "compare", "message": "m",
    "detail": "d", "line": 7, "compiled": true, "correct": false, "trials_run": 2,
    "max_error": 0.5,
    "mismatch": {"trial": 1, "output": 0, "kind": "value", "max_error": 0.5, "bad_elements": 3,
                 "elements": 64, "want": 1.0, "got": "1.5"},
    "launches": [{"name": "k", "line": 4, "grid": [8, 1, 1], "num_warps": 4, "num_stages": 3,
                  "shared_bytes": 1024, "load_bytes": 4096, "store_bytes": 2048,
                  "atomic_bytes": 0, "sector_bytes": 6144, "unique_bytes": 6144, "flops": 1e12,
                  "dot_flops": 0, "tensor_flops": 0, "modelled_seconds": 2e-6}],
    "aten_ops": [{"name": "empty", "calls": 1, "bytes": 0, "flops": 0, "elements": 64,
                  "neutral": true}],
    "reference_ops": [], "modelled": true, "reference_seconds": 4e-6, "candidate_seconds": 2e-6,
    "speedup": 2.0, "device_name": "x", "seconds": {"forward": 0.1},
    "versions": {"torch": "2.11.0"}})");
}

absl::StatusOr<JobChannel> Parse(const Json& result) {
  return ParseChannel("{\"phase\": \"import\"}\n" + Json{{"result", result}}.dump() + "\n");
}

TEST(ResultJsonTest, ReadsEveryField) {
  const auto channel = Parse(Result());
  ASSERT_TRUE(channel.ok()) << channel.status();
  EXPECT_TRUE(channel->has_result);
  EXPECT_TRUE(channel->candidate_began);
  const ExecResult& r = channel->result;
  EXPECT_EQ(r.outcome(), EXEC_MISMATCH);
  EXPECT_EQ(r.fault(), EXEC_FAULT_CANDIDATE);
  EXPECT_EQ(r.line(), 7);
  EXPECT_TRUE(r.compiled());
  EXPECT_TRUE(r.has_correct());
  EXPECT_FALSE(r.correct());
  EXPECT_EQ(r.mismatch().bad_elements(), 3);
  EXPECT_EQ(r.mismatch().want(), "1.0");
  ASSERT_EQ(r.launches_size(), 1);
  EXPECT_EQ(r.launches(0).grid(0), 8);
  EXPECT_EQ(r.launches(0).flops(), 1e12);
  ASSERT_EQ(r.candidate_ops_size(), 1);
  EXPECT_TRUE(r.candidate_ops(0).neutral());
  EXPECT_TRUE(r.modelled());
  EXPECT_EQ(r.speedup(), 2.0);
  EXPECT_EQ(r.phase_seconds().at("forward"), 0.1);
  EXPECT_EQ(r.versions().at("torch"), "2.11.0");
}

TEST(ResultJsonTest, NullMeansAbsent) {
  Json result = Result();
  for (const char* name : {"compiled", "correct", "max_error", "mismatch", "reference_seconds",
                           "candidate_seconds", "speedup"}) {
    result[name] = nullptr;
  }
  const auto channel = Parse(result);
  ASSERT_TRUE(channel.ok()) << channel.status();
  EXPECT_FALSE(channel->result.has_compiled());
  EXPECT_FALSE(channel->result.has_correct());
  EXPECT_FALSE(channel->result.has_speedup());
  EXPECT_FALSE(channel->result.has_mismatch());
}

TEST(ResultJsonTest, EveryFieldOfTheWrongTypeIsRefused) {
  const Json good = Result();
  for (const auto& [name, value] : good.items()) {
    Json result = Result();
    // Text where a number stands and the other way round; containers become text.
    result[name] = value.is_string() ? Json(3.5) : Json("text");
    const auto channel = Parse(result);
    // The fault follows from the outcome; the runner's word for it is not read.
    EXPECT_EQ(channel.ok(), name == "fault") << name;
  }
  for (const char* name : {"launches", "aten_ops", "outcome", "trials_run", "modelled"}) {
    Json result = Result();
    result.erase(name);
    EXPECT_FALSE(Parse(result).ok()) << name;
  }
  Json result = Result();
  result["launches"][0]["shared_bytes"] = 1e30;
  EXPECT_FALSE(Parse(result).ok());
  result = Result();
  result["outcome"] = "ok";  // and not correct
  EXPECT_FALSE(Parse(result).ok());
}

TEST(ResultJsonTest, ChannelRules) {
  const std::string result = Json{{"result", Result()}}.dump() + "\n";
  EXPECT_TRUE(ParseChannel("").ok());
  EXPECT_FALSE(ParseChannel("")->has_result);
  EXPECT_FALSE(ParseChannel("{\"phase\": \"reference\"}\n")->candidate_began);
  EXPECT_TRUE(ParseChannel(result).ok());
  for (const std::string& bad :
       {result + result, result + "{\"phase\": \"x\"}\n", std::string("{\"phase\": 3}\n"),
        std::string("{\"verdict\": {}}\n"), std::string("[]\n"), std::string("{\"result\": 1}\n"),
        std::string("{\"phase\": \"a\", \"result\": {}}\n"), std::string("\xff\xfe\n"),
        result.substr(0, result.size() / 2), std::string("{\"result\": NaN}\n")}) {
    EXPECT_FALSE(ParseChannel(bad).ok()) << bad;
  }
}

TEST(ResultJsonTest, LongTextIsCutBetweenCharacters) {
  Json result = Result();
  std::string text = "x";
  while (text.size() < 5000) text += "é";
  result["message"] = text;
  const auto channel = Parse(result);
  ASSERT_TRUE(channel.ok()) << channel.status();
  EXPECT_EQ(channel->result.message(), text.substr(0, 3999));  // 4000 would split one
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
    refused += !ParseChannel(text).ok();
  }
  EXPECT_GT(refused, 1000);
  EXPECT_FALSE(ParseChannel(std::string(1 << 20, '[')).ok());
}

TEST(JobJsonTest, FillsDefaultsAndKeepsBytes) {
  ExecRequest request;
  request.set_reference_source("r");
  request.set_candidate_source("é\n\"quoted\"");
  const Json job = Json::parse(JobJson(request, "interpreter", 5));
  EXPECT_EQ(job["trials"], 5);
  EXPECT_EQ(job["atol"], 1e-2);
  EXPECT_EQ(job["candidate_source"], "é\n\"quoted\"");
  EXPECT_EQ(job["device_model"], "l40s");
  EXPECT_EQ(job["measure_time"], true);
  request.set_rtol(1e-4);
  request.set_seed(uint64_t{1} << 63);
  EXPECT_EQ(Json::parse(JobJson(request, "cuda", 5))["atol"], 0.0);
  EXPECT_EQ(Json::parse(JobJson(request, "cuda", 5))["seed"], uint64_t{1} << 63);
}

}  // namespace
}  // namespace tritonrl
