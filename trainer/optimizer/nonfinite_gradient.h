// Dumps a gradient with NaN or infinite elements into a file for later analysis.
#ifndef TRITONRL_TRAINER_OPTIMIZER_NONFINITE_GRADIENT_H_
#define TRITONRL_TRAINER_OPTIMIZER_NONFINITE_GRADIENT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "model/weights/weights.h"
#include "trainer/optimizer/adamw.h"

namespace tritonrl {

// Writes `folder`/update_000012_rank_0.json. The file lists each parameter whose gradient has NaN
// or infinite elements, with their counts and the largest finite element; the list is empty on a
// rank without such elements. It also holds `sequences`, the data from which this rank computed the
// gradient (non-finite numbers as null). The field "gradient" names the gradient that was examined:
// this rank's own before the all-reduce or, with ZeRO-2, which never keeps the whole of it, this
// rank's shard of the sum, with the shard's number of elements. Call it after `optimizer` has
// skipped the step. Writes at most 16 files of a rank into the folder. Never fails; returns a text
// with the path of the file or the reason why there is none.
std::string DumpNonFiniteGradient(const std::string& folder, int64_t update, const AdamW& optimizer,
                                  const Gradients& gradients, const nlohmann::json& sequences);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_OPTIMIZER_NONFINITE_GRADIENT_H_
