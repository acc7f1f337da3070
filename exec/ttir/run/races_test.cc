// Races of a launch's programs, and accesses that atomic operations order.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "exec/ttir/run/testing/kernel_text.h"
#include "exec/ttir/testing/corpus.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

LaunchFindings Check(const Kernel& kernel, const std::array<int32_t, 3>& grid,
                     const std::vector<KernelArgument>& arguments) {
  LaunchFindings findings;
  LaunchOptions options;
  options.check = &findings;
  const absl::Status status = kernel.Launch(grid, arguments, options);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(findings.complete);
  for (const Finding& finding : findings.list) {
    EXPECT_EQ(finding.kind, Finding::Kind::kRace) << finding.text;
  }
  return findings;
}

// Kernels of the corpus with programs of 64 floats each.
class CorpusRacesTest : public ::testing::Test {
 protected:
  LaunchFindings CheckCorpus(const std::string& name, int32_t programs) {
    std::vector<float> x(static_cast<size_t>(programs) * 64, 1);
    std::vector<float> y(x.size());
    std::vector<float> z(x.size());
    std::vector<int32_t> flag(1);
    std::vector<KernelArgument> arguments = {ArgumentOf(x), ArgumentOf(y)};
    if (name == "row_before") arguments.push_back(ArgumentOf(z));
    if (name == "locked_updates" || absl::StartsWith(name, "last_program")) {
      arguments.push_back(ArgumentOf(flag));
    }
    if (absl::StrContains(name, "updates")) arguments.push_back(KernelArgument::Integer(64));
    const auto kernel = CompileText(CorpusTextOf(name + ".ttir"));
    return kernel == nullptr ? LaunchFindings() : Check(*kernel, {programs, 1, 1}, arguments);
  }
};

TEST_F(CorpusRacesTest, OrderedOnes) {
  for (const std::string name : {"atomic_updates", "locked_updates", "last_program"}) {
    const LaunchFindings findings = CheckCorpus(name, 40);
    EXPECT_TRUE(findings.list.empty()) << name << ": " << findings.list[0].text;
  }
}

TEST_F(CorpusRacesTest, OneProgramHasNoRaces) {
  for (const std::string name : {"lost_updates", "row_before", "last_program_relaxed"}) {
    EXPECT_TRUE(CheckCorpus(name, name == "last_program_relaxed" ? 2 : 1).list.size() < 3) << name;
  }
  EXPECT_TRUE(CheckCorpus("lost_updates", 1).list.empty());
  EXPECT_TRUE(CheckCorpus("row_before", 1).list.empty());
}

TEST_F(CorpusRacesTest, LostUpdates) {
  const LaunchFindings findings = CheckCorpus("lost_updates", 3);
  ASSERT_GE(findings.list.size(), 2u);
  const Finding& first = findings.list[0];
  EXPECT_EQ(first.text,
            "program (1, 0, 0) reads byte 0 of argument sum_ptr, which program (0, 0, 0) writes at "
            "line 15 of exec/ttir/testing/race_kernels.py, and nothing orders the two");
  EXPECT_EQ(first.place, "line 14 of exec/ttir/testing/race_kernels.py");
  EXPECT_EQ(first.kernel, "lost_updates");
  EXPECT_EQ(first.program, (std::array<int32_t, 3>{1, 0, 0}));
  bool writes = false;
  for (const Finding& finding : findings.list) {
    writes = writes || absl::StrContains(finding.text, "(another value)");
  }
  EXPECT_TRUE(writes);
}

TEST_F(CorpusRacesTest, ARowOfAnotherProgram) {
  const LaunchFindings findings = CheckCorpus("row_before", 5);
  ASSERT_FALSE(findings.list.empty());
  EXPECT_TRUE(absl::StrContains(findings.list[0].text, "argument row_ptr"));
}

TEST_F(CorpusRacesTest, ARelaxedCounterOrdersNothing) {
  const LaunchFindings findings = CheckCorpus("last_program_relaxed", 5);
  ASSERT_FALSE(findings.list.empty());
  EXPECT_TRUE(absl::StrContains(
      findings.list[0].text,
      "program (4, 0, 0) reads byte 0 of argument part_ptr, which program (0, 0, 0) writes"));
}

// Kernels of scalars: program 0 does `first`, all others `second`. %x_ptr is data, %f_ptr a flag.
std::string TwoPrograms(const std::string& first, const std::string& second) {
  return KernelText("%x_ptr: !tt.ptr<i32>, %f_ptr: !tt.ptr<i32>",
                    absl::StrCat(R"(
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %on = arith.constant true
    %id = tt.get_program_id x : i32
    %is_first = arith.cmpi eq, %id, %zero : i32
    scf.if %is_first {
)",
                                 first, "    } else {\n", second, "    }\n"));
}

size_t RacesOf(const std::string& first, const std::string& second, int32_t programs = 2) {
  const auto kernel = CompileText(TwoPrograms(first, second));
  if (kernel == nullptr) return 999;
  std::vector<int32_t> x(2);
  std::vector<int32_t> f(2);
  return Check(*kernel, {programs, 1, 1}, {ArgumentOf(x), ArgumentOf(f)}).list.size();
}

constexpr char kStore[] = "      tt.store %x_ptr, %one : !tt.ptr<i32>\n";
constexpr char kStoreOther[] = "      tt.store %x_ptr, %two : !tt.ptr<i32>\n";
constexpr char kLoad[] = "      %v = tt.load %x_ptr : !tt.ptr<i32>\n";

std::string Atomic(const std::string& semantic, const std::string& pointer = "f_ptr",
                   const std::string& scope = "gpu", const std::string& result = "a") {
  return absl::StrReplaceAll(
      "      %RESULT = tt.atomic_rmw exch, SEMANTIC, SCOPE, %POINTER, %one, %on : (!tt.ptr<i32>, "
      "i32, "
      "i1) -> i32\n",
      {{"SEMANTIC", semantic}, {"SCOPE", scope}, {"POINTER", pointer}, {"RESULT", result}});
}

std::string Swap(const std::string& semantic, const std::string& expected) {
  return absl::StrReplaceAll(
      "      %c = tt.atomic_cas SEMANTIC, gpu, %f_ptr, %EXPECTED, %two : (!tt.ptr<i32>, i32, i32) "
      "-> i32\n",
      {{"SEMANTIC", semantic}, {"EXPECTED", expected}});
}

TEST(RacesTest, PlainAccesses) {
  EXPECT_EQ(RacesOf(kLoad, kLoad), 0u);
  EXPECT_EQ(RacesOf(kStore, kLoad), 1u);
  EXPECT_EQ(RacesOf(kLoad, kStore), 1u);
  EXPECT_EQ(RacesOf(kStore, ""), 0u);
  EXPECT_EQ(RacesOf(kStore, "", 5), 0u);
  EXPECT_EQ(RacesOf("", kStore), 0u);
  EXPECT_EQ(RacesOf("", kStore, 3), 1u);
}

TEST(RacesTest, TextsSayWhetherValuesAreEqual) {
  for (const bool same : {false, true}) {
    const auto kernel = CompileText(TwoPrograms(kStore, same ? kStore : kStoreOther));
    ASSERT_NE(kernel, nullptr);
    std::vector<int32_t> x(2);
    std::vector<int32_t> f(2);
    const LaunchFindings findings = Check(*kernel, {2, 1, 1}, {ArgumentOf(x), ArgumentOf(f)});
    ASSERT_EQ(findings.list.size(), 1u);
    EXPECT_TRUE(absl::StrContains(findings.list[0].text,
                                  same ? "the two (same value)" : "the two (another value)"))
        << findings.list[0].text;
  }
}

TEST(RacesTest, ReleaseAndAcquireOrder) {
  const std::string release = kStore + Atomic("release");
  EXPECT_EQ(RacesOf(release, Atomic("acquire") + kLoad), 0u);
  EXPECT_EQ(RacesOf(release, Atomic("acq_rel") + kStoreOther), 0u);
  EXPECT_EQ(RacesOf(kStore + Atomic("acq_rel"), Atomic("acq_rel") + kLoad), 0u);
  EXPECT_EQ(RacesOf(kLoad + Atomic("release"), Atomic("acquire") + kStore), 0u);
  // A third program reads it behind another one.
  EXPECT_EQ(RacesOf(release, Atomic("acq_rel") + kLoad, 4), 0u);
  EXPECT_EQ(RacesOf(release, Atomic("acquire") + kLoad, 4), 0u);
}

TEST(RacesTest, OthersDoNot) {
  const std::string release = kStore + Atomic("release");
  EXPECT_EQ(RacesOf(release, Atomic("relaxed") + kLoad), 1u);
  EXPECT_EQ(RacesOf(release, Atomic("release") + kLoad), 1u);
  EXPECT_EQ(RacesOf(kStore + Atomic("relaxed"), Atomic("acquire") + kLoad), 1u);
  EXPECT_EQ(RacesOf(kStore + Atomic("acquire"), Atomic("acquire") + kLoad), 1u);
  // Before the acquire, or behind the release, or at another location.
  EXPECT_EQ(RacesOf(release, kLoad + Atomic("acquire")), 1u);
  EXPECT_EQ(RacesOf(Atomic("release") + kStore, Atomic("acquire") + kLoad), 1u);
  const std::string next = "      %next = tt.addptr %f_ptr, %one : !tt.ptr<i32>, i32\n";
  EXPECT_EQ(RacesOf(release, next + Atomic("acquire", "next") + kLoad), 1u);
}

TEST(RacesTest, ReleaseSequences) {
  // Programs behind the first publish what they have got, or leave what is there.
  EXPECT_EQ(RacesOf(kStore + Atomic("release"), Atomic("acquire") + kLoad, 3), 0u);
  const std::string release = Atomic("release", "f_ptr", "gpu", "b");
  EXPECT_EQ(RacesOf(kStore + Atomic("release"), release + Atomic("acquire") + kLoad, 3), 0u);
}

TEST(RacesTest, CompareAndSwap) {
  const std::string release = kStore + Atomic("release");  // the flag is 1 then
  EXPECT_EQ(RacesOf(release, Swap("acquire", "one") + kLoad), 0u);
  EXPECT_EQ(RacesOf(release, Swap("acquire", "two") + kLoad), 0u);  // fails, and reads
  EXPECT_EQ(RacesOf(release, Swap("relaxed", "one") + kLoad), 1u);
  // One that fails publishes nothing.
  EXPECT_EQ(RacesOf(kStore + Swap("release", "two"), Atomic("acquire") + kLoad), 1u);
  EXPECT_EQ(RacesOf(kStore + Swap("release", "zero"), Atomic("acquire") + kLoad), 0u);
}

TEST(RacesTest, AtomicOperationsAndPlainAccesses) {
  EXPECT_EQ(RacesOf(Atomic("relaxed", "x_ptr"), Atomic("relaxed", "x_ptr"), 5), 0u);
  EXPECT_EQ(RacesOf(Atomic("relaxed", "x_ptr"), kLoad), 1u);
  EXPECT_EQ(RacesOf(Atomic("relaxed", "x_ptr"), kStore), 1u);
  EXPECT_EQ(RacesOf(kStore, Atomic("relaxed", "x_ptr")), 1u);
  EXPECT_EQ(RacesOf(kLoad, Atomic("relaxed", "x_ptr")), 1u);
  const std::string change = Atomic("relaxed", "x_ptr", "gpu", "b");
  EXPECT_EQ(RacesOf(kStore + Atomic("release"), Atomic("acquire") + change), 0u);
  // To other programs those of scope cta are plain ones.
  EXPECT_EQ(RacesOf(Atomic("acq_rel", "x_ptr", "cta"), Atomic("acq_rel", "x_ptr", "cta")), 1u);
  EXPECT_EQ(RacesOf(Atomic("acq_rel", "x_ptr", "cta"), ""), 0u);
  EXPECT_EQ(RacesOf(Atomic("acq_rel", "x_ptr", "sys"), Atomic("acq_rel", "x_ptr", "sys")), 0u);
}

// Program p stores element p of an array of bytes; neighbours share a word.
TEST(RacesTest, BytesOfOneWord) {
  for (const std::string type : {"i8", "i16", "i32"}) {
    const auto kernel =
        CompileText(absl::StrReplaceAll(KernelText("%x_ptr: !tt.ptr<T>, %y_ptr: !tt.ptr<i64>", R"(
    %wide = tt.load %y_ptr : !tt.ptr<i64>
    %v = arith.constant 1 : T
    %id = tt.get_program_id x : i32
    %at = tt.addptr %x_ptr, %id : !tt.ptr<T>, i32
    tt.store %at, %v : !tt.ptr<T>
)"),
                                        {{"T>", type + ">"}, {": T", ": " + type}}));
    ASSERT_NE(kernel, nullptr);
    std::vector<int64_t> x(16);
    const int64_t bytes = static_cast<int64_t>(x.size()) * 8;
    const KernelArgument wide = KernelArgument::View(x.data() + 15, x.data(), bytes);
    EXPECT_EQ(Check(*kernel, {16, 1, 1}, {ArgumentOf(x), wide}).list.size(), 0u) << type;
    const KernelArgument same = KernelArgument::View(x.data(), x.data(), bytes);
    EXPECT_GE(Check(*kernel, {16, 1, 1}, {ArgumentOf(x), same}).list.size(), 1u) << type;
  }
}

// A store of 32 elements to i / 2, of i or of i / 2.
TEST(RacesTest, ElementsOfOneStore) {
  for (const bool same : {false, true}) {
    const auto kernel = CompileText(
        KernelText("%x_ptr: !tt.ptr<i32>",
                   absl::StrCat(R"(
    %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %two = arith.constant dense<2> : tensor<32xi32>
    %half = arith.divui %i, %two : tensor<32xi32>
    %s = tt.splat %x_ptr : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
    %at = tt.addptr %s, %half : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
    tt.store %at, )",
                                same ? "%half" : "%i", " : tensor<32x!tt.ptr<i32>>\n")));
    ASSERT_NE(kernel, nullptr);
    std::vector<int32_t> x(16);
    const LaunchFindings findings = Check(*kernel, {1, 1, 1}, {ArgumentOf(x)});
    ASSERT_EQ(findings.list.size(), same ? 0u : 1u);
    if (same) continue;
    EXPECT_EQ(findings.list[0].text,
              "program (0, 0, 0) stores different values of elements 0 and 1 to byte 0 of argument "
              "x_ptr");
  }
}

}  // namespace
}  // namespace tritonrl::ttir
