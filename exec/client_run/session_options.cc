#include "exec/client_run/session_options.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "exec/client_run/layout_values.h"
#include "exec/client_run/recording_rules.h"

namespace tritonrl {
namespace {

constexpr int64_t kMostElementBytes = 16;
constexpr int64_t kLeastSmallElements = 4;           // a mean's division, a counter
constexpr int64_t kFreeOutputBytes = 16 << 20;       // beside those of a right result
constexpr int64_t kReservedPart = 16;                // of a GPU's memory: for allocators
constexpr int64_t kContextBytes = int64_t{3} << 30;  // of two processes, and of a flush

// What the windows, and the same call in the reference's process, leave of a GPU. Half of it is
// for tags, unless nobody reads them.
int64_t MostMemory(const RunSetup& setup, int64_t total_bytes) {
  const SharedBufferSizes& sizes = setup.reference_result.shared_buffers;
  const auto windows = static_cast<int64_t>(sizes.in_bytes + sizes.out_bytes);
  const int64_t left = total_bytes - total_bytes / kReservedPart - kContextBytes - 2 * windows;
  return std::max(setup.asks_who_computes() ? left / 2 : left, total_bytes / 8);
}

// A little arithmetic, and reading, beside the kernels: it may not be as much as the task itself.
int64_t MostSmallElements(const RecordedCalls& recorded) {
  int64_t elements = 0;
  for (const at::Tensor& input : TensorsOf(recorded.visible().inputs[0])) {
    elements += input.numel();
  }
  return std::max(kLeastSmallElements, elements / 4);
}

// A larger result is wrong, whatever type its elements have.
int64_t MostOutputBytes(const ReferenceResult& reference_result) {
  int64_t most = 0;
  for (const std::vector<Leaf>& outputs : reference_result.outputs) {
    int64_t elements = 0;
    for (const Leaf& leaf : outputs) elements += leaf.elements;
    most = std::max(most, elements);
  }
  return most * kMostElementBytes + kFreeOutputBytes;
}

void SetLimits(const RunSetup& setup, const RecordedCalls& recorded, const Executors& executors,
               device::SessionLimits* limits) {
  limits->max_memory_bytes =
      std::min<int64_t>(limits->max_memory_bytes, setup.limits.memory_bytes());
  if (executors.gpu().has_value()) {
    limits->max_memory_bytes = MostMemory(setup, executors.gpu()->total_bytes);
  }
  const int64_t few = MostSmallElements(recorded);
  for (int64_t* const limit :
       {&limits->max_small_elements_of_call, &limits->max_read_elements_of_call}) {
    *limit = std::min(*limit, few);
  }
  // The executor's own bound is for outputs that pass through memory of the host.
  const int64_t most_output = MostOutputBytes(setup.reference_result);
  limits->max_output_bytes = setup.reference_result.has_memory()
                                 ? std::min(limits->max_output_bytes, most_output)
                                 : most_output;
}

}  // namespace

device::SessionOptions MakeSessionOptions(const RunSetup& setup, const RecordedCalls& recorded,
                                          Decoy decoy, const Executors& executors) {
  const JobSeeds& seeds = setup.context.seeds;
  device::SessionOptions options;
  options.source = setup.request().candidate_source();
  options.init_args = recorded.visible().args;
  options.init_kwargs = recorded.visible().kwargs;
  options.calls = recorded.LiveCalls();
  options.keeps_state = setup.reference_result.has_buffers;
  options.may_compute = !setup.asks_who_computes();
  options.init_seed = seeds.weights;
  options.state_is_known = setup.request().rules() != RULES_PAPER;
  if (options.state_is_known) options.state = recorded.visible().state;
  options.varied = recorded.visible().varied;
  if (decoy == Decoy::kReplayed) {
    options.true_seed = seeds.weights;
    options.init_seed = seeds.decoy;
  } else if (decoy == Decoy::kTold) {
    options.told_seed = seeds.decoy;
  }
  // A mask that the reference draws may be drawn; nothing else that it computes is free.
  if (DrawsRandomNumbers(setup.reference_result.run)) options.also_allowed = MaskOperators();
  options.threads = executors.threads();
  options.device = executors.gpu().value_or(options.device);
  options.deadline = setup.LatestEnd();
  SetLimits(setup, recorded, executors, &options.limits);
  return options;
}

}  // namespace tritonrl
