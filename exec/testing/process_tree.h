// Processes of this host as /proc shows them, for tests that observe workers from outside.
#ifndef TRITONRL_EXEC_TESTING_PROCESS_TREE_H_
#define TRITONRL_EXEC_TESTING_PROCESS_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>

namespace tritonrl {

// All descendants of `root`, including those in other pid namespaces.
std::set<pid_t> Descendants(pid_t root);

// Processes with `word` in their command line or name.
std::set<pid_t> ProcessesNaming(const std::string& word);

// Resident private memory of a process in bytes; 0 if the process has ended.
int64_t PrivateBytes(pid_t pid);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_PROCESS_TREE_H_
