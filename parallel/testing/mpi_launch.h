// Lets tests start a program under mpirun on this machine.
#ifndef TRITONRL_PARALLEL_TESTING_MPI_LAUNCH_H_
#define TRITONRL_PARALLEL_TESTING_MPI_LAUNCH_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tritonrl {

// Returns the command line that runs `argv` as `ranks` processes, also on fewer cores.
inline std::vector<std::string> MpirunCommand(int ranks, const std::vector<std::string>& argv) {
  std::vector<std::string> command = {"mpirun", "--oversubscribe",  "--bind-to", "none",
                                      "-n",     absl::StrCat(ranks)};
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

// Returns the environment for mpirun, which allows root (in containers) and restricts MPI to shared
// memory and loopback.
inline std::vector<std::pair<std::string, std::string>> MpiTestEnvironment() {
  return {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
          {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
          {"OMPI_MCA_btl", "self,vader"},
          {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
          {"OMPI_MCA_plm_rsh_agent", "false"},
          {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
          // Session files go below a short path: socket names are limited to 108 bytes.
          {"TMPDIR", "/tmp"}};
}

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_TESTING_MPI_LAUNCH_H_
