// Times of the kernels that a generation step is made of, in the shape of Qwen3-8B, on the current
// GPU: where a step's time goes, and how far from the memory's speed each is. Two minutes.

#include <ATen/Context.h>
#include <cuda_runtime_api.h>

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "base/program.h"
#include "bench/rollout/kernel_timer.h"

ABSL_FLAG(std::string, only, "",
          "attention, together, step, sampling, products, chains, memory, exact (with fp8), "
          "attention_power or products_power; empty: all.");

namespace tritonrl {
namespace {

struct Part {
  const char* name;
  void (*run)();
};

int Main() {
  const std::vector<Part> parts = {{"attention", BenchAttention},
                                   {"together", BenchAttentionTogether},
                                   {"step", BenchStepKernels},
                                   {"sampling", BenchSampling},
                                   {"products", BenchProducts},
                                   {"chains", BenchChains},
                                   {"memory", BenchMappedMemory},
                                   {"exact", BenchExactAndFp8Products},
                                   {"attention_power", BenchAttentionPower},
                                   {"products_power", BenchProductsPower}};
  const std::string only = absl::GetFlag(FLAGS_only);
  if (!at::globalContext().hasCUDA()) {
    std::cerr << "kernel_bench measures a GPU, and this machine has none.\n";
    return 2;
  }
  bool known = only.empty();
  for (const Part& part : parts) {
    if (!only.empty() && only != part.name) continue;
    known = true;
    try {
      part.run();
      std::cout << std::endl;
    } catch (const std::exception& error) {
      std::cerr << part.name << ": " << error.what() << "\n";
      return 1;
    }
  }
  if (!known) std::cerr << "--only=" << only << ": see --help for the names of the parts.\n";
  return known ? 0 : 2;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Times the kernels of a generation step on a GPU.", argc, argv);
  return tritonrl::Main();
}
