// Seconds of an update of the engines' weights from rank 0 to all others, with random weights:
//   mpirun -n 2 ./run broadcast_bench                                   one GPU a rank
//   mpirun -n 3 bazel-bin/bench/rollout/broadcast_bench --device=cpu --shape=qwen3_0p6b --layers=2
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/program.h"
#include "base/status.h"
#include "model/testing/test_util.h"
#include "parallel/process_group.h"
#include "rollout/distributed/weight_broadcast.h"
#include "rollout/factory/load_model.h"
#include "rollout/testing/fake_engine.h"

ABSL_FLAG(std::string, shape, "qwen3_8b", "One of model/configs, or a config.json.");
ABSL_FLAG(int64_t, layers, 0, "Only so many of its layers; 0: all.");
ABSL_FLAG(std::string, device, "auto", "cpu; cuda or auto: a GPU for each rank of a machine.");
ABSL_FLAG(int64_t, bucket_elements, tritonrl::ShardPlan::kBucketElements,
          "Of a bucket that travels, a multiple of 64.");
ABSL_FLAG(int, repeats, 5, "Updates after the first, which is not counted.");
ABSL_FLAG(double, link_gb_s, 450,
          "What a GPU can send at most, for the bound (NVLink 4 of an H200: 900 GB/s in both "
          "directions together, data sheet). On a CPU the bound is a copy in memory.");

namespace tritonrl {
namespace {

constexpr absl::Duration kDeadline = absl::Minutes(2);

absl::StatusOr<at::Device> DeviceOf(const ProcessGroup& ranks) {
  ASSIGN_OR_RETURN(const at::Device device, ParseDevice(absl::GetFlag(FLAGS_device)));
  if (device.is_cpu()) return device;
  return ParseDevice(absl::StrFormat("cuda:%d", ranks.local_rank()));
}

absl::StatusOr<ModelConfig> Shape() {
  ASSIGN_OR_RETURN(ModelConfig config, ReadModelShape(absl::GetFlag(FLAGS_shape)));
  const int64_t layers = absl::GetFlag(FLAGS_layers);
  if (layers < 0 || layers > config.num_layers) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--layers must be 0 to %d", config.num_layers));
  }
  if (layers > 0) config.num_layers = layers;
  return config;
}

// Seconds in which `bytes` cannot but travel.
double Bound(const Weights& weights, int64_t bytes) {
  if (weights.device().is_cuda()) {
    return static_cast<double>(bytes) / (absl::GetFlag(FLAGS_link_gb_s) * 1e9);
  }
  const at::Tensor copy = at::empty_like(weights.flat());
  copy.copy_(weights.flat());  // the memory's first use
  const absl::Time start = absl::Now();
  copy.copy_(weights.flat());
  return absl::ToDoubleSeconds(absl::Now() - start);
}

void Print(const char* name, double seconds, int64_t bytes) {
  std::printf("%-44s %9.4f s %8.1f GB/s\n", name, seconds,
              static_cast<double>(bytes) / seconds / 1e9);
}

absl::Status Measure(const Weights& weights, WeightBroadcast* broadcast, ProcessGroup* ranks) {
  FakeEngine engine([](const GenerateRequest&, int) { return std::vector<int32_t>(); });
  double best = 1e30, transfer = 1e30, comparison = 1e30;
  for (int i = 0; i <= absl::GetFlag(FLAGS_repeats); ++i) {
    RETURN_IF_ERROR(ranks->Barrier());
    const absl::Time start = absl::Now();
    if (ranks->is_root()) {
      RETURN_IF_ERROR(broadcast->Send(i));
    } else {
      RETURN_IF_ERROR(broadcast->Receive(&engine).status());
    }
    if (i == 0) continue;
    best = std::min(best, absl::ToDoubleSeconds(absl::Now() - start));
    transfer = std::min(transfer, absl::ToDoubleSeconds(broadcast->times().transfer));
    comparison = std::min(comparison, absl::ToDoubleSeconds(broadcast->times().comparison));
  }
  if (!ranks->is_root()) return absl::OkStatus();
  const int64_t bytes = broadcast->times().bytes;
  std::printf("%.2f GB to %d ranks, the fastest of %d updates:\n", static_cast<double>(bytes) / 1e9,
              ranks->size() - 1, absl::GetFlag(FLAGS_repeats));
  Print("update", best, bytes);
  Print("  of it the transfer", transfer, bytes);
  Print("  and the comparison", comparison, bytes);
  Print(weights.device().is_cuda() ? "bound: the link" : "a copy in memory", Bound(weights, bytes),
        bytes);
  return absl::OkStatus();
}

absl::Status Run(ProcessGroup* ranks) {
  if (ranks->size() < 2) {
    return absl::InvalidArgumentError("a broadcast needs two ranks or more: mpirun -n 2 ...");
  }
  if (absl::GetFlag(FLAGS_repeats) < 1) {
    return absl::InvalidArgumentError("--repeats must be at least 1");
  }
  const int64_t bucket = absl::GetFlag(FLAGS_bucket_elements);
  if (bucket < 64 || bucket % 64 != 0 || bucket > (int64_t{1} << 28)) {
    return absl::InvalidArgumentError("--bucket_elements must be a multiple of 64 up to 2^28");
  }
  ASSIGN_OR_RETURN(const at::Device device, DeviceOf(*ranks));
  ASSIGN_OR_RETURN(const ModelConfig config, Shape());
  RETURN_IF_ERROR(ranks->InitNcclCollectives(device));
  const at::ScalarType type = device.is_cuda() ? at::kBFloat16 : at::kFloat;
  const std::shared_ptr<Weights> weights = ranks->is_root()
                                               ? RandomWeights(config, device, type)
                                               : std::make_shared<Weights>(config, device, type);
  ASSIGN_OR_RETURN(const auto broadcast, WeightBroadcast::Join(weights, ranks, bucket));
  return Measure(*weights, broadcast.get(), ranks);
}

int Main() {
  auto ranks = ProcessGroup::Join(kDeadline);
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  return ExitCodeFor(Run(ranks->get()), ranks->get());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Seconds of an update of the engines' weights from another rank.", argc,
                         argv);
  return tritonrl::Main();
}
