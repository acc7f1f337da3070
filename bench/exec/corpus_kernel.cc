#include "bench/exec/corpus_kernel.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/run/executor.h"
#include "exec/ttir/testing/corpus.h"

namespace tritonrl {

CorpusKernel::CorpusKernel(std::unique_ptr<ttir::Kernel> kernel) : kernel_(std::move(kernel)) {}
CorpusKernel::CorpusKernel(CorpusKernel&&) = default;
CorpusKernel::~CorpusKernel() = default;

absl::StatusOr<CorpusKernel> CorpusKernel::Compile(const std::string& name) {
  ASSIGN_OR_RETURN(const ttir::Module module,
                   ttir::ParseTtir(ttir::CorpusTextOf(absl::StrCat(name, ".ttir"))));
  ASSIGN_OR_RETURN(std::unique_ptr<ttir::Kernel> kernel, ttir::Compile(module));
  return CorpusKernel(std::move(kernel));
}

absl::Status CorpusKernel::Launch(int programs, absl::Span<const absl::Span<uint8_t>> tensors,
                                  absl::Span<const int64_t> integers, int threads) const {
  std::vector<ttir::KernelArgument> arguments;
  for (const absl::Span<uint8_t> tensor : tensors) {
    arguments.push_back(
        ttir::KernelArgument::Tensor(tensor.data(), static_cast<int64_t>(tensor.size())));
  }
  for (const int64_t integer : integers) {
    arguments.push_back(ttir::KernelArgument::Integer(integer));
  }
  ttir::LaunchOptions options;
  options.threads = threads;
  return kernel_->Launch({programs, 1, 1}, arguments, options);
}

}  // namespace tritonrl
