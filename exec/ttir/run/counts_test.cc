// Counts of launches: against the table of another executor, and by hand.
#include <array>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "exec/ttir/run/testing/kernel_text.h"
#include "exec/ttir/testing/corpus.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

constexpr char kTable[] = "exec/ttir/run/testing/launch_counts.txt";

std::vector<double> AsList(const LaunchCounts& counts) {
  return {counts.load_bytes,   counts.store_bytes, counts.atomic_bytes, counts.sector_bytes,
          counts.unique_bytes, counts.flops,       counts.dot_flops,    counts.tensor_flops};
}

int64_t Number(absl::string_view text) {
  int64_t number = -1;
  EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << text;
  return number;
}

// A line of the table: kernel, grid, arguments, and the counts in the order of AsList. An argument
// is a tensor's size in bytes ("b4096", of zeros, or "m256%16" of 256 int32 numbers i % 16), an
// integer ("i5") or a float ("f0.5").
class TableLaunch {
 public:
  explicit TableLaunch(const std::string& line) {
    const std::vector<std::string> sides = absl::StrSplit(line, " = ");
    const std::vector<std::string> words = absl::StrSplit(sides[0], ' ');
    name = words[0];
    const std::vector<std::string> sizes = absl::StrSplit(words[1], ',');
    for (size_t i = 0; i < 3; ++i) grid[i] = static_cast<int32_t>(Number(sizes[i]));
    for (size_t i = 2; i < words.size(); ++i) AddArgument(words[i]);
    for (const auto& count : absl::StrSplit(sides[1], ' ')) {
      expected.push_back(static_cast<double>(Number(count)));
    }
  }

  std::string name;
  std::array<int32_t, 3> grid = {};
  std::vector<KernelArgument> arguments;
  std::vector<double> expected;

 private:
  void AddArgument(const std::string& word) {
    const std::string text = word.substr(1);
    double number = 0;
    switch (word[0]) {
      case 'i':
        arguments.push_back(KernelArgument::Integer(Number(text)));
        break;
      case 'f':
        EXPECT_TRUE(absl::SimpleAtod(text, &number)) << text;
        arguments.push_back(KernelArgument::Float(number));
        break;
      case 'b': {
        const int64_t bytes = Number(text);
        std::vector<int32_t>& values = tensors_.emplace_back(static_cast<size_t>((bytes + 3) / 4));
        arguments.push_back(KernelArgument::Tensor(values.data(), bytes));
        break;
      }
      default: {
        const std::vector<std::string> parts = absl::StrSplit(text, '%');
        std::vector<int32_t>& values = tensors_.emplace_back();
        for (int64_t i = 0; i < Number(parts[0]); ++i) {
          values.push_back(static_cast<int32_t>(i % Number(parts[1])));
        }
        arguments.push_back(ArgumentOf(values));
      }
    }
  }

  std::list<std::vector<int32_t>> tensors_;
};

TEST(CountsTest, EqualThoseOfTheTable) {
  const auto path = Runfile(kTable);
  ASSERT_TRUE(path.ok()) << path.status();
  const auto table = ReadFile(*path);
  ASSERT_TRUE(table.ok()) << table.status();
  int launches = 0;
  const std::vector<std::string> lines = absl::StrSplit(*table, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    TableLaunch launch(line);
    const auto kernel = CompileText(CorpusTextOf(launch.name + ".ttir"));
    ASSERT_NE(kernel, nullptr);
    LaunchCounts counts;
    LaunchOptions options;
    options.counts = &counts;
    const absl::Status status = kernel->Launch(launch.grid, launch.arguments, options);
    EXPECT_TRUE(status.ok()) << launch.name << ": " << status;
    EXPECT_EQ(AsList(counts), launch.expected) << line;
    ++launches;
  }
  EXPECT_GE(launches, 30);
}

// Loads 64 floats from 16 bytes behind the beginning on, with a mask of the first 20, and stores
// them two bytes apart as f16.
constexpr char kMaskedBody[] = R"(
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %four = arith.constant dense<4> : tensor<64xi32>
    %twenty = arith.constant dense<20> : tensor<64xi32>
    %mask = arith.cmpi slt, %i, %twenty : tensor<64xi32>
    %from = arith.addi %i, %four : tensor<64xi32>
    %x_s = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %x_at = tt.addptr %x_s, %from : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %x = tt.load %x_at, %mask : tensor<64x!tt.ptr<f32>>
    %y = arith.mulf %x, %x : tensor<64xf32>
    %r = arith.truncf %y : tensor<64xf32> to tensor<64xf16>
    %r_s = tt.splat %r_ptr : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
    %two = arith.constant dense<2> : tensor<64xi32>
    %by = arith.muli %i, %two : tensor<64xi32>
    %r_at = tt.addptr %r_s, %by : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    tt.store %r_at, %r, %mask : tensor<64x!tt.ptr<f16>>
)";

TEST(CountsTest, MaskedElementsTouchNothing) {
  const auto kernel =
      CompileText(KernelText("%x_ptr: !tt.ptr<f32>, %r_ptr: !tt.ptr<f16>", kMaskedBody));
  ASSERT_NE(kernel, nullptr);
  std::vector<float> x(68);
  std::vector<uint16_t> r(128);
  LaunchCounts counts;
  LaunchOptions options;
  options.counts = &counts;
  ASSERT_TRUE(kernel->Launch({3, 1, 1}, {ArgumentOf(x), ArgumentOf(r)}, options).ok());
  EXPECT_EQ(counts.load_bytes, 3 * 20 * 4);
  EXPECT_EQ(counts.store_bytes, 3 * 20 * 2);
  // Bytes [16, 96) are 3 sectors, bytes [0, 78) with gaps 3.
  EXPECT_EQ(counts.sector_bytes, 3 * (3 + 3) * 32);
  EXPECT_EQ(counts.unique_bytes, (3 + 3) * 32);
  EXPECT_EQ(counts.flops, 3 * 64);
  EXPECT_EQ(counts.dot_flops + counts.tensor_flops + counts.atomic_bytes, 0);
}

// A column of 32 rows with 128 bytes each, from the last row to the first, in a loop of 4.
TEST(CountsTest, StridesAndLoops) {
  const auto kernel = CompileText(KernelText("%x_ptr: !tt.ptr<f32>", R"(
    %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %last = arith.constant dense<31> : tensor<32xi32>
    %row = arith.constant dense<32> : tensor<32xi32>
    %up = arith.subi %last, %i : tensor<32xi32>
    %off = arith.muli %up, %row : tensor<32xi32>
    %s = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %at = tt.addptr %s, %off : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %four = arith.constant 4 : i32
    scf.for %k = %zero to %four step %one : i32 {
      %x = tt.load %at : tensor<32x!tt.ptr<f32>>
      %y = math.fma %x, %x, %x : tensor<32xf32>
      tt.store %at, %y : tensor<32x!tt.ptr<f32>>
    }
)"));
  ASSERT_NE(kernel, nullptr);
  std::vector<float> x(32 * 32);
  LaunchCounts counts;
  LaunchOptions options;
  options.counts = &counts;
  ASSERT_TRUE(kernel->Launch({1, 1, 1}, {ArgumentOf(x)}, options).ok());
  EXPECT_EQ(counts.load_bytes, 4 * 32 * 4);
  EXPECT_EQ(counts.store_bytes, 4 * 32 * 4);
  EXPECT_EQ(counts.sector_bytes, 2 * 4 * 32 * 32);
  EXPECT_EQ(counts.unique_bytes, 2 * 32 * 32);
  EXPECT_EQ(counts.flops, 4 * 32 * 2);
}

// The same tensor through an argument, a view of it, and an address; any number of threads.
TEST(CountsTest, OneStorageIsCountedOnce) {
  const auto kernel =
      CompileText(KernelText("%x_ptr: !tt.ptr<i32>, %y_ptr: !tt.ptr<i32>, %address: i64", R"(
    %z_ptr = tt.int_to_ptr %address : i64 -> !tt.ptr<i32>
)" + LoadText("x", "i32", 64) + LoadText("y", "i32", 64) + LoadText("z", "i32", 64)));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x(128);
  const auto bytes = static_cast<int64_t>(x.size() * sizeof(int32_t));
  for (const int threads : {1, 3}) {
    LaunchCounts counts;
    LaunchOptions options;
    options.threads = threads;
    options.counts = &counts;
    const std::vector<KernelArgument> arguments = {
        ArgumentOf(x), KernelArgument::View(x.data() + 64, x.data(), bytes),
        KernelArgument::Integer(reinterpret_cast<int64_t>(x.data()))};
    ASSERT_TRUE(kernel->Launch({20'000, 1, 1}, arguments, options).ok());
    EXPECT_EQ(counts.load_bytes, 20'000 * 3 * 64 * 4);
    EXPECT_EQ(counts.sector_bytes, 20'000 * 3 * 64 * 4);
    EXPECT_EQ(counts.unique_bytes, bytes);
  }
}

TEST(CountsTest, FailedLaunchesCountWhatTheyDid) {
  const auto kernel = CompileText(KernelText("%x_ptr: !tt.ptr<i32>, %y_ptr: !tt.ptr<i32>",
                                             LoadText("x", "i32", 64) + LoadText("y", "i32", 64)));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x(64);
  std::vector<int32_t> y(63);
  LaunchCounts counts;
  counts.flops = 7;
  LaunchOptions options;
  options.counts = &counts;
  EXPECT_FALSE(kernel->Launch({1, 1, 1}, {ArgumentOf(x), ArgumentOf(y)}, options).ok());
  EXPECT_EQ(counts.load_bytes, 256);
  EXPECT_EQ(counts.flops, 0);
}

}  // namespace
}  // namespace tritonrl::ttir
