#include "exec/ttir/run/executor.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/ttir/run/builder.h"
#include "exec/ttir/run/launcher.h"

namespace tritonrl::ttir {

namespace {

constexpr int64_t kMaxPrograms = int64_t{1} << 40;

}  // namespace

KernelArgument KernelArgument::View(void* data, void* storage, int64_t storage_bytes) {
  KernelArgument argument;
  argument.kind = Kind::kTensor;
  argument.data = data;
  argument.storage = storage;
  argument.storage_bytes = storage_bytes;
  return argument;
}

KernelArgument KernelArgument::Integer(int64_t value) {
  KernelArgument argument;
  argument.integer = value;
  return argument;
}

KernelArgument KernelArgument::Float(double value) {
  KernelArgument argument;
  argument.kind = Kind::kFloat;
  argument.number = value;
  return argument;
}

Kernel::Kernel(std::unique_ptr<const CompiledKernel> compiled) : compiled_(std::move(compiled)) {}
Kernel::~Kernel() = default;

const std::string& Kernel::name() const { return compiled_->name; }
int64_t Kernel::buffer_bytes() const { return compiled_->arena_bytes; }

absl::Status Kernel::Launch(const std::array<int32_t, 3>& grid,
                            absl::Span<const KernelArgument> arguments,
                            const LaunchOptions& options) const {
  int64_t programs = 1;
  for (const int32_t size : grid) {
    if (size <= 0 || programs > kMaxPrograms / size) {
      return absl::InvalidArgumentError(absl::StrCat("kernel ", compiled_->name, ": the grid (",
                                                     grid[0], ", ", grid[1], ", ", grid[2],
                                                     ") is empty or too large"));
    }
    programs *= size;
  }
  if (options.check != nullptr && programs > kMaxCheckedPrograms) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", compiled_->name, ": the grid is too large to check"));
  }
  Launcher launcher(*compiled_, grid, options);
  RETURN_IF_ERROR(launcher.Bind(arguments));
  return launcher.Run();
}

absl::StatusOr<std::unique_ptr<Kernel>> Compile(const Module& module, absl::string_view name) {
  const Function* found = nullptr;
  for (const Function& function : module.functions) {
    if (!function.is_public || (!name.empty() && function.name != name)) continue;
    if (found != nullptr) {
      return absl::InvalidArgumentError("the module has several kernels: name one of them");
    }
    found = &function;
  }
  if (found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the module has no kernel ", absl::CHexEscape(name)));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<CompiledKernel> compiled, Builder(module).Build(*found));
  return std::make_unique<Kernel>(std::move(compiled));
}

}  // namespace tritonrl::ttir
