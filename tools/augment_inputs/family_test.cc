#include "tools/augment_inputs/family.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tritonrl {
namespace {

TaskFinding Runs(const std::vector<std::string>& inputs) { return {"ok", "", inputs}; }

TEST(FamilyTest, OnlyATaskThatCannotRunIsBroken) {
  Family family;
  EXPECT_FALSE(family.broken()) << "before its check";
  family.checked = true;
  for (const char* reason : {"ok", "timeout", "out_of_memory", "random_result", "constant_result",
                             "not_finite", "sandbox_error"}) {
    family.original.reason = reason;
    EXPECT_FALSE(family.broken()) << reason;
  }
  for (const char* reason : {"load_error", "construct_error", "input_error", "run_error",
                             "needs_gradient", "no_tensor_output", "crashed", "bad_result"}) {
    family.original.reason = reason;
    EXPECT_TRUE(family.broken()) << reason;
  }
}

TEST(FamilyTest, CountsTheVariantsThatAreKept) {
  Family family;
  family.variants = {{.left_out = "same shapes"}, {}, {}};
  EXPECT_EQ(family.kept(), 2);
}

TEST(ReasonToLeaveOutTest, ComparesWithTheTaskAndTheVariantsThatAreKept) {
  Family family;
  family.inputs = {"float32[4, 8]"};
  family.variants = {{.finding = Runs({"float32[5, 8]"})},
                     {.finding = Runs({"float32[6, 8]"}), .left_out = "not_finite: NaN"}};
  EXPECT_EQ(ReasonToLeaveOut(family, Runs({"float32[7, 8]"})), "");
  EXPECT_EQ(ReasonToLeaveOut(family, Runs({"float32[6, 8]"})), "");
  EXPECT_EQ(ReasonToLeaveOut(family, Runs({"float32[4, 8]"})), "same shapes");
  EXPECT_EQ(ReasonToLeaveOut(family, Runs({"float32[5, 8]"})), "same shapes");
  EXPECT_EQ(ReasonToLeaveOut(family, Runs({"float32[5]"})),
            "other inputs: input 0 is float32 of 1 dimensions instead of float32 of 2 dimensions");
  EXPECT_EQ(ReasonToLeaveOut(family, {"timeout", "it ran longer than 30 s", {}}),
            "timeout: it ran longer than 30 s");
}

TEST(ReasonToLeaveOutTest, AVariantMayBeAsRandomAsItsTask) {
  Family family;
  family.inputs = {"float32[4, 8]"};
  const TaskFinding random = {"random_result", "two runs differ", {"float32[5, 8]"}};
  family.original = {"ok", "", family.inputs};
  EXPECT_EQ(ReasonToLeaveOut(family, random), "random_result: two runs differ");
  family.original = {"random_result", "two runs differ", family.inputs};
  EXPECT_EQ(ReasonToLeaveOut(family, random), "");
  EXPECT_EQ(ReasonToLeaveOut(family, {"constant_result", "one value", {"float32[5, 8]"}}),
            "constant_result: one value");
}

TEST(ReasonToLeaveOutTest, VariantsOfATaskWithUnknownInputsAgreeWithEachOther) {
  Family family;
  EXPECT_EQ(ReasonToLeaveOut(family, Runs({"float32[7, 8]"})), "");
  family.variants = {{.finding = Runs({"float32[7, 8]"})}};
  EXPECT_EQ(ReasonToLeaveOut(family, Runs({"float32[9, 8]"})), "");
  EXPECT_EQ(ReasonToLeaveOut(family, Runs({"float32[7, 8]"})), "same shapes");
  EXPECT_EQ(ReasonToLeaveOut(family, Runs({"float32[7, 8]", "number"})),
            "other inputs: 2 instead of 1");
}

TEST(CompareInputsTest, SaysWhatDiffers) {
  const std::vector<std::string> original = {"float32[4, 8]", "number"};
  EXPECT_EQ(CompareInputs(original, {"float32[4, 9]", "number"}), "");
  EXPECT_EQ(CompareInputs(original, original), "same shapes");
  EXPECT_EQ(CompareInputs(original, {"float32[4, 9]"}), "other inputs: 1 instead of 2");
  EXPECT_EQ(CompareInputs(original, {"float32[4]", "number"}),
            "other inputs: input 0 is float32 of 1 dimensions instead of float32 of 2 dimensions");
  EXPECT_EQ(CompareInputs({"float32[]"}, {"float32[3]"}),
            "other inputs: input 0 is float32 of 1 dimensions instead of float32 of 0 dimensions");
  EXPECT_EQ(CompareInputs(original, {"int64[4, 9]", "number"}),
            "other inputs: input 0 is int64 of 2 dimensions instead of float32 of 2 dimensions");
}

}  // namespace
}  // namespace tritonrl
