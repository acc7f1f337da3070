// Values of the protocol: what Python's arguments and results become.
#ifndef TRITONRL_EXEC_DEVICE_VALUE_H_
#define TRITONRL_EXEC_DEVICE_VALUE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "exec/device/geometry.h"

namespace tritonrl::device {

// A tree. Depth and number of nodes are those of the JSON that it came from.
struct Value {
  enum class Kind : uint8_t {
    kNull,
    kBool,
    kInteger,
    kFloat,
    kText,
    kList,
    kTuple,
    kDict,
    kComplex,
    kDType,
    kDevice,
    kLayout,
    kMemoryFormat,
    kGenerator,
    kTensor,  // on the device
    kHost,    // a CPU tensor
    kConfig,  // as kDict; of the constructor's arguments (exec/workers/python/mock_config.py)
  };

  static Value Null() { return {}; }
  static Value Integer(int64_t integer);
  static Value Float(double number);
  static Value Host(at::Tensor tensor);
  static Value Tensor(TensorRef tensor);
  static Value List(std::vector<Value> items);

  Kind kind = Kind::kNull;
  bool is_unsigned = false;  // kInteger: `integer` holds the bits of a uint64
  // kInteger; kBool: 0 or 1; kDType: at::ScalarType; kMemoryFormat: at::MemoryFormat; kGenerator
  int64_t integer = 0;
  double number = 0;         // kFloat, kComplex
  double imaginary = 0;      // kComplex
  std::string text;          // kText, kDevice, kLayout
  std::vector<Value> items;  // kList, kTuple; of a dict: the values
  std::vector<Value> keys;   // of a dict: kText, kInteger or kFloat, as many as `items`
  TensorRef tensor;          // kTensor
  at::Tensor host;           // kHost: contiguous
};

// Calls f for each tensor of the tree, in order of occurrence; ends at the first error.
absl::Status ForEachTensor(const Value& value, const std::function<absl::Status(const Value&)>& f);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_VALUE_H_
