#include "exec/backend/interpreter_backend.h"

#include <utility>

#include "base/status.h"

namespace tritonrl {
namespace {
constexpr int64_t kCacheBytes = 256 << 20;  // tasks of the mini suite take some 100 KB each
}

absl::StatusOr<std::unique_ptr<InterpreterBackend>> InterpreterBackend::Start(
    WorkerPoolOptions options) {
  options.device = "interpreter";
  ASSIGN_OR_RETURN(BackendPools pools,
                   StartPools(std::move(options), kCacheBytes, /*windows=*/false));
  return std::unique_ptr<InterpreterBackend>(
      new InterpreterBackend("interpreter", std::move(pools)));
}

}  // namespace tritonrl
