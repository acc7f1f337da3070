#include "exec/interpreter_backend.h"

#include <utility>

#include "base/status.h"

namespace tritonrl {

absl::StatusOr<std::unique_ptr<InterpreterBackend>> InterpreterBackend::Start(
    WorkerPoolOptions options) {
  options.device = "interpreter";
  ASSIGN_OR_RETURN(auto pool, WorkerPool::Start(options));
  const ExecLimits limits = pool->limits();
  return std::unique_ptr<InterpreterBackend>(
      new InterpreterBackend("interpreter", std::move(pool), limits));
}

}  // namespace tritonrl
