#include "exec/device/ttir_compiler.h"

#include <utility>

#include "absl/strings/match.h"
#include "base/status.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/run/executor.h"

namespace tritonrl::device {
namespace {

class TtirKernel : public LaunchableKernel {
 public:
  explicit TtirKernel(std::unique_ptr<ttir::Kernel> kernel) : kernel_(std::move(kernel)) {}

  absl::Status Launch(const std::array<int32_t, 3>& grid,
                      absl::Span<const LaunchArgument> arguments,
                      const LaunchSettings& settings) const override {
    std::vector<ttir::KernelArgument> values;
    for (const LaunchArgument& argument : arguments) {
      switch (argument.kind) {
        case LaunchArgument::Kind::kPointer:
          values.push_back(
              ttir::KernelArgument::View(argument.data, argument.storage, argument.storage_bytes));
          values.back().shadow = argument.shadow;
          values.back().view_bytes = argument.view_bytes;
          break;
        case LaunchArgument::Kind::kInteger:
          values.push_back(ttir::KernelArgument::Integer(argument.integer));
          break;
        case LaunchArgument::Kind::kFloat:
          values.push_back(ttir::KernelArgument::Float(argument.number));
          break;
      }
    }
    ttir::LaunchOptions options;
    options.counts = settings.counts;
    options.check = settings.findings;
    options.print = settings.print;
    options.threads = settings.threads;
    options.expired = settings.expired;
    options.shadow_tag = settings.shadow_tag;
    for (const ReachableStorage& storage : settings.reachable) {
      options.reachable.push_back({storage.name, storage.data, storage.bytes, storage.shadow});
    }
    return kernel_->Launch(grid, values, options);
  }

 private:
  std::unique_ptr<ttir::Kernel> kernel_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const LaunchableKernel>> TtirCompiler::CompileTtir(
    absl::string_view text, const KernelOptions&) {
  ASSIGN_OR_RETURN(const ttir::Module module, ttir::ParseTtir(text));
  absl::StatusOr<std::unique_ptr<ttir::Kernel>> kernel = ttir::Compile(module);
  // Not the candidate's fault: the operation is missing here.
  if (absl::StartsWith(kernel.status().message(), "not executable")) {
    return absl::UnimplementedError(kernel.status().message());
  }
  RETURN_IF_ERROR(kernel.status());
  return std::make_shared<TtirKernel>(*std::move(kernel));
}

}  // namespace tritonrl::device
