#include "exec/device/ttir_compiler.h"

#include <utility>

#include "absl/strings/match.h"
#include "base/status.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/run/executor.h"

namespace tritonrl::device {
namespace {

LaunchCounts CountsOf(const ttir::LaunchCounts& counts) {
  return {.load_bytes = counts.load_bytes,
          .store_bytes = counts.store_bytes,
          .atomic_bytes = counts.atomic_bytes,
          .sector_bytes = counts.sector_bytes,
          .unique_bytes = counts.unique_bytes,
          .flops = counts.flops,
          .dot_flops = counts.dot_flops,
          .tensor_flops = counts.tensor_flops};
}

const char* NameOf(ttir::Finding::Kind kind) {
  switch (kind) {
    case ttir::Finding::Kind::kUnwrittenRead:
      return "unwritten read";
    case ttir::Finding::Kind::kDivisionByZero:
      return "division by zero";
    case ttir::Finding::Kind::kWideShift:
      return "wide shift";
    case ttir::Finding::Kind::kDivisibility:
      return "divisibility";
    case ttir::Finding::Kind::kRace:
      return "race";
  }
  return "finding";
}

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
    ttir::LaunchCounts counts;
    if (settings.counts != nullptr) options.counts = &counts;
    ttir::LaunchFindings findings;
    if (settings.findings != nullptr) options.check = &findings;
    options.print = settings.print;
    options.threads = settings.threads;
    options.expired = settings.expired;
    options.shadow_tag = settings.shadow_tag;
    for (const ReachableStorage& storage : settings.reachable) {
      options.reachable.push_back({storage.name, storage.data, storage.bytes, storage.shadow});
    }
    const absl::Status status = kernel_->Launch(grid, values, options);
    if (settings.counts != nullptr) *settings.counts = CountsOf(counts);
    for (ttir::Finding& finding : findings.list) {
      settings.findings->push_back({NameOf(finding.kind), std::move(finding.kernel),
                                    std::move(finding.place), finding.program, finding.element,
                                    std::move(finding.text)});
    }
    return status;
  }

 private:
  std::unique_ptr<ttir::Kernel> kernel_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const LaunchableKernel>> TtirCompiler::CompileTtir(
    absl::string_view text) {
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
