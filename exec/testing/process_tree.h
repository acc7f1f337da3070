// Processes of this machine as /proc shows them, for tests that look from outside.
#ifndef TRITONRL_EXEC_TESTING_PROCESS_TREE_H_
#define TRITONRL_EXEC_TESTING_PROCESS_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>

namespace tritonrl {

// All that descend from `root`, also through parents in other pid namespaces.
std::set<pid_t> Descendants(pid_t root);

// Processes with `word` in their command line or name.
std::set<pid_t> ProcessesNaming(const std::string& word);

// Resident memory of a process in bytes that it does not share; 0 when it has gone.
int64_t PrivateBytes(pid_t pid);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_PROCESS_TREE_H_
