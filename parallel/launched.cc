// What the environment says of the launcher that started this process.

#include <cstdlib>
#include <vector>

#include "absl/strings/numbers.h"
#include "parallel/data_parallel.h"

namespace tritonrl {
namespace {

// The first of these variables of the environment that is a number.
int NumberIn(const std::vector<const char*>& names, int otherwise) {
  for (const char* name : names) {
    const char* text = std::getenv(name);
    int number = 0;
    if (text != nullptr && absl::SimpleAtoi(text, &number)) return number;
  }
  return otherwise;
}

}  // namespace

bool DataParallel::LaunchedByMpi() {
  // OpenMPI's launcher; PMIx and PMI through srun. A plain Slurm batch step sets none of them.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

int DataParallel::LaunchedRank() {
  return NumberIn({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}, 0);
}

int DataParallel::LaunchedSize() {
  // Slurm names its number of tasks in steps without ranks, too.
  return LaunchedByMpi() ? NumberIn({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}, 1) : 1;
}

}  // namespace tritonrl
