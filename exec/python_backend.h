// What the backends share: requests become jobs of a worker pool, reports become results.
#ifndef TRITONRL_EXEC_PYTHON_BACKEND_H_
#define TRITONRL_EXEC_PYTHON_BACKEND_H_

#include <memory>
#include <string>

#include "exec/device_backend.h"
#include "exec/worker_pool.h"

namespace tritonrl {

class PythonBackend : public DeviceBackend {
 public:
  // `device` is the runner's word for it: "interpreter" or "cuda".
  PythonBackend(std::string device, std::unique_ptr<WorkerPool> pool, const ExecLimits& limits);

  // A job under which the worker died is run once more; if the second dies too, the candidate is
  // taken to have killed them.
  absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time deadline) override;

  int concurrency() const override { return pool_->workers(); }
  std::string name() const override { return device_; }
  std::string sandbox_description() const override { return pool_->sandbox_description(); }
  const WorkerPool& pool() const { return *pool_; }

 private:
  const std::string device_;
  const std::unique_ptr<WorkerPool> pool_;
  const ExecLimits limits_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_PYTHON_BACKEND_H_
