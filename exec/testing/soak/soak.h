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

// What came of a soak, and how it goes, as text and as JSON.
//
// Soak test: many candidates, some hostile, through one backend; then a leak check.

namespace tritonrl {

// Memory that processes do not share, in bytes, while no job runs.
struct SoakMemory {
  int verdicts = 0;  // at that time
  int64_t supervisor = 0;
  int64_t workers = 0;  // all processes below it
};

// The candidates of one kind that have their verdict.
struct SoakKind {
  int count = 0;
  double seconds = 0;  // of all, from the request to the verdict, waiting included
  double longest = 0;
};

// How it goes; told every few seconds, also while no verdict comes.
struct SoakState {
  int planned = 0, done = 0;
  int wrong = 0;
  std::string last_wrong;  // of these, in words
  double seconds = 0;
  std::map<std::string, int> running;     // by kind; at workers or waiting for one
  std::map<std::string, SoakKind> kinds;  // those that are done
};

struct SoakReport {
  int planned = 0, done = 0;
  std::map<std::string, SoakKind> kinds;
  std::map<std::string, int> outcomes;    // by name
  std::map<std::string, int> unfinished;  // by kind: ended by the end of the time, not judged
  std::vector<std::string> wrong;         // each wrong or missing verdict
  std::vector<std::string> left;          // what stayed after the end, see leftovers.h
  std::vector<SoakMemory> memory;         // at the start, in the middle, at the end
  WorkerPoolCounts counts;
  std::string sandbox;
  double start_seconds = 0;  // until the first worker was ready
  double seconds = 0;        // from then on

  // At the end neither the supervisor nor its workers hold a tenth and 16 MiB more than at first.
  bool MemoryIsFlat() const;
  bool ok() const { return done > 0 && wrong.empty() && left.empty() && MemoryIsFlat(); }
};

// One line: "34/60 after 21 s; running: hang 3, honest 5; done: crash 2, honest 20".
std::string SoakStateText(const SoakState& state);
// All of it for a person, several lines.
std::string SoakReportText(const SoakReport& report);
// One line of JSON with the same figures.
std::string SoakReportJson(const SoakReport& report);

struct SoakOptions {
  int count = 2000;
  double evil_share = 1.0 / 3;
  uint64_t seed = 1;
  int workers = 2;
  bool torch_runner = true;  // false: the fake runner, for a quick test of the pool itself
  std::string backend = "interpreter";  // or "cuda"
  std::string sandbox = "bubblewrap";   // or "none"
  // Honest candidates are timed as well. On a GPU whoever is timed waits until all others have left
  // it, those that hang too, so that little else would be soaked.
  bool timing = true;
  // Added to each candidate's wall limit: what a job takes until the candidate's first line runs.
  double extra_seconds = 2;
  // No candidate starts after this time. Those that run then have ten more seconds, and the soak
  // reports what it has. 0: no limit.
  double seconds = 0;
  absl::Duration tell_every = absl::Seconds(3);
  std::function<void(const SoakState&)> tell = [](const SoakState&) {};
};

// Runs the soak: first an honest candidate at each worker, for warmth and not counted, then the
// plan. An error when no worker starts or those first ones have no verdict.
absl::StatusOr<SoakReport> RunSoak(const SoakOptions& options);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_SOAK_SOAK_H_
