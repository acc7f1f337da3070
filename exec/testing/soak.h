// Many candidates, some of them evil, through one backend; and what is left afterwards.
#ifndef TRITONRL_EXEC_TESTING_SOAK_H_
#define TRITONRL_EXEC_TESTING_SOAK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "exec/worker_pool.h"

namespace tritonrl {

struct SoakOptions {
  int count = 2000;
  double evil_share = 1.0 / 3;
  uint64_t seed = 1;
  int workers = 2;
  bool torch_runner = true;  // false: the fake runner, for a quick test of the pool itself
  std::string device = "interpreter";  // or "cuda"
  std::string sandbox = "bubblewrap";  // or "none"
  // Called now and then with the number of verdicts so far.
  std::function<void(int)> progress = [](int) {};
};

// Memory that processes do not share, in bytes, while no job runs.
struct SoakMemory {
  int verdicts = 0;  // so many had come
  int64_t supervisor = 0;
  int64_t workers = 0;  // all processes below it
};

struct SoakReport {
  std::map<std::string, int> kinds;     // how many of each
  std::map<std::string, int> outcomes;  // by name
  std::vector<std::string> wrong;       // each wrong or missing verdict
  std::vector<std::string> left;        // processes, shared memory, groups, folders after the end
  std::vector<SoakMemory> memory;       // at the start, in the middle, at the end
  WorkerPoolCounts counts;
  std::string sandbox;
  double seconds = 0;

  // At the end neither the supervisor nor its workers hold a tenth and 16 MiB more than at first.
  bool MemoryIsFlat() const;
};

// Runs the soak. An error only when no worker starts.
absl::StatusOr<SoakReport> RunSoak(const SoakOptions& options);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_SOAK_H_
