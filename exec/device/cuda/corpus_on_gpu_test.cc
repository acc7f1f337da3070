// Kernels of the corpus on a GPU against the executor on the CPU, with the same inputs.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "exec/device/bytes.h"
#include "exec/device/cuda/testing/corpus_launches.h"
#include "exec/device/cuda/testing/cuda_fixture.h"
#include "exec/device/ttir_compiler.h"
#include "exec/ttir/testing/corpus.h"

namespace tritonrl::device {
namespace {

// Order of sums and contractions may differ, by so much.
constexpr double kMostUnits = 64;

// Kernels that change their input in place, which only one program does in order.
bool NeedsOneProgram(const std::string& name) {
  for (const char* const other :
       {"mapped", "dots", "nested_loops", "branches", "several_returns", "calls", "persistent"}) {
    if (name == other) return true;
  }
  return false;
}

class CorpusTest : public CudaFixture {
 protected:
  // Runs both; false if Triton cannot compile the kernel.
  bool Compare(CorpusLaunch launch) {
    const std::string text = ttir::CorpusTextOf(launch.name + ".ttir");
    const auto host = cpu_.CompileTtir(text, {});
    EXPECT_TRUE(host.ok()) << host.status();
    const auto gpu = Gpu().compiler->CompileTtir(text, {});
    if (!gpu.ok()) {
      printf("%-24s %s\n", launch.name.c_str(), std::string(gpu.status().message()).c_str());
      return false;
    }
    LaunchSettings settings;
    settings.shadow_tag = static_cast<uint8_t>(Tag::kKernel);
    settings.expired = [end = absl::Now() + absl::Seconds(20)] { return absl::Now() > end; };
    const std::vector<int> storages = PutOnGpu(launch);
    const absl::Status on_gpu = (*gpu)->Launch(launch.grid, launch.arguments, settings);
    EXPECT_TRUE(on_gpu.ok()) << launch.name << on_gpu;
    PutOnCpu(launch);
    const absl::Status on_cpu = (*host)->Launch(launch.grid, launch.arguments, settings);
    EXPECT_TRUE(on_cpu.ok()) << launch.name << on_cpu;
    if (on_gpu.ok() && on_cpu.ok()) CompareResults(launch, storages);
    return true;
  }
  int exact() const { return exact_; }

 private:
  std::vector<int> PutOnGpu(CorpusLaunch& launch) {
    std::vector<int> storages(launch.tensors.size());
    for (size_t i = 0; i < launch.tensors.size(); ++i) {
      if (launch.tensors[i].empty()) continue;
      const auto bytes = static_cast<int64_t>(launch.tensors[i].size());
      storages[i] = Make(bytes, at::kByte);
      const Storage& storage = *device_->memory().Find(storages[i]);
      CopyFromHost(device_->memory().device(), storage.data, launch.tensors[i].data(), bytes);
      launch.arguments[i].data = launch.arguments[i].storage = storage.data;
      launch.arguments[i].storage_bytes = bytes;
    }
    return storages;
  }

  void PutOnCpu(CorpusLaunch& launch) {
    for (size_t i = 0; i < launch.tensors.size(); ++i) {
      if (launch.tensors[i].empty()) continue;
      char* const data = reinterpret_cast<char*>(launch.tensors[i].data());
      launch.arguments[i].data = launch.arguments[i].storage = data;
    }
  }

  void CompareResults(const CorpusLaunch& launch, const std::vector<int>& storages) {
    double worst = 0;
    int64_t tagged = 0;
    for (size_t i = 0; i < launch.tensors.size(); ++i) {
      if (launch.tensors[i].empty()) continue;
      const at::Tensor now = View(storages[i], at::kByte).cpu();
      const auto* const begin = now.const_data_ptr<uint8_t>();
      const std::vector<uint8_t> bytes(begin, begin + now.numel());
      worst = std::max(worst, DistanceOf(launch.tensors[i], bytes, launch.types[i]));
      tagged += Bytes(storages[i], Tag::kKernel);
    }
    printf("%-24s worst %.3g units, %ld bytes tagged\n", launch.name.c_str(), worst, tagged);
    EXPECT_GT(tagged, 0) << launch.name;
    // Of 8-bit floats the tensor cores of sm_90 keep some 14 bits of a sum.
    EXPECT_LT(worst, launch.name == "dots" ? 0x1p14 : kMostUnits) << launch.name;
    exact_ += worst == 0 ? 1 : 0;
  }

  TtirCompiler cpu_;
  int exact_ = 0;
};

TEST_F(CorpusTest, KernelsComputeWhatTheyComputeOnTheCpu) {
  int launches = 0;
  for (CorpusLaunch& launch : ReadCorpusLaunches()) {
    if (NeedsOneProgram(launch.name)) launch.grid = {1, 1, 1};
    if (Compare(launch)) ++launches;
  }
  printf("%d launches, %d equal bit for bit\n", launches, exact());
  EXPECT_GE(launches, 30);
}

}  // namespace
}  // namespace tritonrl::device
