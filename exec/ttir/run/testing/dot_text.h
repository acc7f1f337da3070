// Kernels of one tt.dot, for tests.
#ifndef TRITONRL_EXEC_TTIR_RUN_TESTING_DOT_TEXT_H_
#define TRITONRL_EXEC_TTIR_RUN_TESTING_DOT_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/substitute.h"
#include "exec/ttir/run/testing/kernel_text.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {

// Sizes and element types of r = c + x y, where x is m x k and y is k x n.
struct DotShape {
  int m = 0;
  int n = 0;
  int k = 0;
  std::string x;
  std::string y;
  std::string result;  // and c
};

// A kernel of the four matrices, with `options` behind the accumulator.
inline std::string DotText(const DotShape& shape, const std::string& options) {
  const auto matrix = [](const std::string& name, int rows, int columns, const std::string& type) {
    return LoadText(name, type, rows * columns) +
           absl::Substitute("    %$0_m = tt.reshape %$0 : tensor<$1x$4> -> tensor<$2x$3x$4>\n",
                            name, rows * columns, rows, columns, type);
  };
  const auto& [m, n, k, x, y, result] = shape;
  return KernelText(
      absl::Substitute("%x_ptr: !tt.ptr<$0>, %y_ptr: !tt.ptr<$1>, %c_ptr: !tt.ptr<$2>, %r_ptr: "
                       "!tt.ptr<$2>",
                       x, y, result),
      matrix("x", m, k, x) + matrix("y", k, n, y) + matrix("c", m, n, result) +
          absl::Substitute("    %d = tt.dot %x_m, %y_m, %c_m$6 : tensor<$0x$2x$3> * "
                           "tensor<$2x$1x$4> -> tensor<$0x$1x$5>\n"
                           "    %r = tt.reshape %d : tensor<$0x$1x$5> -> tensor<$7x$5>\n",
                           m, n, k, x, y, result, options, m * n) +
          StoreText("r", result, m * n));
}

// Runs such a kernel once; fails the test on an error.
template <typename T, typename R>
std::vector<R> RunDot(const std::string& text, std::vector<T> x, std::vector<T> y,
                      std::vector<R> c) {
  const auto kernel = CompileText(text);
  std::vector<R> result(c.size());
  if (kernel == nullptr) return result;
  const absl::Status status =
      kernel->Launch({1, 1, 1}, {ArgumentOf(x), ArgumentOf(y), ArgumentOf(c), ArgumentOf(result)},
                     LaunchOptions());
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_TESTING_DOT_TEXT_H_
