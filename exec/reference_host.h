// The reference host of a task: an oracle's job that goes on after it has made inputs and expected
// outputs. They stay in its own memory on the GPU; candidates get inputs and hand over outputs
// through windows of GPU memory, and the host compares and times the reference. Orders and answers:
// exec/python/README.md.
#ifndef TRITONRL_EXEC_REFERENCE_HOST_H_
#define TRITONRL_EXEC_REFERENCE_HOST_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "exec/job_dialogue.h"
#include "exec/job_json.h"
#include "exec/messages.pb.h"
#include "exec/shared_memory.h"
#include "exec/worker_pool.h"

namespace tritonrl {

class ReferenceHost {
 public:
  struct Started {
    std::unique_ptr<ReferenceHost> host;  // null when the job ended instead
    // How it ended. With a host: as if it had ended with what it made as its result.
    JobReport report;
  };
  // Starts the job, one of JobRole::kOracle, and waits until all is made, for
  // the wall-clock limit at most. The job takes a worker of the pool until the host is gone.
  static absl::StatusOr<Started> Start(const std::string& job_json, WorkerPool* pool,
                                       const ExecLimits& limits, absl::Time deadline);

  ~ReferenceHost();  // ends the job
  ReferenceHost(const ReferenceHost&) = delete;
  ReferenceHost& operator=(const ReferenceHost&) = delete;

  // Sends an order and waits for its answer, an object with the one member `answer`, whose value
  // is given. Descriptors that came along are added to `fds`; null takes none. Any number of
  // threads may ask; orders are served one by one. ResourceExhausted: the GPU's memory was not
  // enough for this order. Unavailable: the host has ended, or did not answer in time, in which
  // case it is killed; every later order fails at once.
  absl::StatusOr<nlohmann::json> Ask(const nlohmann::json& order, const char* answer,
                                     absl::Time deadline, std::vector<int>* fds = nullptr);

  // False after it has ended.
  bool alive() const;

 private:
  ReferenceHost(SharedMemory result, std::unique_ptr<JobDialogue> job)
      : result_(std::move(result)), job_(std::move(job)) {}

  const SharedMemory result_;
  mutable absl::Mutex mutex_;
  std::unique_ptr<JobDialogue> job_ ABSL_GUARDED_BY(mutex_);
  std::string lost_ ABSL_GUARDED_BY(mutex_);  // why it has ended
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_REFERENCE_HOST_H_
