// Asks a model for variants of tasks, in rounds, and reads its responses.
#ifndef TRITONRL_TOOLS_AUGMENT_INPUTS_VARIANT_REQUESTS_H_
#define TRITONRL_TOOLS_AUGMENT_INPUTS_VARIANT_REQUESTS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/endpoint/ask_all.h"
#include "base/endpoint/client.h"
#include "tools/augment_inputs/augment.h"
#include "tools/augment_inputs/family.h"

namespace tritonrl {

// The key of a task's request in the journal: "TASK", in later rounds "TASK#2", "TASK#3", ...
std::string RequestKey(const std::string& task, int round);

// The prompt of a later round: the task's variants, those that failed, and the number it lacks.
std::string AgainPrompt(const AugmentOptions& options, const Family& family);

// Asks only for responses that the journal lacks. A task's request of round 1 has to be the one
// whose response the journal holds. Requests of later rounds name the findings so far, which may
// differ after a change of limits; a response in the journal is used all the same.
class VariantRequests {
 public:
  VariantRequests(const AugmentOptions& options, EndpointClient* client);

  // Asks for the responses of `round` that the journal lacks, for `families`; round 1 gets all
  // families. Adds to `failed`, and sets `interrupted` and `ended`; after an error that ended the
  // asking it only reads. Then adds the responses to the families. Errors: those of AskAll.
  absl::Status Ask(int round, const std::vector<Family*>& families, AugmentSummary* summary);

 private:
  absl::StatusOr<AskItem> ItemOf(int round, const Family& family) const;
  absl::Status AskFor(int round, const std::vector<Family*>& families, AugmentSummary* summary);
  absl::Status ReadProposals();

  const AugmentOptions& options_;
  EndpointClient* const client_;
  const std::string journal_;
  absl::flat_hash_map<std::string, std::vector<std::string>> proposals_;  // key -> functions
};

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_AUGMENT_INPUTS_VARIANT_REQUESTS_H_
