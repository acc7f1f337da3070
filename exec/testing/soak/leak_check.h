// Finds processes, files and control groups that a worker pool has left behind on the host.
#ifndef TRITONRL_EXEC_TESTING_SOAK_LEAK_CHECK_H_
#define TRITONRL_EXEC_TESTING_SOAK_LEAK_CHECK_H_

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace tritonrl {

class LeakCheck {
 public:
  // Call before the pool starts: existing processes and shared memory do not count as leaks.
  LeakCheck();

  // Call while the pool runs. Records its folders of staged sources, which are in the command lines
  // of its workers.
  void NotePool();

  // Call after the pool has ended. Returns the leaks: descendants of this process, folders of
  // staged sources, shared memory of the candidates' user, control groups named after this process.
  std::vector<std::string> Find() const;

 private:
  std::set<std::string> shared_memory_before_;
  std::set<pid_t> children_before_;
  std::set<std::string> staged_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_SOAK_LEAK_CHECK_H_
