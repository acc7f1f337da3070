// A candidate's kernels by number, and the kernels of all candidates by their text.
#ifndef TRITONRL_EXEC_DEVICE_KERNEL_TABLE_H_
#define TRITONRL_EXEC_DEVICE_KERNEL_TABLE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "exec/device/kernel_compiler.h"
#include "exec/device/limits.h"

namespace tritonrl::device {

// Compiles each text once, and keeps what was used last. Thread-safe; lives across candidates.
class KernelCache : public KernelCompiler {
 public:
  KernelCache(KernelCompiler* compiler, size_t max_kernels)
      : compiler_(compiler), max_kernels_(max_kernels) {}

  absl::StatusOr<std::shared_ptr<const LaunchableKernel>> CompileTtir(
      absl::string_view text, const KernelOptions& options) override;
  bool uses_options() const override { return compiler_->uses_options(); }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const LaunchableKernel> kernel;
  };

  KernelCompiler* compiler_;
  size_t max_kernels_;
  absl::Mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  absl::flat_hash_map<std::string, std::list<Entry>::iterator> by_key_;
};

// InvalidArgument in the words of Triton's OutOfResources, which makes an autotuner drop the
// configuration.
absl::Status OutOfResource(absl::string_view what, int64_t required, int64_t limit);

struct KernelEntry {
  std::string name;
  std::string ttir_sha256;
  KernelOptions options;
  int64_t shared_bytes = 0;  // 0: within the device's limit, or the compiler finds out
  std::shared_ptr<const LaunchableKernel> kernel;
};

class KernelTable {
 public:
  KernelTable(KernelCompiler* compiler, const SessionLimits& limits)
      : compiler_(compiler), limits_(limits) {}

  // The number of the kernel; the same text and options have the same number. `entry` comes
  // without hash and kernel. Errors: of the compiler; ResourceExhausted; OutOfResource.
  absl::StatusOr<int64_t> Add(KernelEntry entry, absl::string_view ttir);
  const KernelEntry* Find(int64_t number) const;  // null: there is none
  const std::vector<KernelEntry>& entries() const { return entries_; }

 private:
  KernelCompiler* compiler_;
  SessionLimits limits_;
  std::vector<KernelEntry> entries_;
  absl::flat_hash_map<std::string, int64_t> by_key_;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_KERNEL_TABLE_H_
