// Checks candidates on an NVIDIA GPU: compiled, executed and timed there. The same workers and
// protocol as without; the sandbox shows the GPU's device nodes and the driver's libraries.
#ifndef TRITONRL_EXEC_BACKEND_CUDA_BACKEND_H_
#define TRITONRL_EXEC_BACKEND_CUDA_BACKEND_H_

#include <memory>

#include "exec/backend/python_backend.h"

namespace tritonrl {

class CudaBackend : public PythonBackend {
 public:
  // FailedPrecondition when there is no GPU. With more than one worker, jobs share the GPU and
  // their times disturb each other.
  static absl::StatusOr<std::unique_ptr<CudaBackend>> Start(WorkerPoolOptions options);

  bool modelled() const override { return false; }

 private:
  using PythonBackend::PythonBackend;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_BACKEND_CUDA_BACKEND_H_
