// A kernel of the Triton IR corpus, apart from LibTorch: both have a class Type.
#ifndef TRITONRL_BENCH_EXEC_CORPUS_KERNEL_H_
#define TRITONRL_BENCH_EXEC_CORPUS_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tritonrl {

namespace ttir {
class Kernel;
}

class CorpusKernel {
 public:
  // Compiles the file "NAME.ttir" of exec/ttir/testing/corpus. Errors of the parser and compiler.
  static absl::StatusOr<CorpusKernel> Compile(const std::string& name);
  CorpusKernel(CorpusKernel&&);
  ~CorpusKernel();

  // Launches `programs` programs on `threads` threads; the arguments are the memory of each tensor,
  // then the integers. Errors of ttir::Kernel::Launch.
  absl::Status Launch(int programs, absl::Span<const absl::Span<uint8_t>> tensors,
                      absl::Span<const int64_t> integers, int threads) const;

 private:
  explicit CorpusKernel(std::unique_ptr<ttir::Kernel> kernel);

  std::unique_ptr<ttir::Kernel> kernel_;
};

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_EXEC_CORPUS_KERNEL_H_
