// Compares what a candidate handed over with what is expected. It works on bytes and checked
// layouts alone; no code of a candidate or of Python takes part.
#ifndef TRITONRL_EXEC_TENSOR_COMPARE_H_
#define TRITONRL_EXEC_TENSOR_COMPARE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"
#include "exec/tensor_layout.h"

namespace tritonrl {

struct Comparison {
  bool equal = true;
  std::string message;              // one sentence when they differ
  OutputMismatch mismatch;          // filled in when they differ, without the trial
  std::optional<double> max_error;  // largest absolute error seen, if a number was compared
};

// Leaves and the memory that their offsets point into.
struct Tensors {
  const std::vector<Leaf>& leaves;
  absl::string_view memory;
};

// Compares leaf by leaf: their number, then of each its type, device, layout, shape, element type
// and values. A value is right if |got - want| <= atol + rtol * |want| (in double precision), if
// both are NaN, or if they are equal (which lets infinities agree); an infinity where a finite
// value is expected, or the other way round, is wrong. The first leaf that differs ends it. A
// tensor of the right shape that was not handed over is a mismatch of kind "type".
Comparison CompareOutputs(const Tensors& want, const Tensors& got, double atol, double rtol);

// True when both hold bit for bit the same tensors; other leaves are not looked at.
bool SameTensors(const Tensors& want, const Tensors& got);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TENSOR_COMPARE_H_
