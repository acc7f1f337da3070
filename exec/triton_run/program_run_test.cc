#include "exec/triton_run/program_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;

// Each program adds to a slot of its own. SLOT and LAST are replaced.
constexpr char kProgram[] = R"py(
import torch, triton, triton.language as tl
@triton.jit
def add(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + SLOT, tl.sum(v, 0))
def main():
    x = torch.ones(256, device="cuda")
    out = torch.zeros(4, device="cuda")
    add[(4,)](x, out, 256, BLOCK=64)
    LAST
    return out
)py";

ProgramResult RunWith(const std::string& slot, const std::string& last, bool check = true,
                      const std::string& entry = "main") {
  ProgramOptions options;
  options.source = absl::StrReplaceAll(kProgram, {{"SLOT", slot}, {"LAST", last}});
  options.entry = entry;
  options.check = check;
  options.time_limit = absl::Seconds(60);
  auto result = RunProgram(options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : ProgramResult();
}

TEST(RunProgram, ACorrectProgramHasNoFindings) {
  for (const bool check : {true, false}) {
    const ProgramResult result =
        RunWith("tl.program_id(0)", "print('sum', out.sum().item())", check);
    EXPECT_EQ(result.error, "");
    EXPECT_TRUE(result.findings.list.empty()) << result.findings.list[0].text;
    EXPECT_THAT(result.printed, HasSubstr("sum 256"));
    ASSERT_EQ(result.launches.size(), 1);
    EXPECT_EQ(result.launches[0].grid(0), 4);
    ASSERT_EQ(result.outputs.size(), 1);
    EXPECT_EQ(result.outputs[0].what, "float32 [4]");
    EXPECT_EQ(result.outputs[0].mean, 64);
  }
}

TEST(RunProgram, ARaceIsFoundWithItsLine) {
  const ProgramResult result = RunWith("0", "pass");
  EXPECT_EQ(result.error, "");
  ASSERT_FALSE(result.findings.list.empty());
  EXPECT_EQ(result.findings.list[0].kind, ttir::Finding::Kind::kRace);
  EXPECT_EQ(result.findings.list[0].kernel, "add");
  EXPECT_THAT(result.findings.list[0].place, HasSubstr("line 7"));
}

// Rows of 33 floats are no multiple of 16 bytes.
TEST(RunProgram, ADescriptorThatHopperRefusesIsFound) {
  ProgramOptions options;
  options.source = R"py(
import torch, triton, triton.language as tl
@triton.jit
def copy(x, out, columns, BLOCK: tl.constexpr):
    rows = tl.make_tensor_descriptor(x, [32, columns], [columns, 1], [BLOCK, BLOCK])
    i = tl.arange(0, BLOCK)
    tl.store(out + i[:, None] * BLOCK + i[None, :], rows.load([0, 0]))
def main():
    out = torch.empty(16, 16, device="cuda")
    copy[(1,)](torch.ones(32, 33, device="cuda"), out, 33, BLOCK=16)
    return out
)py";
  options.time_limit = absl::Seconds(60);
  const auto result = RunProgram(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->error, "");
  ASSERT_EQ(result->findings.list.size(), 1);
  EXPECT_EQ(result->findings.list[0].kind, ttir::Finding::Kind::kDescriptor);
  EXPECT_THAT(result->findings.list[0].place, HasSubstr("line 5"));
}

TEST(RunProgram, AnAccessOutOfBoundsEndsIt) {
  const ProgramResult result = RunWith("tl.program_id(0) * 1000", "pass");
  EXPECT_THAT(result.error, HasSubstr("line 7"));
  EXPECT_EQ(result.error_line, 11);  // of the launch
}

TEST(RunProgram, ExceptionsNameTheirLine) {
  const ProgramResult result = RunWith("tl.program_id(0)", "raise ValueError('so')");
  EXPECT_THAT(result.error, HasSubstr("ValueError: so"));
  EXPECT_EQ(result.error_line, 12);
  EXPECT_THAT(RunWith("0", "pass", true, "other").error, HasSubstr("no other"));
}

}  // namespace
}  // namespace tritonrl
