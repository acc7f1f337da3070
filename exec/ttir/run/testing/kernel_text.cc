#include "exec/ttir/run/testing/kernel_text.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "exec/ttir/parser.h"

namespace tritonrl::ttir {

std::unique_ptr<Kernel> CompileText(const std::string& text) {
  const auto module = ParseTtir(text);
  EXPECT_TRUE(module.ok()) << module.status() << "\n" << text;
  if (!module.ok()) return nullptr;
  auto kernel = Compile(*module);
  EXPECT_TRUE(kernel.ok()) << kernel.status() << "\n" << text;
  return kernel.ok() ? *std::move(kernel) : nullptr;
}

absl::Status CompileError(const std::string& text) {
  const auto module = ParseTtir(text);
  EXPECT_TRUE(module.ok()) << module.status() << "\n" << text;
  return module.ok() ? Compile(*module).status() : absl::OkStatus();
}

std::string KernelText(const std::string& arguments, const std::string& body) {
  return absl::StrCat("module {\n  tt.func public @k(", arguments,
                      ") attributes {noinline = false} {\n", body, "    tt.return\n  }\n}\n");
}

namespace {

std::string PointersText(const std::string& name, const std::string& element, int64_t count) {
  return absl::Substitute(
      "    %$0_i = tt.make_range {end = $2 : i32, start = 0 : i32} : tensor<$2xi32>\n"
      "    %$0_s = tt.splat %$0_ptr : !tt.ptr<$1> -> tensor<$2x!tt.ptr<$1>>\n"
      "    %$0_at = tt.addptr %$0_s, %$0_i : tensor<$2x!tt.ptr<$1>>, tensor<$2xi32>\n",
      name, element, count);
}

}  // namespace

std::string LoadText(const std::string& name, const std::string& element, int64_t count) {
  return PointersText(name, element, count) +
         absl::Substitute("    %$0 = tt.load %$0_at : tensor<$2x!tt.ptr<$1>>\n", name, element,
                          count);
}

std::string StoreText(const std::string& name, const std::string& element, int64_t count) {
  return PointersText(name, element, count) +
         absl::Substitute("    tt.store %$0_at, %$0 : tensor<$2x!tt.ptr<$1>>\n", name, element,
                          count);
}

LaunchFindings Check(const Kernel& kernel, const std::vector<KernelArgument>& arguments,
                     int32_t programs) {
  LaunchFindings findings;
  LaunchOptions options;
  options.threads = 4;
  options.check = &findings;
  const absl::Status status = kernel.Launch({programs, 1, 1}, arguments, options);
  EXPECT_TRUE(status.ok()) << status;
  return findings;
}

std::vector<std::string> TextsOf(const LaunchFindings& findings, Finding::Kind kind) {
  std::vector<std::string> texts;
  for (const Finding& finding : findings.list) {
    EXPECT_EQ(finding.kind, kind) << finding.text;
    texts.push_back(finding.text);
  }
  return texts;
}

}  // namespace tritonrl::ttir
