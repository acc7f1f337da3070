// Measures the broadcast of random weights from rank 0 to the engines of the other ranks:
//   mpirun -n 2 ./run broadcast_bench                                   one GPU a rank
//   mpirun -n 3 bazel-bin/bench/rollout/broadcast_bench --device=cpu --shape=qwen3_0p6b --layers=2
#include <ATen/ops/empty_like.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "bench/harness/harness.h"
#include "model/testing/test_util.h"
#include "parallel/process_group.h"
#include "rollout/distributed/weight_broadcast.h"
#include "rollout/factory/make_engine.h"
#include "rollout/testing/fake_engine.h"

ABSL_FLAG(std::string, shape, "qwen3_8b", "One of model/configs, or a config.json.");
ABSL_FLAG(int64_t, layers, 0, "Number of the shape's layers to send; 0: all.");
ABSL_FLAG(int64_t, bucket_elements, tritonrl::ZeroShardPlan::kBucketElements,
          "Elements of a bucket, a multiple of 64.");
ABSL_FLAG(double, link_gb_s, 450,
          "GB/s that a GPU can send at most, for the bound (NVLink 4 of an H200: 900 GB/s in both "
          "directions together, data sheet). On a CPU the bound is a copy in memory.");

namespace tritonrl {
namespace {

constexpr absl::Duration kDeadline = absl::Minutes(2);

absl::StatusOr<at::Device> DeviceOf(const std::string& flag, const ProcessGroup& ranks) {
  ASSIGN_OR_RETURN(const at::Device device, ParseDevice(flag));
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

// Lower bound of the seconds that `bytes` take.
double Bound(const Weights& weights, int64_t bytes) {
  if (weights.device().is_cuda()) {
    return static_cast<double>(bytes) / (absl::GetFlag(FLAGS_link_gb_s) * 1e9);
  }
  const at::Tensor copy = at::empty_like(weights.flat());
  copy.copy_(weights.flat());  // first touch of the memory
  const absl::Time start = absl::Now();
  copy.copy_(weights.flat());
  return absl::ToDoubleSeconds(absl::Now() - start);
}

absl::Status Measure(Bench* bench, const Weights& weights, WeightBroadcast* broadcast,
                     ProcessGroup* ranks) {
  FakeEngine engine([](const GenerateRequest&, int) { return std::vector<int32_t>(); });
  std::vector<double> transfers, comparisons;
  int64_t version = 0;
  const auto update = [&](bool measured) -> absl::StatusOr<double> {
    RETURN_IF_ERROR(ranks->Barrier());
    const absl::Time start = absl::Now();
    if (ranks->is_root()) {
      RETURN_IF_ERROR(broadcast->Send(version++));
    } else {
      RETURN_IF_ERROR(broadcast->Receive(&engine).status());
    }
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    if (measured) {
      transfers.push_back(absl::ToDoubleSeconds(broadcast->times().transfer));
      comparisons.push_back(absl::ToDoubleSeconds(broadcast->times().comparison));
    }
    return seconds;
  };
  ASSIGN_OR_RETURN(const auto updates, bench->Measure({update}));
  if (!ranks->is_root()) return absl::OkStatus();
  const int64_t bytes = broadcast->times().bytes;
  const double gigabytes = static_cast<double>(bytes) / 1e9, bound = Bound(weights, bytes);
  bench->set_subject("weight broadcast");
  // Reports the fastest round. The bound is the link's speed, on a CPU that of a memory copy.
  const auto add = [&](const std::string& what, const std::vector<double>& seconds) {
    bench->Add(absl::StrFormat("%s of %.2f GB to %d ranks", what, gigabytes, ranks->size() - 1),
               {{"time", Fastest(seconds), "s", std::nullopt, bound, seconds},
                {"rate", gigabytes / Fastest(seconds), "GB/s", std::nullopt, gigabytes / bound,
                 Rates(gigabytes, seconds)}});
  };
  add("update", updates[0]);
  add("its transfer", transfers);
  add("its comparison", comparisons);
  return absl::OkStatus();
}

absl::Status Run(Bench* bench, ProcessGroup* ranks) {
  if (ranks->size() < 2) {
    return absl::InvalidArgumentError("a broadcast needs two ranks or more: mpirun -n 2 ...");
  }
  const int64_t bucket = absl::GetFlag(FLAGS_bucket_elements);
  if (bucket < 64 || bucket % 64 != 0 || bucket > (int64_t{1} << 28)) {
    return absl::InvalidArgumentError("--bucket_elements must be a multiple of 64 up to 2^28");
  }
  ASSIGN_OR_RETURN(const at::Device device, DeviceOf(bench->device(), *ranks));
  ASSIGN_OR_RETURN(const ModelConfig config, Shape());
  RETURN_IF_ERROR(ranks->InitNcclCollectives(device));
  const at::ScalarType type = device.is_cuda() ? at::kBFloat16 : at::kFloat;
  const std::shared_ptr<Weights> weights = ranks->is_root()
                                               ? RandomWeights(config, device, type)
                                               : std::make_shared<Weights>(config, device, type);
  ASSIGN_OR_RETURN(const auto broadcast, WeightBroadcast::Join(weights, ranks, bucket));
  return Measure(bench, *weights, broadcast.get(), ranks);
}

absl::Status RunOnRanks(Bench* bench) {
  ASSIGN_OR_RETURN(const auto ranks, ProcessGroup::Join(kDeadline));
  if (!ranks->is_root()) bench->Mute();
  const absl::Status status = Run(bench, ranks.get());
  // The other ranks would wait for ever, so an error ends the job.
  if (!status.ok() && ranks->size() > 1) std::exit(ExitCodeFor(status, ranks.get()));
  return status;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench({.usage = "Seconds of an update of the engines' weights from another rank.",
                      .warmup = 1,
                      .repeats = 5,
                      .device = "auto"},
                     argc, argv, tritonrl::RunOnRanks);
}
