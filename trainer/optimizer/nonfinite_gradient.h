// Keeps a record of a gradient that was not finite, for study.
#ifndef TRITONRL_TRAINER_OPTIMIZER_NONFINITE_GRADIENT_H_
#define TRITONRL_TRAINER_OPTIMIZER_NONFINITE_GRADIENT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "model/weights/weights.h"
#include "trainer/optimizer/adamw.h"

namespace tritonrl {

// Writes `folder`/update_000012_rank_0.json: the parameters whose gradient has elements that are
// NaN or infinite, with their numbers and the largest finite element (none on a rank that has no
// such elements), and `sequences`, the data of this rank's gradient (numbers that are not finite
// are null). "gradient" names the gradient: this rank's own before the all-reduce, or with ZeRO-2,
// which never holds that as a whole, this rank's shard of the sum with its number of elements. Call
// it when `optimizer` has skipped the step. No more once the folder has 16 files of this rank,
// which are enough to study. Returns where it is kept, or why it is not, in words; never fails.
std::string DumpNonFiniteGradient(const std::string& folder, int64_t update, const AdamW& optimizer,
                                  const Gradients& gradients, const nlohmann::json& sequences);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_OPTIMIZER_NONFINITE_GRADIENT_H_
