// What DataParallel keeps of MPI.
#ifndef TRITONRL_PARALLEL_JOB_COMMUNICATOR_H_
#define TRITONRL_PARALLEL_JOB_COMMUNICATOR_H_

#include <mpi.h>

#include "parallel/data_parallel.h"

namespace tritonrl {

struct DataParallel::Communicator {
  MPI_Comm comm = MPI_COMM_WORLD;
  bool own_mpi = false;  // MPI was initialised here and is finalised in the destructor
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_JOB_COMMUNICATOR_H_
