// Values between the two forms that they have here: layouts over memory (docs/protocol.md), in
// which a reference hands over inputs and outputs are compared, and the executor's trees with
// tensors.
#ifndef TRITONRL_EXEC_CLIENT_RUN_LAYOUT_VALUES_H_
#define TRITONRL_EXEC_CLIENT_RUN_LAYOUT_VALUES_H_

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/compare/tensor_layout.h"
#include "exec/device/value.h"
#include "exec/device/window.h"

namespace tritonrl {

// Returns the value of a layout that ParseLayout accepted for `memory`. Its tensors have the
// layout's strides where each element can have a place of its own; dense ones are views of
// `memory`, which must outlive them and is never written. InvalidArgument: a kind of value that
// cannot be handed over.
absl::StatusOr<device::Value> ValueOfLayout(const nlohmann::json& layout, absl::string_view memory);

// What the reference hands over to candidates.
struct VisibleValues {
  device::Value args;                                     // of the constructor, a list
  device::Value kwargs;                                   // of the constructor, a dict
  std::vector<std::pair<std::string, at::Tensor>> state;  // parameters and buffers by name
  std::map<std::string, double> varied;  // those that were 0 or 1 before they got other values
  std::vector<device::Value> inputs;     // of each trial, a list
};
// Reads ReferenceResult::visible_layout over its `memory`. With a `window` the inputs lie there,
// with their strides: only their forms are known.
absl::StatusOr<VisibleValues> ReadVisibleValues(absl::string_view visible_layout,
                                                absl::string_view memory,
                                                const device::Window* window = nullptr);

// The tensors of a value, in the order of occurrence.
std::vector<at::Tensor> TensorsOf(const device::Value& value);

// Whether two values differ only in the contents of tensors: the same structure, plain values, and
// shapes, strides and types of tensors.
bool SameForm(const device::Value& a, const device::Value& b);

// Leaves of a value, and the memory that they refer to.
struct LeavesInMemory {
  std::vector<Leaf> leaves;
  std::string memory;
};
// Describes a value whose tensors are on the host as a layout over `memory`, which is overwritten
// with their contents; `device` is what it says of the device that they are copies from.
// With a `window` the tensors lie there, and the layout is over that; those of the device "meta"
// were not handed over. InvalidArgument: it is nested too deeply.
absl::StatusOr<nlohmann::json> LayoutOfValue(const device::Value& value, std::string* memory,
                                             const std::string& device = "cpu",
                                             const device::Window* window = nullptr);
// Copies a value whose tensors are on the host, or describes one in a window. InvalidArgument: more
// leaves or deeper nesting than ParseLayout allows.
absl::StatusOr<LeavesInMemory> LeavesOfValue(const device::Value& value,
                                             const std::string& device = "cpu",
                                             const device::Window* window = nullptr);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLIENT_RUN_LAYOUT_VALUES_H_
