// Compares the sampler's distributions with those of transformers' logits processors on the logits
// of the mini policy.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "model/layers/packed_batch.h"
#include "model/transformer.h"
#include "nlohmann/json.hpp"
#include "rollout/engine/sampler.h"
#include "rollout/factory/make_engine.h"

namespace tritonrl {
namespace {

using nlohmann::json;

constexpr int kDraws = 5000;  // of evenly spaced uniform numbers
constexpr size_t kPrompt = 12;

struct Case {
  std::vector<float> logits;
  std::vector<int32_t> history;
  SamplingSettings settings;
};

// A case for each of the last tokens of a text of the mini policy's domain.
std::vector<Case> Cases() {
  const LoadedModel model = LoadModel(Runfile("model/mini").value(), at::kCPU).value();
  const std::vector<int32_t> ids =
      model.tokenizer.Encode("torch.softmax(x, dim=1)\nx: (64, 512)\ntorch.relu(x)\nx: (8, 8)\n");
  const Transformer transformer(model.weights->config(), model.weights);
  const at::Tensor logits = transformer.Logits(PackSequences({ids})).contiguous();
  const int64_t vocab = logits.size(1);
  Philox random(3);
  std::vector<Case> cases;
  for (size_t t = kPrompt; t < ids.size(); ++t) {
    Case c;
    const float* row = logits.const_data_ptr<float>() + static_cast<int64_t>(t) * vocab;
    c.logits.assign(row, row + vocab);
    c.history.assign(ids.begin(), ids.begin() + static_cast<int64_t>(t) + 1);
    c.settings.temperature = 0.5 + random.Uniform();
    c.settings.repetition_penalty = 0.8 + random.Uniform();
    c.settings.min_p = t % 2 == 0 ? 0 : 0.2 * random.Uniform();
    if (t % 3 == 0) c.settings.top_k = 3 + static_cast<int>(random.Below(10));
    if (t % 3 == 1) c.settings.top_p = 0.5 + 0.5 * random.Uniform();
    cases.push_back(std::move(c));
  }
  return cases;
}

json AskPeer(const std::vector<Case>& cases) {
  json jobs = json::array();
  for (const Case& c : cases) {
    jobs.push_back({{"logits", c.logits},
                    {"history", c.history},
                    {"repetition_penalty", c.settings.repetition_penalty},
                    {"temperature", c.settings.temperature},
                    {"top_k", c.settings.top_k},
                    {"top_p", c.settings.top_p},
                    {"min_p", c.settings.min_p}});
  }
  const PythonEnv python = FindPythonEnv().value();
  RunCommandOptions options;
  options.input = jobs.dump();
  options.timeout = absl::Minutes(4);
  options.env = python.Environment();
  const auto run = RunCommand(
      {python.interpreter, Runfile("rollout/factory/testing/transformers_processors.py").value()},
      options);
  EXPECT_TRUE(run.ok()) << run.status();
  if (!run.ok()) return {};
  EXPECT_TRUE(run->ok()) << run->err;
  return json::parse(run->out, nullptr, /*allow_exceptions=*/false);
}

TEST(TransformersProcessors, GiveTheSamplersDistributions) {
  const std::vector<Case> cases = Cases();
  ASSERT_GT(cases.size(), 10u);
  const json peer = AskPeer(cases);
  ASSERT_EQ(peer.size(), cases.size());
  double worst = 0;
  Sampler sampler;
  for (size_t c = 0; c < cases.size(); ++c) {
    SCOPED_TRACE(c);
    const std::vector<int32_t>& history = cases[c].history;
    const TokenHistory tokens = {std::span(history).first(kPrompt),
                                 std::span(history).subspan(kPrompt)};
    std::vector<double> shares(cases[c].logits.size());
    for (int i = 0; i < kDraws; ++i) {
      const auto draw =
          sampler.Draw(cases[c].logits, cases[c].settings, (i + 0.5) / kDraws, tokens);
      ASSERT_TRUE(draw.ok()) << draw.status();
      shares[draw->token] += 1.0 / kDraws;
    }
    for (size_t token = 0; token < shares.size(); ++token) {
      worst = std::max(worst, std::abs(shares[token] - peer[c][token].get<double>()));
    }
  }
  // Evenly spaced numbers give a token's probability up to 1 / kDraws.
  EXPECT_LT(worst, 1.5 / kDraws);
  RecordProperty("worst_difference", absl::StrCat(worst));
}

}  // namespace
}  // namespace tritonrl
