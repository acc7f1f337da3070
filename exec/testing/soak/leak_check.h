// Leak check: what a worker pool left behind on the machine.
#ifndef TRITONRL_EXEC_TESTING_SOAK_LEAK_CHECK_H_
#define TRITONRL_EXEC_TESTING_SOAK_LEAK_CHECK_H_

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace tritonrl {

class LeakCheck {
 public:
  // Before a pool starts: what is there already is nobody's fault.
  LeakCheck();

  // While the pool runs: its folders of sources, which its workers show in their command lines.
  void NotePool();

  // After it has ended: processes below this one, folders of sources, shared memory of the
  // candidates' user, control groups named after this process. Empty: nothing stayed.
  std::vector<std::string> Find() const;

 private:
  std::set<std::string> shared_memory_before_;
  std::set<pid_t> children_before_;
  std::set<std::string> staged_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_SOAK_LEAK_CHECK_H_
