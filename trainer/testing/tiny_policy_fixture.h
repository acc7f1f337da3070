// A test fixture with the tiny policy in its own folder, its initial weights, and one rank.
#ifndef TRITONRL_TRAINER_TESTING_TINY_POLICY_FIXTURE_H_
#define TRITONRL_TRAINER_TESTING_TINY_POLICY_FIXTURE_H_

#include <memory>
#include <string>

#include "base/file.h"
#include "gtest/gtest.h"
#include "parallel/process_group.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {

class TinyPolicyFixture : public testing::Test {
 protected:
  void SetUp() override {
    const auto dir = MakeTempDirectory("tiny_policy");
    ASSERT_TRUE(dir.ok());
    dir_ = *dir;
    policy_ = LoadTinyPolicy(dir_);
    start_ = policy_.weights->flat().clone();
    auto ranks = ProcessGroup::Join(absl::Seconds(10));
    ASSERT_TRUE(ranks.ok());
    ranks_ = *std::move(ranks);
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  // Restores the initial weights.
  void GoToStart() const { at::Tensor(policy_.weights->flat()).copy_(start_); }

  std::string dir_;
  Policy policy_;
  at::Tensor start_;
  std::unique_ptr<ProcessGroup> ranks_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_TESTING_TINY_POLICY_FIXTURE_H_
