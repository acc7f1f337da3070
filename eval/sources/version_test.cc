#include "eval/sources/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

// The texts of problems 12 and 92 are from KernelBench, https://github.com/ScalingIntelligence/
// KernelBench: Copyright (c) 2023 Anne Ouyang, Simon Guo, Azalia Mirhoseini, Scaling Intelligence
// Lab, Stanford University; MIT licence.

namespace tritonrl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kDiagonal[] = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    """
    Simple model that performs a matrix multiplication of a diagonal matrix with another matrix.
    C = diag(A) * B
    """
    def __init__(self):
        super(Model, self).__init__()
    
    def forward(self, A, B):
        """
        Performs the matrix multiplication.

        Args:
            A (torch.Tensor): A 1D tensor representing the diagonal of the diagonal matrix. Shape: (N,).
            B (torch.Tensor): A 2D tensor representing the second matrix. Shape: (N, M).

        Returns:
            torch.Tensor: The result of the matrix multiplication. Shape: (N, M).
        """
RETURN

M = 4096
N = 4096

def get_inputs():
    A = torch.RAND(N)
    B = torch.RAND(N, M)
    return [A, B]

def get_init_inputs():
    return []  # No special initialization inputs needed)";

constexpr char kSum[] = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    """
    A model that performs an exclusive cumulative sum (does not include the current element).

    Parameters:
        dim (int): The dimension along which to perform the exclusive cumulative sum.
    """

    def __init__(self, dim):
        super(Model, self).__init__()
        self.dim = dim

    def forward(self, x):
        cumsum = torch.cumsum(x.narrow(dim=self.dim, start=0, length=x.size(self.dim)-1), dim=self.dim)
        return torch.cat((torch.zeros_like(x.select(self.dim, 0).unsqueeze(self.dim)), cumsum), dim=self.dim)

batch_size = 32768
input_shape = (32768,)
dim = 1

def get_inputs():
    return [torch.rand(batch_size, *input_shape)]

def get_init_inputs():
    return [dim]
)";

constexpr char kProduct[] = "        return torch.diag(A) @ B";
constexpr char kScaled[] =
    "        # Logically equivalent to torch.diag(A) @ B \n"
    "        # more efficient as no need to materialize a full N\u00d7N matrix\n"
    "        return A.unsqueeze(1) * B";

Task Diagonal(const std::string& body, const std::string& rand) {
  const std::string source =
      absl::StrReplaceAll(kDiagonal, {{"RETURN", body}, {"torch.RAND", "torch." + rand}});
  return {.id = "level1/12_Matmul_with_diagonal_matrices_", .source = source, .level = 1};
}

Task Sum() { return {.id = "level1/92_cumsum_exclusive", .source = kSum, .level = 1}; }

Task Other(const std::string& id, const std::string& source) {
  return {.id = id, .source = source, .level = 1};
}

TEST(VersionTest, ReleasesByTheirTexts) {
  const KernelBenchVersion v0 = DetectVersion({Diagonal(kProduct, "randn")});
  EXPECT_EQ(v0.name, "KernelBench v0");
  EXPECT_THAT(
      v0.evidence,
      ElementsAre("1 of 1 tasks have the text of v0, 0 that of v0.1, 0 that of main after it",
                  HasSubstr("inputs: 1 tasks draw from torch.randn"),
                  HasSubstr("problem 12 (level1/12_Matmul_with_diagonal_matrices_) "
                            "multiplies two matrices, one of them diagonal")));
  EXPECT_EQ(DetectVersion({Diagonal(kProduct, "rand")}).name, "KernelBench v0.1");
  const KernelBenchVersion main = DetectVersion({Sum(), Diagonal(kScaled, "rand")});
  EXPECT_EQ(main.name, "KernelBench main from 2026-01-19 on");
  EXPECT_THAT(main.evidence, Contains(HasSubstr("scales rows without a matrix product")));
  EXPECT_THAT(main.evidence, Contains(HasSubstr("is the exclusive sum")));
  EXPECT_EQ(DetectVersion({Sum()}).name, "KernelBench main from 2025-12-24 on");
  EXPECT_EQ(DetectVersion({Sum(), Diagonal(kProduct, "rand")}).name,
            "KernelBench main from 2025-12-24 to 2026-01-19");
  EXPECT_EQ(DetectVersion({Sum(), Diagonal(kProduct, "randn")}).name,
            "mixture of KernelBench v0 and later versions");
}

TEST(VersionTest, OtherLevelsAreNotCompared) {
  Task third = Diagonal(kProduct, "randn");
  third.id = "level3/12_Net";
  third.level = 3;
  const KernelBenchVersion version = DetectVersion({Diagonal(kProduct, "randn"), third});
  EXPECT_EQ(version.name, "KernelBench v0");
  EXPECT_THAT(version.evidence,
              Contains("1 tasks have other levels or numbers and are not compared"));
}

TEST(VersionTest, CopiesMayLoseTheSpaceAtTheEnd) {
  Task task = Diagonal(kProduct, "rand");
  task.source = absl::StrReplaceAll(task.source, {{"\n", "\r\n"}}) + "\r\n\n";
  EXPECT_EQ(DetectVersion({task}).name, "KernelBench v0.1");
}

TEST(VersionTest, ATextCountsForItsOwnProblemOnly) {
  Task task = Diagonal(kProduct, "rand");
  task.id = "level1/13_other";
  EXPECT_EQ(DetectVersion({task}).name, "unknown");
  task.id = "level2/12_other";
  task.level = 2;
  EXPECT_EQ(DetectVersion({task}).name, "unknown");
  task.id = "level3/12_other";
  task.level = 3;
  EXPECT_EQ(DetectVersion({task}).name, "unknown");
  task.id = "level1/101_other";
  task.level = 1;
  EXPECT_EQ(DetectVersion({task}).name, "unknown");
}

TEST(VersionTest, ChangedTasksAreCountedAndTheirMarksStillFound) {
  Task variant = Diagonal(kProduct, "rand");
  variant.id += "_v2";
  variant.source = absl::StrReplaceAll(variant.source, {{"4096", "512"}});
  const KernelBenchVersion all = DetectVersion({variant});
  EXPECT_EQ(all.name, "KernelBench, every task changed");
  EXPECT_THAT(all.evidence, Contains(HasSubstr("1 tasks have none of these texts, such as "
                                               "\"level1/12_Matmul_with_diagonal_matrices__v2\"")));
  EXPECT_THAT(all.evidence, Contains(HasSubstr("multiplies two matrices")));
  const KernelBenchVersion some = DetectVersion({Sum(), variant});
  EXPECT_EQ(some.name, "KernelBench main from 2025-12-24 on, 1 of 2 tasks changed");
}

TEST(VersionTest, OutputsThatDoNotDependOnInputs) {
  Task zero = {.id = "level2/80_Gemm_Max_Subtract_GELU",
               .source = "x = x - x.mean(dim=1, keepdim=True)",
               .level = 2};
  EXPECT_THAT(DetectVersion({zero}).evidence, Contains(HasSubstr("is zero for all inputs")));
  zero.source = "x = x - x.mean(dim=0, keepdim=True)";
  EXPECT_THAT(DetectVersion({zero}).evidence, Not(Contains(HasSubstr("is zero for all inputs"))));
}

TEST(VersionTest, OtherTasks) {
  const KernelBenchVersion version =
      DetectVersion({Other("level1/01_add", "def get_inputs():\n    return [torch.randn(2)]\n")});
  EXPECT_EQ(version.name, "unknown");
  EXPECT_EQ(DetectVersion({}).name, "unknown");
}

TEST(VersionTest, TheDigestIsThatOfIdsAndTexts) {
  const Task a = Other("level1/1_a", "a"), b = Other("level1/2_b", "b");
  const std::string digest = DetectVersion({a, b}).digest;
  EXPECT_EQ(digest.size(), 64);
  EXPECT_EQ(DetectVersion({b, a}).digest, digest);
  EXPECT_NE(DetectVersion({a}).digest, digest);
  EXPECT_NE(DetectVersion({a, Other("level1/2_b", "c")}).digest, digest);
  EXPECT_NE(DetectVersion({a, Other("level1/2_c", "b")}).digest, digest);
}

}  // namespace
}  // namespace tritonrl
