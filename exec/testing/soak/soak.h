// Soak test: runs many candidates, some of them hostile, through one backend, then checks for
// leaks. Reports its progress and its result as text and as JSON.
#ifndef TRITONRL_EXEC_TESTING_SOAK_SOAK_H_
#define TRITONRL_EXEC_TESTING_SOAK_SOAK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

// Private memory of processes in bytes, while no job runs.
struct SoakMemory {
  int verdicts = 0;  // verdicts so far
  int64_t supervisor = 0;
  int64_t workers = 0;  // all descendants of the supervisor
};

// The candidates of one kind that have a verdict. Times are from request to verdict, queue
// included.
struct SoakKind {
  int count = 0;
  double seconds = 0;  // sum over all
  double longest = 0;
};

// Progress of a soak.
struct SoakState {
  int planned = 0, done = 0;
  int wrong = 0;
  std::string last_wrong;  // description of the last wrong verdict
  double seconds = 0;
  std::map<std::string, int> running;     // by kind; includes candidates that wait for a worker
  std::map<std::string, SoakKind> kinds;  // candidates with a verdict, by kind
};

struct SoakReport {
  int planned = 0, done = 0;
  std::map<std::string, SoakKind> kinds;
  std::map<std::string, int> outcomes;    // by name
  std::map<std::string, int> unfinished;  // by kind: cut off by the end of the soak, not counted
  std::vector<std::string> wrong;         // each wrong or missing verdict
  std::vector<std::string> left;          // leaks (LeakCheck::Find)
  std::vector<SoakMemory> memory;         // after a tenth, after half, at the end
  WorkerPoolCounts counts;
  std::string sandbox;
  double start_seconds = 0;  // until the first worker was ready
  double seconds = 0;        // of the plan

  // Whether supervisor and workers each grew by less than 10 % plus 16 MiB between the first and
  // the last measurement.
  bool MemoryIsFlat() const;
  bool ok() const { return done > 0 && wrong.empty() && left.empty() && MemoryIsFlat(); }
};

// One line: "soak: 34/60 after 21 s; running: hang 3, honest 5; done: crash 2, honest 20".
std::string SoakStateText(const SoakState& state);
// The whole report in several lines.
std::string SoakReportText(const SoakReport& report);
// The whole report as one line of JSON.
std::string SoakReportJson(const SoakReport& report);

struct SoakOptions {
  int count = 2000;
  double evil_share = 1.0 / 3;
  uint64_t seed = 1;
  int workers = 2;
  std::string backend = "native";      // or "cuda"
  std::string sandbox = "bubblewrap";  // or "none"
  // Times honest candidates too. On a GPU a timed candidate waits until all other candidates have
  // left the GPU, even hanging ones, so that the soak would do little else.
  bool timing = true;
  // Added to each candidate's wall-clock limit, for the start of a job before the candidate's first
  // line runs.
  double extra_seconds = 2;
  // No candidate starts after this time. Running candidates get ten more seconds, then the soak
  // reports. 0: no limit.
  double seconds = 0;
  // `tell` is called on one thread at this interval, even without new verdicts.
  absl::Duration tell_every = absl::Seconds(3);
  std::function<void(const SoakState&)> tell = [](const SoakState&) {};
};

// Runs the soak: first one honest candidate per worker as a warm-up, which does not count, then the
// plan. An error if no worker starts or a warm-up candidate does not pass.
absl::StatusOr<SoakReport> RunSoak(const SoakOptions& options);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_SOAK_SOAK_H_
