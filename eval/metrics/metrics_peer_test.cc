// Compares PerTask with a second implementation in Python on random sets of samples.

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/random.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "eval/metrics/scores.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

using nlohmann::json;

constexpr int kSets = 200;
constexpr int kQueries = 24;

const char* const kMetrics[] = {"valid",  "compiled",     "correct",       "fast_1",
                                "fast_2", "mean_speedup", "open_compiled", "open_correct"};
const char* const kEstimators[] = {"max_over_first", "unbiased"};
const char* const kShapes[] = {"apart", "all_must_pass"};

// A score that fails at any layer, or is correct with a speedup. Speedups often are equal.
SampleScore RandomScore(Philox* random) {
  const uint64_t passed = random->Below(6);
  SampleScore score = {
      .syntax = passed > 0, .valid = passed > 1, .compiled = passed > 2, .correct = passed > 3};
  if (score.correct) {
    score.speedup = random->Below(3) == 0 ? 1.5 : 3 * random->Uniform();
    score.speedup_low = score.speedup * (0.7 + 0.3 * random->Uniform());
  }
  return score;
}

// Up to 4 tasks, with their variants and 1 to 6 samples each, in any order. In some sets no sample
// has a score without functionality checks.
std::vector<ScoredSample> RandomSamples(Philox* random) {
  std::vector<ScoredSample> samples;
  const bool with_open = random->Below(4) > 0;
  const uint64_t lost_of_10 = random->Below(4);
  const int least = 1 + static_cast<int>(random->Below(3));
  const uint64_t tasks = 1 + random->Below(4);
  for (uint64_t task = 0; task < tasks; ++task) {
    const uint64_t variants = 1 + random->Below(3);
    for (uint64_t variant = 0; variant < variants; ++variant) {
      const std::string origin = absl::StrCat("level1/", task, "_Task");
      const int count = least + static_cast<int>(random->Below(4));
      for (int i = 0; i < count; ++i) {
        ScoredSample sample;
        sample.task = variant == 0 ? origin : absl::StrCat(origin, "_v", variant);
        sample.sample = 2 * i;  // numbers may have gaps
        if (random->Below(10) >= lost_of_10) {
          sample.score = RandomScore(random);
          sample.failure = FailureKind::kSyntax;  // any with a verdict
          if (with_open && random->Below(10) > 0) sample.open = RandomScore(random);
        }
        samples.push_back(sample);
      }
    }
  }
  random->Shuffle(&samples);
  return samples;
}

json ScoreJson(const SampleScore& score) {
  return {{"valid", score.valid},
          {"compiled", score.compiled},
          {"correct", score.correct},
          {"speedup", score.speedup},
          {"speedup_low", score.speedup_low}};
}

json SamplesJson(const std::vector<ScoredSample>& samples) {
  json array = json::array();
  for (const ScoredSample& sample : samples) {
    const bool verified = sample.failure != FailureKind::kNoVerdict;
    array.push_back({{"task", sample.task},
                     {"sample", sample.sample},
                     {"score", verified ? ScoreJson(sample.score) : json()},
                     {"open", sample.open.has_value() ? ScoreJson(*sample.open) : json()}});
  }
  return array;
}

struct Query {
  Metric metric;
  Estimator estimator;
  int k;
  Shapes shapes;

  json Json() const {
    return {{"metric", kMetrics[static_cast<int>(metric)]},
            {"estimator", kEstimators[static_cast<int>(estimator)]},
            {"k", k},
            {"shapes", kShapes[static_cast<int>(shapes)]}};
  }
};

// Each metric equally often.
Query RandomQuery(int index, Philox* random) {
  return {.metric = static_cast<Metric>(index % std::size(kMetrics)),
          .estimator = static_cast<Estimator>(random->Below(2)),
          .k = 1 + static_cast<int>(random->Below(4)),
          .shapes = static_cast<Shapes>(random->Below(2))};
}

// The peer's results of all cases.
json PeerResults(const json& cases) {
  const std::string folder = MakeTempDirectory("metrics").value();
  const std::string in = JoinPath(folder, "cases.json"), out = JoinPath(folder, "results.json");
  EXPECT_TRUE(WriteFileAtomic(in, cases.dump()).ok());
  const PythonEnv python = FindPythonEnv().value();
  RunCommandOptions options;
  options.env = python.Environment();
  const auto run = RunCommand(
      {python.interpreter, Runfile("eval/metrics/metrics_peer.py").value(), in, out}, options);
  EXPECT_TRUE(run.ok() && run->ok()) << (run.ok() ? run->err : run.status().ToString());
  json results = json::parse(ReadFile(out).value());
  EXPECT_TRUE(RemoveTree(folder).ok());
  return results;
}

void ExpectEqual(const json& expected, const Series& series) {
  ASSERT_EQ(expected["tasks"].size(), series.tasks.size());
  EXPECT_TRUE(std::is_sorted(series.tasks.begin(), series.tasks.end()));
  for (size_t i = 0; i < series.tasks.size(); ++i) {
    ASSERT_TRUE(expected["tasks"].contains(series.tasks[i])) << series.tasks[i];
    EXPECT_NEAR(expected["tasks"][series.tasks[i]].get<double>(), series.values[i], 1e-12);
  }
  EXPECT_EQ(expected["lost"].get<int>(), series.lost);
  EXPECT_EQ(expected["short_tasks"].get<int>(), series.short_tasks);
  EXPECT_EQ(expected["left_out"].get<std::vector<std::string>>(), series.left_out);
}

TEST(MetricsPeerTest, SameValuesOnRandomSets) {
  Philox random(20);
  std::vector<std::vector<ScoredSample>> sets;
  std::vector<std::vector<Query>> queries(kSets);
  json cases = json::array();
  for (int set = 0; set < kSets; ++set) {
    sets.push_back(RandomSamples(&random));
    json query_list = json::array();
    for (int i = 0; i < kQueries; ++i) {
      queries[set].push_back(RandomQuery(i, &random));
      query_list.push_back(queries[set].back().Json());
    }
    cases.push_back({{"samples", SamplesJson(sets[set])}, {"queries", query_list}});
  }
  const json results = PeerResults(cases);
  ASSERT_EQ(results.size(), kSets);
  int errors = 0, with_short_tasks = 0, with_left_out = 0;
  for (int set = 0; set < kSets; ++set) {
    for (int i = 0; i < kQueries; ++i) {
      const Query& query = queries[set][i];
      const json& expected = results[set][i];
      SCOPED_TRACE(absl::StrCat("set ", set, ", ", query.Json().dump()));
      const auto series = PerTask(sets[set], query.metric, query.estimator, query.k, query.shapes);
      ASSERT_EQ(expected.is_null(), !series.ok()) << series.status();
      if (!series.ok()) {
        ++errors;
        continue;
      }
      ExpectEqual(expected, *series);
      with_short_tasks += series->short_tasks > 0;
      with_left_out += !series->left_out.empty();
    }
  }
  // The sets reach all of this, and mostly have values.
  EXPECT_GT(errors, 100);
  EXPECT_LT(errors, kSets * kQueries / 2);
  EXPECT_GT(with_short_tasks, 100);
  EXPECT_GT(with_left_out, 100);
}

}  // namespace
}  // namespace tritonrl
