// Asks a model for variants of tasks, in rounds, and reads its answers.
#ifndef TRITONRL_TOOLS_AUGMENT_INPUTS_VARIANT_REQUESTS_H_
#define TRITONRL_TOOLS_AUGMENT_INPUTS_VARIANT_REQUESTS_H_

#include <memory>
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

// The prompt of a later round: what variants the task has and which failed, and how many it lacks.
std::string AgainPrompt(const AugmentOptions& options, const Family& family);

// The journal of the answers decides what is asked. A task's request of round 1 has to be the one
// that was answered. Requests of later rounds name what was found so far, which may differ after a
// change of limits; an answer that is there is used all the same.
class VariantRequests {
 public:
  VariantRequests(const AugmentOptions& options, EndpointClient* client);

  // Asks for the answers of `round` that the journal lacks, for `families`, of which round 1 gets
  // all. Adds to `failed`, and sets `interrupted` and `ended`; after an error that ended the asking
  // it only reads. Then takes the answers over into the families. Errors: those of AskAll.
  absl::Status Ask(int round, const std::vector<Family*>& families, AugmentSummary* summary);

 private:
  absl::StatusOr<AskItem> ItemOf(int round, const Family& family) const;
  absl::Status AskFor(int round, const std::vector<Family*>& families, AugmentSummary* summary);
  absl::Status ReadAnswers();

  const AugmentOptions& options_;
  EndpointClient* const client_;
  const std::unique_ptr<EndpointClient> counted_;  // the client of later calls of AskAll
  const std::string journal_;
  absl::flat_hash_map<std::string, std::vector<std::string>> answers_;  // key -> functions
};

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_AUGMENT_INPUTS_VARIANT_REQUESTS_H_
