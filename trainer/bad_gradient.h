// What is kept of a gradient that was not finite, for study.
#ifndef TRITONRL_TRAINER_BAD_GRADIENT_H_
#define TRITONRL_TRAINER_BAD_GRADIENT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "model/weights.h"

namespace tritonrl {

// Writes `folder`/update_000012_rank_0.json: the parameters whose gradient on this rank, before it
// was summed over ranks, has elements that are NaN or infinite, with their numbers and the largest
// finite element (none on a rank whose own gradient is finite), and `sequences`, what it was made
// from (numbers that are not finite are null). No more once the folder has 16 files of this rank,
// which are enough to study. Returns where it is kept, or why it is not, in words; never fails.
std::string KeepBadGradient(const std::string& folder, int64_t update, int rank,
                            const Gradients& gradients, const nlohmann::json& sequences);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_BAD_GRADIENT_H_
