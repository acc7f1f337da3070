#include "exec/client_run/recording_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tritonrl {
namespace {

using device::SessionResult;
using device::Tag;
using testing::HasSubstr;

// A session whose only output has `bytes` of this tag, made by kernels that touched 1 MiB.
SessionResult WithOutput(Tag tag, int64_t bytes = 400) {
  SessionResult session;
  session.provenance.emplace_back();
  session.provenance[0].bytes[static_cast<size_t>(tag)] = bytes;
  session.provenance[0].total = bytes;
  session.traffic.kernel_bytes = 1 << 20;
  return session;
}

std::string Says(const SessionResult& session, const ExecResult& reference = ExecResult()) {
  const auto finding = JudgeRecording(session, reference);
  if (!finding.has_value()) return "";
  EXPECT_EQ(finding->reason, Outcome::RUNTIME_COMPUTE);
  return finding->message;
}

TEST(JudgeRecording, KernelsHaveToWriteTheResult) {
  EXPECT_EQ(Says(WithOutput(Tag::kKernel)), "");
  SessionResult small = WithOutput(Tag::kSmall, 4);  // a mean of partial sums
  EXPECT_EQ(Says(small), "");
  small.traffic.kernel_bytes = 0;
  EXPECT_THAT(Says(small), HasSubstr("no kernel wrote any of the 4 bytes of the result: none was"));
  small.counts.launches = 1;
  EXPECT_THAT(Says(small), HasSubstr("operators of torch made it"));
  for (const Tag tag : {Tag::kInput, Tag::kWeight, Tag::kConstant, Tag::kRandom}) {
    EXPECT_THAT(Says(WithOutput(tag)), HasSubstr("no kernel wrote any of the 400 bytes"));
  }
  EXPECT_EQ(Says(SessionResult()), "");  // an empty output
}

// As by "except", or in a destructor.
TEST(JudgeRecording, ForwardMayNotTryToCompute) {
  SessionResult session = WithOutput(Tag::kKernel);
  session.counts.refusals.push_back(
      {device::Phase::kInit, "in init", 3, absl::StatusCode::kPermissionDenied});
  EXPECT_EQ(Says(session), "");
  session.counts.refusals.push_back(
      {device::Phase::kForward, "aten::mm computes", 7, absl::StatusCode::kPermissionDenied});
  EXPECT_EQ(Says(session), "aten::mm computes, which forward tried");
  EXPECT_EQ(JudgeRecording(session, ExecResult())->line, 7);
}

TEST(JudgeRecording, ContentsFromTheProgramAreRefused) {
  EXPECT_THAT(Says(WithOutput(Tag::kHost)), HasSubstr("400 of 400 bytes of the result came from"));
  SessionResult session = WithOutput(Tag::kKernel);
  session.host_output_bytes = 8;  // a tensor that is not on the device
  EXPECT_THAT(Says(session), HasSubstr("8 of 408 bytes"));
}

TEST(JudgeRecording, OperatorsMayNotUndoOrOutweighKernels) {
  SessionResult session = WithOutput(Tag::kKernel);
  session.traffic.neutral_bytes = 4 << 20;
  EXPECT_EQ(Says(session), "");
  session.traffic.neutral_bytes = 6 << 20;
  EXPECT_THAT(Says(session), HasSubstr("operators of torch moved 6291456 bytes"));
  session.traffic.neutral_bytes = 0;
  session.traffic.fills_over_kernel_bytes = 3;
  EXPECT_THAT(Says(session), HasSubstr("filled memory that a kernel had written, 3 times"));
}

TEST(JudgeRecording, RandomNumbersAreDrawnWhereTheReferenceDraws) {
  SessionResult session = WithOutput(Tag::kKernel);
  session.traffic.operators["randint"].bytes = 8;  // a seed
  ExecResult reference;
  reference.add_reference_ops()->set_name("aten.mm");
  EXPECT_EQ(Says(session, reference), "");
  session.traffic.operators["bernoulli_"].bytes = 4096;
  EXPECT_THAT(Says(session, reference), HasSubstr("aten::bernoulli_ draws random numbers"));
  EXPECT_FALSE(DrawsRandomNumbers(reference));
  for (const char* name : {"aten.native_dropout", "aten.bernoulli_", "aten.rand_like",
                           "aten.normal_", "aten.rrelu_with_noise_functional"}) {
    reference.mutable_reference_ops(0)->set_name(name);
    EXPECT_TRUE(DrawsRandomNumbers(reference)) << name;
    EXPECT_EQ(Says(session, reference), "") << name;
  }
}

TEST(JudgeRecording, ConstructorsMayScaleWeightsOnly) {
  SessionResult session = WithOutput(Tag::kKernel);
  session.of_weights = {{"mul_", 64}, {"add", 64}, {"erfinv_", 64}, {"mean", 16}};
  EXPECT_EQ(Says(session), "");
  session.of_weights["_softmax"] = 64;
  EXPECT_THAT(Says(session), HasSubstr("computes on its weights with aten::_softmax"));
  session.of_weights = {{"kernel fold", 64}};
  EXPECT_THAT(Says(session), HasSubstr("computes on its weights with kernel fold"));
}

TEST(ExplainFailure, KernelErrorsComeBeforeRefusalsAndInitDoesNotCount) {
  SessionResult session;
  EXPECT_FALSE(ExplainFailure(session).has_value());
  session.counts.refusals.push_back(
      {device::Phase::kInit, "in init", 3, absl::StatusCode::kPermissionDenied});
  EXPECT_FALSE(ExplainFailure(session).has_value());
  session.counts.refusals.push_back(
      {device::Phase::kForward, "aten::mm computes", 7, absl::StatusCode::kPermissionDenied});
  auto finding = ExplainFailure(session);
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(finding->reason, Outcome::RUNTIME_COMPUTE);
  EXPECT_EQ(finding->line, 7);
  session.counts.kernel_errors.push_back(
      {device::Phase::kForward, "outside", 9, absl::StatusCode::kOutOfRange});
  EXPECT_EQ(ExplainFailure(session)->reason, Outcome::OUT_OF_BOUNDS);
}

}  // namespace
}  // namespace tritonrl
