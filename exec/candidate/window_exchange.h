// The exchange through shared GPU buffers that a reference process opens for one candidate.
// Nothing of it passes through CPU memory: the supervisor checks what is said to lie where,
// and the reference process, which no candidate shares, looks at the elements.
#ifndef TRITONRL_EXEC_CANDIDATE_WINDOW_EXCHANGE_H_
#define TRITONRL_EXEC_CANDIDATE_WINDOW_EXCHANGE_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/candidate/tensor_exchange.h"

namespace tritonrl {

// As OpenExchange, for a reference runner with a reference process.
absl::StatusOr<std::unique_ptr<TensorExchange>> OpenWindows(const ExecRequest& request,
                                                            const ReferenceResult& reference_result,
                                                            absl::Duration call_limit,
                                                            absl::Time deadline,
                                                            WaitedTime* queued = nullptr);

// What a reference process says of a comparison (format in docs/protocol.md); InvalidArgument
// if that makes no sense.
absl::StatusOr<Difference> ParseDifference(const nlohmann::json& json);

// The members of an order that say how near an element has to be.
nlohmann::json ToleranceJson(const Tolerance& tolerance, int index, const Leaf& want);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CANDIDATE_WINDOW_EXCHANGE_H_
