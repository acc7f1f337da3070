// Options of a worker pool on the fake runner. The pool starts in some tenths of a second, because
// its workers do not import torch.
#ifndef TRITONRL_EXEC_TESTING_POOL_OPTIONS_H_
#define TRITONRL_EXEC_TESTING_POOL_OPTIONS_H_

#include "base/file.h"
#include "base/runfiles.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

inline WorkerPoolOptions FakePoolOptions(int workers) {
  WorkerPoolOptions options;
  options.workers = workers;
  options.runner = "fake_runner";
  const auto file = Runfile("exec/testing/fake_runner.py");
  // If the file is missing, the pool's start fails with a message about the missing module.
  if (file.ok()) options.extra_python_dirs = {DirName(*file)};
  options.limits.set_wall_seconds(10);
  options.limits.set_memory_bytes(200 << 20);
  options.limits.set_processes(16);
  options.limits.set_output_bytes(32 << 20);
  options.limits.set_tmp_bytes(8 << 20);
  options.limits.set_shm_bytes(4 << 20);
  options.worker_bytes = 256 << 20;
  return options;
}

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_POOL_OPTIONS_H_
