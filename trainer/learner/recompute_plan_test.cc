#include "trainer/learner/recompute_plan.h"

#include "trainer/optimizer/adamw.h"
#include "trainer/testing/tiny_policy_fixture.h"

namespace tritonrl {
namespace {

int64_t Bytes(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

class StepPlanTest : public TinyPolicyFixture {
 protected:
  // Bytes actually held by an optimizer and its gradients; a master copy that is the weights
  // themselves counts as 0.
  int64_t Held(const Policy& policy) const {
    const AdamW optimizer(OptimizerConfig(), policy.weights, ranks_.get());
    const bool own_master = policy.weights->dtype() != at::kFloat;
    return Bytes(optimizer.first_moment()) + Bytes(optimizer.second_moment()) +
           (own_master ? Bytes(optimizer.master()) : 0) + Bytes(optimizer.MakeGradients().flat());
  }
};

// The flat buffers are a little larger than the parameters, which begin at aligned offsets.
TEST_F(StepPlanTest, KnowsWhatTrainingKeepsFromStepToStep) {
  for (const FloatType type : {FLOAT32, BFLOAT16}) {
    PolicyConfig config = TinyPolicyConfig(dir_);
    config.set_train_dtype(type);
    const absl::StatusOr<Policy> policy = LoadPolicy(config, {.threads = 1, .ranks = ranks_.get()});
    ASSERT_TRUE(policy.ok()) << policy.status();
    const int64_t bytes = TrainingStateBytes(1, *policy, *ranks_);
    const int64_t parameters = policy->config.NumParameters();
    EXPECT_EQ(bytes, (type == FLOAT32 ? 12 : 16) * parameters);
    EXPECT_EQ(bytes / parameters * policy->weights->layout().flat_size, Held(*policy));
  }
}

}  // namespace
}  // namespace tritonrl
