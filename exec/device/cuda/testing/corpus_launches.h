// Launches of the corpus' kernels with inputs, and how far two results are apart.
#ifndef TRITONRL_EXEC_DEVICE_CUDA_TESTING_CORPUS_LAUNCHES_H_
#define TRITONRL_EXEC_DEVICE_CUDA_TESTING_CORPUS_LAUNCHES_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "exec/device/kernel_compiler.h"
#include "exec/ttir/types.h"

namespace tritonrl::device {

struct CorpusLaunch {
  std::string name;
  std::array<int32_t, 3> grid = {};
  std::vector<LaunchArgument> arguments;      // kPointer: a tensor, whose place is still missing
  std::vector<std::vector<uint8_t>> tensors;  // by argument: contents; empty for a number
  std::vector<ttir::Type> types;              // of the numbers, or of the tensors' elements
};

// Those of exec/ttir/run/testing/launch_counts.txt. Tensors of floats hold numbers of about 1.
std::vector<CorpusLaunch> ReadCorpusLaunches();

// The most that an element differs, relative to the larger of its size and a sixteenth of the
// largest (sums may cancel), in units of its type's precision; infinite if one is NaN, or for
// integers.
double DistanceOf(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b,
                  const ttir::Type& type);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_TESTING_CORPUS_LAUNCHES_H_
