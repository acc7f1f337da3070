// The program augment_inputs with several rounds against a mock endpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/endpoint/testing/mock_endpoint.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "nlohmann/json.hpp"
#include "tools/augment_inputs/testing/augment_fixture.h"

namespace tritonrl {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class AugmentRoundsTest : public AugmentFixture {
 protected:
  static bool IsLaterRound(const MockRequest& request) {
    return absl::StrContains(request.prompt, "Shapes that exist already");
  }
  // Keys of the answers that are kept.
  std::multiset<std::string> Keys() const {
    std::multiset<std::string> keys;
    for (const json& line : Lines("responses.jsonl")) keys.insert(line["key"].get<std::string>());
    return keys;
  }
};

TEST_F(AugmentRoundsTest, ALaterRoundFillsUpVariantsThatFailed) {
  MockEndpoint endpoint([](const MockRequest& request) {
    if (IsLaterRound(request)) {
      return MockReply::Chat(absl::StrCat(Block("[torch.rand(7, 8) + 1]"),
                                          Block("[torch.rand(5, 8)]"),
                                          Block("[torch.rand(6, 8)]")));
    }
    return MockReply::Chat(absl::StrCat(Block("[torch.rand(7, 8)]"), Block("[torch.rand(2, 9)]")));
  });
  const std::vector<std::string> flags = {"--endpoint=" + endpoint.url(), "--variants=2",
                                          "--rounds=5", "--price_in=1000", "--price_out=1000"};
  const CommandResult result = Run(flags);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\n1 of 1 tasks have 2 variants\n"));
  ASSERT_EQ(endpoint.requests(), 2);
  const std::vector<MockRequest> log = endpoint.log();
  EXPECT_NE(log[0].body["seed"], log[1].body["seed"]);
  EXPECT_THAT(log[1].prompt, HasSubstr("\n- float32[4, 8]\n- float32[7, 8]\n\nWhat was tried"));
  EXPECT_THAT(log[1].prompt, HasSubstr("\n- float32[2, 9]: run_error: forward fails at line 13: "));
  EXPECT_THAT(log[1].prompt, HasSubstr("Write 1 other versions"));
  EXPECT_THAT(Keys(), ElementsAre("level1/linear", "level1/linear#2"));
  EXPECT_THAT(Text("level1/linear_v1.py"), HasSubstr("torch.rand(7, 8)]"));
  EXPECT_THAT(Text("level1/linear_v2.py"), HasSubstr("torch.rand(5, 8)]"));
  EXPECT_FALSE(FileExists(out_ + "/level1/linear_v3.py"));
  const json summary = Summary();
  EXPECT_EQ(summary["complete"], 1);
  EXPECT_EQ(summary["left_out"], (json{{"run_error", 1}, {"same shapes", 1}}));
  EXPECT_EQ(summary["completion_tokens"], 2000);

  // The same command asks and runs nothing again, and counts each answer once.
  const std::string checks = Text("checks.jsonl");
  ASSERT_EQ(Run(flags).exit_code, 0);
  EXPECT_EQ(endpoint.requests(), 2);
  EXPECT_EQ(Text("checks.jsonl"), checks);
  EXPECT_EQ(Summary(), summary);
}

TEST_F(AugmentRoundsTest, AFolderOfOneRoundGoesOnWithMore) {
  MockEndpoint endpoint([](const MockRequest& request) {
    return MockReply::Chat(
        Block(IsLaterRound(request) ? "[torch.rand(5, 8)]" : "[torch.rand(7, 8)]"));
  });
  std::vector<std::string> flags = {"--endpoint=" + endpoint.url(), "--variants=2"};
  ASSERT_EQ(Run(flags).exit_code, 0);
  EXPECT_EQ(endpoint.requests(), 1);
  EXPECT_THAT(Text("left_out.jsonl"), testing::IsEmpty());
  flags.push_back("--rounds=2");
  ASSERT_EQ(Run(flags).exit_code, 0);
  EXPECT_EQ(endpoint.requests(), 2);
  EXPECT_TRUE(FileExists(out_ + "/level1/linear_v2.py"));
}

TEST_F(AugmentRoundsTest, ItStopsAtTheBoundAndNamesTheTasks) {
  Add("broken", absl::StrCat(kLinear, "\nraise RuntimeError('no')\n"));
  MockEndpoint endpoint(
      [](const MockRequest&) { return MockReply::Chat(Block("[torch.rand(2, 9)]")); });
  const CommandResult result = Run({"--endpoint=" + endpoint.url(), "--variants=2", "--rounds=3"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(endpoint.requests(), 4) << "a broken task is not asked for again";
  EXPECT_THAT(result.out, HasSubstr("\n0 of 2 tasks have 2 variants; fewer: broken, level1/linear; "
                                    "left_out.jsonl says why\n"));
  const std::vector<json> left_out = Lines("left_out.jsonl");
  ASSERT_EQ(left_out.size(), 5);
  EXPECT_EQ(left_out[0]["task"], "broken");
  EXPECT_THAT(left_out[0]["reason"].get<std::string>(), HasSubstr("load_error: "));
  EXPECT_EQ(left_out[1]["task"], "level1/linear");
  EXPECT_EQ(left_out[1]["kept"], 0);
  EXPECT_EQ(left_out[1]["reason"], "0 of 2 variants after 3 rounds; 3 left out for run_error");
  EXPECT_EQ(left_out[4]["variant"], 3);
  EXPECT_EQ(Keys().count("level1/linear#3"), 1);
}

TEST_F(AugmentRoundsTest, AKilledRoundGoesOn) {
  Add("level1/other", absl::StrCat(kLinear, "\nOTHER = True\n"));
  std::atomic<bool> hang = true;
  MockEndpoint endpoint([&](const MockRequest& request) {
    if (!IsLaterRound(request)) return MockReply::Chat(Block("[torch.rand(7, 8)]"));
    if (hang && absl::StrContains(request.prompt, "OTHER")) {
      return MockReply{.fault = MockReply::Fault::kHang};
    }
    return MockReply::Chat(Block("[torch.rand(5, 8)]"));
  });
  const std::vector<std::string> flags = {"--endpoint=" + endpoint.url(), "--variants=2",
                                          "--rounds=2"};
  auto child = Subprocess::Start({.argv = Command(flags)});
  ASSERT_TRUE(child.ok()) << child.status();
  const auto answers = [&] {
    const std::string text = Text("responses.jsonl");
    return std::count(text.begin(), text.end(), '\n');
  };
  const absl::Time deadline = absl::Now() + absl::Minutes(5);
  while ((answers() < 3 || endpoint.requests() < 4) && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(child->Kill().signal, SIGKILL);
  ASSERT_EQ(answers(), 3);
  EXPECT_FALSE(FileExists(out_ + "/summary.json"));

  hang = false;
  const CommandResult result = Run(flags);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(endpoint.requests(), 5) << "an answer that was there was asked for again";
  EXPECT_THAT(Keys(),
              ElementsAre("level1/linear", "level1/linear#2", "level1/other", "level1/other#2"));
  EXPECT_EQ(Summary()["complete"], 2);
  EXPECT_EQ(Summary()["completion_tokens"], 4000);
  EXPECT_THAT(Text("level1/other_v2.py"), HasSubstr("torch.rand(5, 8)"));
}

// Other limits find other variants, and so would ask for others; the answers stay.
TEST_F(AugmentRoundsTest, OtherLimitsUseTheAnswersThatAreThere) {
  MockEndpoint endpoint([](const MockRequest& request) {
    return MockReply::Chat(
        Block(IsLaterRound(request) ? "[torch.rand(5, 8)]" : "[torch.rand(2, 9)]"));
  });
  const std::vector<std::string> flags = {"--endpoint=" + endpoint.url(), "--variants=1",
                                          "--rounds=2"};
  ASSERT_EQ(Run(flags).exit_code, 0);
  std::vector<std::string> others = flags;
  others.push_back("--time_limit=40");
  const CommandResult result = Run(others);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(endpoint.requests(), 2);
  EXPECT_EQ(Summary()["complete"], 1);
}

TEST_F(AugmentRoundsTest, ATaskWithTheNameOfALaterRequestIsRefused) {
  Add("level1/linear#2", kLinear);
  const CommandResult result = Run({"--endpoint=http://127.0.0.1:1/v1", "--rounds=2"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("with --rounds the task level1/linear#2 would have the name of "
                                    "request 2 for the task level1/linear; "));
}

}  // namespace
}  // namespace tritonrl
