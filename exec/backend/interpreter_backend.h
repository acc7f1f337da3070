// Checks candidates without a GPU: compiled for sm_89 by the real Triton compiler, executed on the
// CPU, timed by a roofline model.
#ifndef TRITONRL_EXEC_BACKEND_INTERPRETER_BACKEND_H_
#define TRITONRL_EXEC_BACKEND_INTERPRETER_BACKEND_H_

#include <memory>

#include "exec/backend/python_backend.h"

namespace tritonrl {

class InterpreterBackend : public PythonBackend {
 public:
  // Starts the workers; options.device is ignored.
  static absl::StatusOr<std::unique_ptr<InterpreterBackend>> Start(WorkerPoolOptions options);

  bool modelled() const override { return true; }

 private:
  using PythonBackend::PythonBackend;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_BACKEND_INTERPRETER_BACKEND_H_
