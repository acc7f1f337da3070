// What a candidate did, as a list of commands that can run again without it.
#ifndef TRITONRL_EXEC_DEVICE_RECORDING_H_
#define TRITONRL_EXEC_DEVICE_RECORDING_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "exec/device/operator_call.h"
#include "exec/device/value.h"

namespace tritonrl::device {

struct AllocateCommand {
  int64_t storage = 0;
};
struct OperatorCommand {
  OperatorCall call;
  std::vector<TensorRef> made;  // new tensors, in the order of the results
};
struct LaunchCommand {
  int64_t kernel = 0;
  std::array<int32_t, 3> grid = {1, 1, 1};
  std::vector<Value> arguments;
  int line = 0;
};
// A replay must read the same, else forward might have gone another way.
struct ReadCommand {
  TensorRef tensor;
  at::Tensor seen;
};
struct SeedCommand {
  int64_t generator = 0;
  uint64_t seed = 0;
};
struct FreeCommand {
  std::vector<int64_t> storages;
};

using Command = std::variant<AllocateCommand, OperatorCommand, LaunchCommand, ReadCommand,
                             SeedCommand, FreeCommand>;
// Graphs share commands with the calls that replay them.
using CommandList = std::vector<std::shared_ptr<const Command>>;

// One call of forward.
struct RecordedCall {
  CommandList commands;
  std::vector<TensorRef> inputs;  // in order of occurrence in args and kwargs
  uint64_t seed = 0;
  Value output;  // its tensors are on the device
};

struct Recording {
  CommandList init;
  uint64_t init_seed = 0;
  std::vector<std::pair<std::string, TensorRef>> state;  // parameters and buffers by name
  RecordedCall call;                                     // the first one
};

// Number of launches, replayed graphs included.
int64_t CountLaunches(const CommandList& commands);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_RECORDING_H_
