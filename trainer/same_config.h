// Ranks of one job that were given different settings would train on different losses without a
// word.
#ifndef TRITONRL_TRAINER_SAME_CONFIG_H_
#define TRITONRL_TRAINER_SAME_CONFIG_H_

#include <google/protobuf/message.h>

#include "absl/status/status.h"
#include "parallel/data_parallel.h"

namespace tritonrl {

// Called by all ranks together, each with its own configuration. InvalidArgument on every rank,
// naming the first rank that has another one than rank 0, and each field that differs.
absl::Status SameConfigOnAllRanks(const google::protobuf::Message& config, DataParallel* ranks);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_SAME_CONFIG_H_
