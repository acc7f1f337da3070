// Which results a task accepts that it ought not to, with real references.
#include "exec/candidate/task_probes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "exec/testing/native_suite.h"

namespace tritonrl {
namespace {

class TaskProbesTest : public NativeSuite {
 protected:
  ExecResult Probe(const std::string& forward, const std::string& inputs, Rules rules) {
    ExecRequest request;
    request.set_task_id("t");
    request.set_reference_source(absl::StrCat(
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x, y=None):\n",
        "        return ", forward, "\ndef get_inputs():\n    return ", inputs,
        "\ndef get_init_inputs():\n    return []\n"));
    request.set_rules(rules);
    request.set_reference_only(true);
    request.set_probe_task(true);
    request.set_skip_timing(true);
    auto result = backend_->Run(request, absl::Now() + absl::Seconds(120));
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(!result.ok() || result->outcome().reason() == Outcome::OK) << result->DebugString();
    return result.ok() ? *result : ExecResult();
  }

  // Names of the probes that pass, "-name" for those that do not apply.
  std::set<std::string> Found(const std::string& forward, const std::string& inputs, Rules rules) {
    std::set<std::string> found;
    const ExecResult result = Probe(forward, inputs, rules);
    EXPECT_EQ(result.probes_size(), 8);
    for (const TaskProbe& probe : result.probes()) {
      EXPECT_FALSE(probe.text().empty());
      if (probe.passes()) found.insert(probe.name());
      if (!probe.applies()) found.insert("-" + probe.name());
    }
    return found;
  }
};

using Names = std::set<std::string>;

TEST_F(TaskProbesTest, ASoundTaskRefusesAll) {
  for (const Rules rules : {RULES_STRICT, RULES_ROBUST}) {
    EXPECT_EQ(Found("torch.exp(x) + x", "[torch.randn(16, 64)]", rules), Names());
    EXPECT_EQ(Found("x @ y", "[torch.randn(32, 128), torch.randn(128, 32)]", rules),
              Names({"-identity"}));
  }
}

TEST_F(TaskProbesTest, TinyResultsAreUnsoundUnderAFixedTolerance) {
  const std::string forward = "torch.softmax(x, -1)", inputs = "[torch.randn(4, 4096) * 0.5]";
  const Names paper = Found(forward, inputs, RULES_STRICT);
  for (const char* name : {"zeros", "constant_mean", "half_output", "low_precision"}) {
    EXPECT_EQ(paper.count(name), 1u) << name;
  }
  EXPECT_EQ(paper.count("identity"), 0u);
  EXPECT_EQ(Found(forward, inputs, RULES_ROBUST), Names());
}

TEST_F(TaskProbesTest, EachProbeFindsItsTask) {
  for (const Rules rules : {RULES_STRICT, RULES_ROBUST}) {
    EXPECT_EQ(Found("x * 0", "[torch.randn(4, 64)]", rules).count("zeros"), 1u);
    EXPECT_EQ(Found("x * 0 + 7", "[torch.randn(4, 64)]", rules).count("constant_first"), 1u);
    EXPECT_EQ(Found("x + 0", "[torch.randn(4, 64)]", rules).count("identity"), 1u);
    EXPECT_EQ(Found("x.half()", "[torch.randn(4, 64)]", rules).count("identity"), 1u);
    EXPECT_EQ(Found("x[0]", "[torch.randn(4, 64)]", rules).count("half_input"), 1u);
    EXPECT_EQ(Found("torch.cat([x, x * 0])", "[torch.randn(4, 64)]", rules).count("half_output"),
              1u);
    EXPECT_EQ(Found("torch.sign(x)", "[torch.randn(4, 64)]", rules).count("low_precision"), 0u);
  }
}

TEST_F(TaskProbesTest, NumbersAreTold) {
  const ExecResult result = Probe("x * 1e-3", "[torch.randn(4, 64)]", RULES_STRICT);
  const TaskProbe& zeros = result.probes(0);
  EXPECT_EQ(zeros.name(), "zeros");
  EXPECT_TRUE(zeros.passes());
  EXPECT_GT(zeros.max_error(), 1e-3);
  EXPECT_NE(zeros.text().find("right on all 5 trials"), std::string::npos) << zeros.text();
  const TaskProbe& identity = result.probes(4);
  EXPECT_EQ(identity.name(), "identity");
  EXPECT_NE(identity.text().find("refused in trial 1"), std::string::npos) << identity.text();
}

TEST_F(TaskProbesTest, SeveralOutputsAndNumbers) {
  const Names found = Found("(x * 2, [x.sum(1), 3.5, None])", "[torch.randn(8, 32)]", RULES_STRICT);
  EXPECT_EQ(found, Names({"-identity"}));
}

TEST_F(TaskProbesTest, AskedForWithACandidateIsAMistake) {
  ExecRequest request;
  request.set_reference_source("x");
  request.set_candidate_source("x");
  request.set_probe_task(true);
  EXPECT_FALSE(backend_->Run(request, absl::Now()).ok());
}

}  // namespace
}  // namespace tritonrl
