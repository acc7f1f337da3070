#include "exec/backend/device_check.h"

#include <string.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "exec/oracle/job_json.h"
#include "exec/oracle/oracle.h"

namespace tritonrl {
namespace {

constexpr int64_t kElements = 1 << 20;
// Whole numbers below 2^24: exact in float32, whatever the order of the operations.
constexpr char kProgram[] = R"(import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.flip(x, [0]) * 2 + 1
def get_inputs(): return [torch.arange(1 << 20, dtype=torch.float32)]
def get_init_inputs(): return []
)";
constexpr double kSeconds = 60;  // a context on a busy GPU takes a few

absl::Status Compare(const OracleResult& result) {
  if (result.outputs.empty() || result.outputs[0].size() != 1) {
    return absl::UnavailableError("the check gave no output");
  }
  const Leaf& leaf = result.outputs[0][0];
  if (leaf.kind != Leaf::Kind::kTensor || leaf.dtype != "float32" || leaf.elements != kElements ||
      !leaf.offset.has_value()) {
    return absl::UnavailableError("the check gave an output of another kind");
  }
  const char* bytes = result.hidden.view().data() + *leaf.offset;
  for (int64_t i = 0; i < kElements; ++i) {
    float got;
    memcpy(&got, bytes + i * sizeof(got), sizeof(got));
    const float want = static_cast<float>(2 * (kElements - 1 - i) + 1);
    if (got != want) {
      return absl::UnavailableError(
          absl::StrCat("element ", i, " of the check is ", got, " instead of ", want));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckDevice(const std::string& device, WorkerPool* oracles, const ExecLimits& limits,
                         absl::Time deadline) {
  ExecRequest request;
  request.set_task_id("check of the device");
  request.set_reference_source(kProgram);
  request.set_trials(1);
  request.set_skip_timing(true);
  ExecLimits own = limits;
  own.set_wall_seconds(std::min(kSeconds, limits.wall_seconds()));
  const JobContext context{request, device, DeriveSeeds(0, 1), own.wall_seconds()};
  const std::shared_ptr<const OracleResult> result = RunOracle(context, oracles, own, deadline);
  if (!result->ok()) return absl::UnavailableError(result->run.message());
  return Compare(*result);
}

void DeviceDoubt::Note(ExecOutcome outcome, bool doubtful) {
  if (device_ != "cuda") return;
  if (doubtful) outcome = EXEC_CRASHED;
  switch (outcome) {
    case EXEC_OUT_OF_BOUNDS:
    case EXEC_TIMEOUT:
    case EXEC_CRASHED:
    case EXEC_RUNTIME_ERROR:
    case EXEC_KILLED_WORKER:
    case EXEC_INTERNAL_ERROR: {
      absl::MutexLock lock(&mutex_);
      doubtful_ = true;
      return;
    }
    default:
      return;
  }
}

absl::Status DeviceDoubt::Settle(const ExecLimits& limits, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  if (!doubtful_) return absl::OkStatus();
  ++checks_;
  const absl::Status sound = CheckDevice(device_, oracles_, limits, deadline);
  doubtful_ = !sound.ok();
  return sound;
}

int64_t DeviceDoubt::checks() const {
  absl::MutexLock lock(&mutex_);
  return checks_;
}

}  // namespace tritonrl
