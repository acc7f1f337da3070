// Time of launches of Triton IR on the CPU: kernels of the corpus at sizes of real tasks.
#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "bench/harness/harness.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/run/executor.h"
#include "exec/ttir/testing/corpus.h"

ABSL_FLAG(int, threads, 2, "Threads of a launch.");

namespace tritonrl {
namespace {

using ttir::KernelArgument;

// A kernel, its arguments and the grid.
class Launchable {
 public:
  Launchable(std::string file, std::array<int32_t, 3> grid) : file_(std::move(file)), grid_(grid) {}

  absl::Status Compile() {
    ASSIGN_OR_RETURN(const ttir::Module module, ttir::ParseTtir(ttir::CorpusTextOf(file_)));
    ASSIGN_OR_RETURN(kernel_, ttir::Compile(module));
    return absl::OkStatus();
  }

  // A tensor of numbers in [-1, 1).
  void AddFloats(size_t count) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float>& values = floats_.emplace_back(count);
    for (float& value : values) value = uniform(random_);
    arguments_.push_back(KernelArgument::Tensor(values.data(), static_cast<int64_t>(count) * 4));
  }
  // A tensor of f16 numbers with magnitudes in [2^-4, 1).
  void AddHalves(size_t count) {
    std::vector<uint16_t>& values = halves_.emplace_back(count);
    for (uint16_t& value : values) {
      const auto bits = static_cast<uint32_t>(random_());
      value = static_cast<uint16_t>((bits & 0x83FF) | (11 + (bits >> 16) % 4) << 10);
    }
    arguments_.push_back(KernelArgument::Tensor(values.data(), static_cast<int64_t>(count) * 2));
  }
  void AddInteger(int64_t value) { arguments_.push_back(KernelArgument::Integer(value)); }

  absl::StatusOr<double> Launch() const {
    ttir::LaunchOptions options;
    options.threads = absl::GetFlag(FLAGS_threads);
    absl::Status status;
    const double seconds = SecondsOf([&] { status = kernel_->Launch(grid_, arguments_, options); });
    RETURN_IF_ERROR(status);
    return seconds;
  }

 private:
  const std::string file_;
  const std::array<int32_t, 3> grid_;
  std::unique_ptr<ttir::Kernel> kernel_;
  std::mt19937 random_{1};
  std::list<std::vector<float>> floats_;
  std::list<std::vector<uint16_t>> halves_;
  std::vector<KernelArgument> arguments_;
};

absl::Status Run(Bench* bench) {
  constexpr int kElements = 1 << 20;
  Launchable add("vector_add.ttir", {kElements / 1024, 1, 1});
  for (int i = 0; i < 3; ++i) add.AddFloats(kElements);
  add.AddInteger(kElements);

  constexpr int kRows = 4096;
  constexpr int kColumns = 1024;
  Launchable softmax("softmax.ttir", {kRows, 1, 1});
  for (int i = 0; i < 2; ++i) softmax.AddFloats(size_t{kRows} * kColumns);
  softmax.AddInteger(kColumns);

  constexpr int kSize = 1024;
  Launchable matmul("grouped_matmul.ttir", {(kSize / 64) * (kSize / 64), 1, 1});
  for (int i = 0; i < 2; ++i) matmul.AddHalves(size_t{kSize} * kSize);
  matmul.AddFloats(size_t{kSize} * kSize);
  for (int i = 0; i < 3; ++i) matmul.AddInteger(kSize);

  std::vector<BenchCase> cases;
  for (Launchable* launchable : {&add, &softmax, &matmul}) {
    RETURN_IF_ERROR(launchable->Compile());
    cases.push_back([launchable](bool) { return launchable->Launch(); });
  }
  ASSIGN_OR_RETURN(const auto seconds, bench->Measure(cases));

  bench->set_subject("Triton IR on the CPU");
  const std::string threads = absl::StrCat(", ", absl::GetFlag(FLAGS_threads), " threads");
  const auto figures = [&](const std::vector<double>& times, const std::string& name, double amount,
                           const std::string& unit) {
    std::vector<double> milliseconds;
    for (const double time : times) milliseconds.push_back(time * 1e3);
    return std::vector<Figure>{
        {"time", Fastest(times) * 1e3, "ms", std::nullopt, std::nullopt, milliseconds},
        {name, amount / Fastest(times), unit, std::nullopt, std::nullopt, Rates(amount, times)}};
  };
  bench->Add("vector add of 2^20 fp32, blocks of 1024" + threads,
             figures(seconds[0], "memory traffic", 3 * 4e-9 * kElements, "GB/s"));
  bench->Add("softmax of 4096 x 1024 fp32" + threads,
             figures(seconds[1], "memory traffic", 2 * 4e-9 * kRows * kColumns, "GB/s"));
  bench->Add("matmul of 1024^3 fp16, tiles 64 x 64 x 32" + threads,
             figures(seconds[2], "rate", 2e-9 * kSize * kSize * kSize, "GFLOP/s"));
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench(
      {.usage = "Time of launches of Triton IR on the CPU.", .warmup = 1, .repeats = 5}, argc, argv,
      tritonrl::Run);
}
