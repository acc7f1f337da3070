// Attempts at the machine's memory and at what else is finite. They need a memory cgroup: without
// one, memory that belongs to no process is limited by time only.
#include "exec/sandbox/cgroup.h"
#include "exec/sandbox/testing/escape_suite.h"

namespace tritonrl {
namespace {

std::vector<Outcome::Reason> WhenFull() {
  const bool limited =
      WorkerCgroup::Create("probe", {.memory_bytes = int64_t{1} << 30}).limits_memory();
  if (limited) return {Outcome::OUT_OF_MEMORY};
  return {Outcome::OUT_OF_MEMORY, Outcome::TIMEOUT, Outcome::RUNTIME_ERROR};
}

const std::vector<Attempt>& Attempts() {
  static const auto& attempts = *new std::vector<Attempt>{
      {"resources", "shared_anonymous_memory", WhenFull(), 5, 10, true},
      {"resources", "memory_files", WhenFull(), 5, 10, true},
      {"resources",
       "memory_files_in_large_pages",
       {Outcome::OK, Outcome::CRASHED, Outcome::OUT_OF_MEMORY}},
      {"resources", "private_memory_piece_by_piece"},
      {"resources", "stacks_and_locks"},
      {"resources", "full_pipes", {Outcome::OK, Outcome::OUT_OF_MEMORY}, 10, 10, true},
      {"resources", "socket_buffers", {Outcome::OK, Outcome::OUT_OF_MEMORY}, 10, 10, true},
      {"resources", "page_cache"},
      {"resources", "timers_and_watches"},
      {"resources", "memory_of_many_processes", WhenFull(), 10, 10, true},
      {"resources", "a_flood_of_timers"},
      {"resources", "signals_that_wait"},
      {"resources", "huge_arguments", {Outcome::OK, Outcome::OUT_OF_MEMORY}, 10, 10, true},
      {"resources", "attributes_of_files", {Outcome::OK, Outcome::OUT_OF_MEMORY}, 10, 10, true},
  };
  return attempts;
}

TRITONRL_ESCAPE_TESTS(Attempts());

}  // namespace
}  // namespace tritonrl
