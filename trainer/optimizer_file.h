// The optimizer's state in files, one for each rank, which any number of ranks can read again.
//
// A file holds what its rank keeps (shard_plan.h) of each tensor, fp32, one behind the other
// without a header: [master weights, if the model's are not fp32] first moment, second moment.
#ifndef TRITONRL_TRAINER_OPTIMIZER_FILE_H_
#define TRITONRL_TRAINER_OPTIMIZER_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "parallel/shard_plan.h"
#include "trainer/adamw.h"
#include "trainer/host_copy.h"

namespace tritonrl {

// Name of a rank's file: optimizer.bin for one rank, optimizer_003_of_008.bin for several.
std::string OptimizerFileName(int rank, int ranks);

// What a rank keeps, in the order of the file.
std::vector<at::Tensor> StoredTensors(const AdamW& optimizer);

// Writes a rank's file from copies of these, and syncs it.
absl::Status WriteOptimizer(const std::string& path, const std::vector<HostCopy>& tensors);

// Reads what this rank keeps from the files in `dir`, which were written by ranks with the plan
// `saved`. Error: a file that is missing or of another size (DataLoss, named), a plan for another
// model. Onto a GPU through pinned memory for four pieces of a bucket, which torch keeps for the
// next copies. With fp32 weights the master is taken from them: they must have been loaded before.
absl::Status ReadOptimizer(const std::string& dir, const ShardPlan& saved, AdamW* optimizer);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_OPTIMIZER_FILE_H_
