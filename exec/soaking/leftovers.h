// What a pool of workers could leave behind on a machine, looked for from outside.
#ifndef TRITONRL_EXEC_SOAKING_LEFTOVERS_H_
#define TRITONRL_EXEC_SOAKING_LEFTOVERS_H_

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace tritonrl {

class Leftovers {
 public:
  // Before a pool starts: what is there already is nobody's fault.
  Leftovers();

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

#endif  // TRITONRL_EXEC_SOAKING_LEFTOVERS_H_
