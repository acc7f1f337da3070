#include "exec/device/cuda/cuda_compiler.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/cuda/cuda_kernel.h"
#include "exec/device/cuda/kernel_text.h"
#include "exec/device/cuda/tag_stores.h"
#include "exec/device/storage_table.h"
#include "exec/ttir/opcodes.h"
#include "exec/ttir/parser.h"

namespace tritonrl::device {
namespace {

// Functions of libdevice, which is linked in; any other symbol could be one of the driver's.
constexpr char kLibdevice[] = "__nv_";

absl::Status CheckRegion(const ttir::Module& module, const ttir::Region& region) {
  for (const ttir::Block& block : region.blocks) {
    for (const ttir::Operation& operation : block.operations) {
      if (operation.opcode == ttir::Opcode::kInlineAsm) {
        return absl::UnimplementedError(
            absl::StrCat("not executable: inline assembly, ", module.PlaceOf(operation)));
      }
      if (operation.opcode == ttir::Opcode::kExternElementwise &&
          !absl::StartsWith(operation.attributes.symbol, kLibdevice)) {
        return absl::UnimplementedError(absl::StrCat("not executable: function ",
                                                     operation.attributes.symbol, ", ",
                                                     module.PlaceOf(operation)));
      }
      for (const ttir::Region& inner : operation.regions) {
        RETURN_IF_ERROR(CheckRegion(module, inner));
      }
    }
  }
  return absl::OkStatus();
}

// The one kernel of a module that may run.
absl::StatusOr<const ttir::Function*> KernelOf(const ttir::Module& module) {
  const ttir::Function* kernel = nullptr;
  for (const ttir::Function& function : module.functions) {
    RETURN_IF_ERROR(CheckRegion(module, function.body));
    if (!function.is_public) continue;
    if (kernel != nullptr) return absl::InvalidArgumentError("Triton IR with two kernels");
    kernel = &function;
  }
  if (kernel == nullptr) return absl::InvalidArgumentError("Triton IR without a kernel");
  return kernel;
}

std::vector<ttir::Type> ParametersOf(const ttir::Function& function) {
  std::vector<ttir::Type> types;
  for (const ttir::Argument& argument : function.arguments) {
    types.push_back(function.TypeOf(argument.value));
  }
  return types;
}

struct Variant {
  std::string text;
  std::vector<ttir::Type> parameters;
};

absl::StatusOr<Variant> TaggedVariant(std::string text, ttir::Module module, int64_t distance,
                                      CompileWorkers& workers) {
  if (StoresThroughDescriptors(module)) {
    ASSIGN_OR_RETURN(text, workers.Flatten(text));
    ASSIGN_OR_RETURN(module, ttir::ParseTtir(text));
  }
  ASSIGN_OR_RETURN(const ttir::Function* kernel, KernelOf(module));
  Variant variant;
  variant.parameters = ParametersOf(*kernel);
  ASSIGN_OR_RETURN(variant.text,
                   TagStores(text, module, static_cast<uint8_t>(Tag::kKernel), distance));
  return variant;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const LaunchableKernel>> CudaCompiler::CompileTtir(
    absl::string_view text, const KernelOptions& options) {
  ASSIGN_OR_RETURN(ttir::Module module, ttir::ParseTtir(text));
  RETURN_IF_ERROR(KernelOf(module).status());  // its errors name lines
  ASSIGN_OR_RETURN(const std::string silent, WithoutPrints(text, module));
  return cache_.CompileTtir(WithoutLocations(silent), options);
}

absl::StatusOr<std::shared_ptr<const LaunchableKernel>> CudaCompiler::Variants::CompileTtir(
    absl::string_view text, const KernelOptions& options) {
  ASSIGN_OR_RETURN(ttir::Module module, ttir::ParseTtir(text));
  ASSIGN_OR_RETURN(const ttir::Function* kernel, KernelOf(module));
  Variant plain{std::string(text), ParametersOf(*kernel)};
  ASSIGN_OR_RETURN(Variant tagged,
                   TaggedVariant(plain.text, std::move(module), tag_distance_, *workers_));
  const int arch = context_->arch();
  absl::StatusOr<CompiledKernel> other = absl::InternalError("");
  std::thread beside([&] { other = workers_->Compile(tagged.text, options, arch); });
  absl::StatusOr<CompiledKernel> compiled = workers_->Compile(plain.text, options, arch);
  beside.join();
  RETURN_IF_ERROR(compiled.status());
  ASSIGN_OR_RETURN(auto loaded,
                   LoadedKernel::Load(context_, *std::move(compiled), std::move(plain.parameters)));
  RETURN_IF_ERROR(AddContext(other.status(), "with tags"));
  ASSIGN_OR_RETURN(auto with_tags,
                   LoadedKernel::Load(context_, *std::move(other), std::move(tagged.parameters)));
  return std::make_shared<CudaKernel>(context_, std::move(loaded), std::move(with_tags));
}

}  // namespace tritonrl::device
