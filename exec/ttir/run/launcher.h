// One launch of a kernel: its arguments, and a Program for each thread.
#ifndef TRITONRL_EXEC_TTIR_RUN_LAUNCHER_H_
#define TRITONRL_EXEC_TTIR_RUN_LAUNCHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "exec/ttir/run/checker.h"
#include "exec/ttir/run/executor.h"
#include "exec/ttir/run/launch_state.h"
#include "exec/ttir/run/observer.h"
#include "exec/ttir/run/step.h"

namespace tritonrl::ttir {

class Launcher {
 public:
  // All must outlive it. Counts and findings are empty from here on.
  Launcher(const CompiledKernel& kernel, const std::array<int32_t, 3>& grid,
           const LaunchOptions& options);

  // Both once, Bind first. Errors as those of Kernel::Launch.
  absl::Status Bind(absl::Span<const KernelArgument> arguments);
  absl::Status Run();

 private:
  struct ArenaDeleter {
    void operator()(std::byte* arena) const { ::operator delete (arena, std::align_val_t{64}); }
  };
  using Arena = std::unique_ptr<std::byte, ArenaDeleter>;

  void CheckDivisibility(size_t index, const KernelArgument& argument);
  absl::Status StartCounting();
  absl::Status RunAll();
  // Programs [first, total) on all threads.
  absl::Status RunTogether(int64_t first, int64_t total);
  bool RunOne(Program& program, int64_t number);
  void Resize(size_t threads);
  // Gives a thread its buffers, with the arguments and what depends on them alone.
  absl::Status Start(size_t thread);

  const CompiledKernel& kernel_;
  const LaunchOptions& options_;
  int threads_;
  LaunchState state_;
  std::vector<uint64_t> bits_;  // of the arguments
  std::vector<Arena> arenas_;
  std::vector<Program> programs_;
  bool has_shadows_ = false;
  std::optional<Checker> checker_;
  TouchedSectors touched_;
  std::vector<std::unique_ptr<Observer>> observers_;  // of each thread, or none
};

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_LAUNCHER_H_
