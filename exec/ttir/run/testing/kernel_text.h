// Small kernels for tests of the executor.
#ifndef TRITONRL_EXEC_TTIR_RUN_TESTING_KERNEL_TEXT_H_
#define TRITONRL_EXEC_TTIR_RUN_TESTING_KERNEL_TEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "exec/ttir/run/executor.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {

// Parses and compiles; fails the test and returns nullptr on an error.
std::unique_ptr<Kernel> CompileText(const std::string& text);
// The error of compiling a text that parses.
absl::Status CompileError(const std::string& text);

// A module with one kernel @k: "%x_ptr: !tt.ptr<f32>, %n: i32" and the operations of its body.
std::string KernelText(const std::string& arguments, const std::string& body);

// Operations that make %NAME the `count` elements from %NAME_ptr on, and %NAME_at their pointers.
std::string LoadText(const std::string& name, const std::string& element, int64_t count);
// Operations that store %NAME, a tensor of `count` elements, from %NAME_ptr on.
std::string StoreText(const std::string& name, const std::string& element, int64_t count);

template <typename T>
KernelArgument ArgumentOf(std::vector<T>& values) {
  return KernelArgument::Tensor(values.data(), static_cast<int64_t>(values.size() * sizeof(T)));
}

// Launches with checks on four threads; fails the test if the launch fails.
LaunchFindings Check(const Kernel& kernel, const std::vector<KernelArgument>& arguments,
                     int32_t programs = 1);
// The findings' sentences; fails the test if one is of another kind.
std::vector<std::string> TextsOf(const LaunchFindings& findings, Finding::Kind kind);

// Runs `body` once. It makes %r of %x and %y: $T stands for a tensor of elements `in`, $R for one
// of elements `out`, $N for the number of elements.
template <typename R, typename T>
std::vector<R> RunBody(std::string body, const std::string& in, const std::string& out,
                       std::vector<T> x, std::vector<T> y) {
  const auto count = static_cast<int64_t>(x.size());
  const std::string number = std::to_string(count);
  const auto replace = [&](const std::string& what, const std::string& by) {
    for (size_t at = body.find(what); at != std::string::npos; at = body.find(what, at)) {
      body.replace(at, what.size(), by);
    }
  };
  replace("$T", "tensor<" + number + "x" + in + ">");
  replace("$R", "tensor<" + number + "x" + out + ">");
  replace("$N", number);
  const auto kernel = CompileText(KernelText(
      "%x_ptr: !tt.ptr<" + in + ">, %y_ptr: !tt.ptr<" + in + ">, %r_ptr: !tt.ptr<" + out + ">",
      LoadText("x", in, count) + LoadText("y", in, count) + body + StoreText("r", out, count)));
  std::vector<R> result(x.size());
  if (kernel == nullptr) return result;
  const absl::Status status = kernel->Launch(
      {1, 1, 1}, {ArgumentOf(x), ArgumentOf(y), ArgumentOf(result)}, LaunchOptions());
  EXPECT_TRUE(status.ok()) << status << "\n" << body;
  return result;
}

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_TESTING_KERNEL_TEXT_H_
