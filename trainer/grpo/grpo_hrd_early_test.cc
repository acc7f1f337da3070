// Runs that begin to learn while samples are being generated.
#include <cmath>
#include <cstring>

#include "trainer/grpo/grpo_hrd_fixture.h"

namespace tritonrl {
namespace {

class GrpoHrdEarlyTest : public GrpoHrdTest {
 protected:
  // Micro-batches of two or three samples.
  std::vector<std::string> Sets(bool early) const {
    return {"micro_batch_tokens=600", "eval.samples=0", "eval.greedy=false",
            absl::StrCat("learn_early=", early)};
  }

  int EarlySamples(const std::string& out) const {
    int samples = 0;
    const std::string text = ReadFile(Out(out) + "/metrics.jsonl").value();
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      samples += nlohmann::json::parse(line)["early_samples"].get<int>();
    }
    return samples;
  }

  std::vector<float> Weights(const std::string& path) const {
    const std::string bytes = ReadFile(path).value();
    uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof(header));
    const size_t begin = sizeof(header) + header;
    std::vector<float> weights((bytes.size() - begin) / sizeof(float));
    std::memcpy(weights.data(), bytes.data() + begin, weights.size() * sizeof(float));
    return weights;
  }

  // L2 norm of the difference.
  double Distance(const std::string& one, const std::string& other) const {
    const std::vector<float> a = Weights(one), b = Weights(other);
    EXPECT_EQ(a.size(), b.size());
    double squares = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const double d = static_cast<double>(a[i]) - b[i];
      squares += d * d;
    }
    return std::sqrt(squares);
  }
};

TEST_F(GrpoHrdEarlyTest, EndsAsARunThatWaitsForAllSamples) {
  const CommandResult late = Run(Command("late", Sets(false)));
  ASSERT_EQ(late.exit_code, 0) << late.err;
  const CommandResult early = Run(Command("early", Sets(true)));
  ASSERT_EQ(early.exit_code, 0) << early.err;
  EXPECT_EQ(EarlySamples("late"), 0);
  EXPECT_GT(EarlySamples("early"), 0);
  ExpectNearMetrics("late", "early", 1e-3);  // sums of single precision in another order
  EXPECT_EQ(Samples("late", "step_000001.jsonl"), Samples("early", "step_000001.jsonl"));
  const std::string model = "/model/model.safetensors";
  const std::string first = Out("late") + "/checkpoints/step_000002" + model;
  const double moved = Distance(first, Out("late") + model);
  EXPECT_GT(moved, 0);
  // AdamW makes much of the smallest gradients, and of their rounding.
  EXPECT_LT(Distance(Out("late") + model, Out("early") + model), 0.02 * moved);

  // Interrupted in the middle of a step, and asked to stop: what had been begun is dropped, and the
  // run ends with the same bits.
  const std::vector<std::string> cut = Command("cut", Sets(true));
  const std::string journal = Out("cut") + "/journal/verdicts_0.jsonl";
  SignalWhen(cut, SIGKILL, [&] { return Lines(journal) >= 5; });
  SignalWhen(cut, SIGUSR1, [&] { return Lines(Out("cut") + "/metrics.jsonl") >= 1; });
  const CommandResult rest = Run(cut);
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  ExpectSameRun("early", "cut");

  // Two ranks, each of which learns from its own groups.
  const CommandResult two = Run(MpirunCommand(2, Command("two", Sets(true))));
  ASSERT_EQ(two.exit_code, 0) << two.err;
  ExpectNearMetrics("early", "two", 1e-3);
}

}  // namespace
}  // namespace tritonrl
