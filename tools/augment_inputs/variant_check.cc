#include "tools/augment_inputs/variant_check.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/compare/tensor_layout.h"
#include "exec/device_backend.h"
#include "exec/reference/job_json.h"
#include "exec/reference/reference_runner.h"
#include "exec/sandbox/sandbox.h"

namespace tritonrl {

namespace {

// For the wait for a free worker, beyond the run itself.
constexpr absl::Duration kWait = absl::Minutes(10);

std::string Describe(const Leaf& leaf) {
  if (leaf.kind == Leaf::Kind::kTensor) {
    return absl::StrCat(leaf.dtype, "[", absl::StrJoin(leaf.shape, ", "), "]");
  }
  return leaf.kind == Leaf::Kind::kNumber ? "number" : leaf.type_name;
}

// "float32 of 2 dimensions" for "float32[16, 256]": what all variants have in common.
std::string TypeOf(const std::string& input) {
  const size_t bracket = input.find('[');
  if (bracket == std::string::npos) return input;
  const bool scalar = input[bracket + 1] == ']';
  const int64_t dimensions = scalar ? 0 : 1 + std::count(input.begin(), input.end(), ',');
  return absl::StrCat(input.substr(0, bracket), " of ", dimensions, " dimensions");
}

}  // namespace

absl::StatusOr<std::unique_ptr<InputChecker>> InputChecker::Start(
    const InputCheckOptions& options) {
  WorkerPoolOptions pool;
  pool.workers = options.workers;
  pool.device = "interpreter";
  pool.runner = "oracle_worker";
  ASSIGN_OR_RETURN(pool.sandbox, ParseSandboxKind(options.sandbox));
  pool.limits.set_wall_seconds(options.wall_seconds);
  pool.limits.set_memory_bytes(options.memory_bytes);
  std::unique_ptr<InputChecker> checker(new InputChecker());
  ASSIGN_OR_RETURN(checker->pool_, WorkerPool::Start(pool));
  return checker;
}

absl::StatusOr<InputCheck> InputChecker::Run(const std::string& task, const std::string& source) {
  ExecRequest request;
  request.set_task_id(task);
  request.set_reference_source(source);
  request.set_trials(1);
  request.set_reference_only(true);
  const ExecLimits& limits = pool_->limits();
  const JobContext context{request, "interpreter", DeriveSeeds(0, 1), limits.wall_seconds()};
  const absl::Time deadline = absl::Now() + kWait + absl::Seconds(limits.wall_seconds());
  const auto result = RunReference(context, pool_.get(), limits, deadline);
  InputCheck check;
  if (result->ok()) {
    for (const Leaf& leaf : result->inputs.at(0)) check.inputs.push_back(Describe(leaf));
    return check;
  }
  const Outcome& outcome = result->run.outcome();
  if (StatusOf(outcome.reason()) == Outcome::STATUS_INFRA_ERROR) {
    return absl::UnavailableError(MessageOf(outcome));
  }
  check.problem = absl::StrCat(ReasonName(outcome.reason()), ": ", MessageOf(outcome));
  return check;
}

std::string CompareInputs(const std::vector<std::string>& original,
                          const std::vector<std::string>& variant) {
  if (original.size() != variant.size()) {
    return absl::StrCat("other inputs: ", variant.size(), " instead of ", original.size());
  }
  for (size_t i = 0; i < original.size(); ++i) {
    if (TypeOf(original[i]) != TypeOf(variant[i])) {
      return absl::StrCat("other inputs: input ", i, " is ", TypeOf(variant[i]), " instead of ",
                          TypeOf(original[i]));
    }
  }
  return original == variant ? "same shapes" : "";
}

}  // namespace tritonrl
