// process_group_test starts this program under mpirun with the name of the case as its argument. On
// a machine with at least two GPUs, run the cases gpu_collectives, gpu_die, gpu_hang and
// gpu_window_hang from an archive of tools/bundle.sh:
//   mpirun -n 2 ./run process_group_test_program gpu_collectives
// With one GPU, run the case gpu_alone without mpirun.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "parallel/nccl_collectives.h"
#include "parallel/process_group.h"
#include "parallel/testing/all_gather_shards.h"

namespace tritonrl {
namespace {

absl::Status Expect(bool holds, const char* what) {
  return holds ? absl::OkStatus() : absl::InternalError(std::string("wrong: ") + what);
}

absl::Status Reduce(const ZeroShardPlan& plan, const at::Tensor& full, const at::Tensor& local,
                    ProcessGroup* ranks) {
  for (int64_t bucket = plan.buckets() - 1; bucket >= 0; --bucket) {
    RETURN_IF_ERROR(
        ranks->collectives()->ReduceScatter(plan, bucket, full, local, /*accumulate=*/false));
  }
  return ranks->collectives()->Wait("the gradient reduce-scatter");
}

// Adds the sums of `full` to `local` again, and overwrites each bucket of `full` as soon as
// WaitUntilRead allows it.
absl::Status AddedSums(const ZeroShardPlan& plan, const at::Tensor& full, const at::Tensor& local,
                       ProcessGroup* ranks) {
  for (int64_t bucket = plan.buckets() - 1; bucket >= 0; --bucket) {
    RETURN_IF_ERROR(
        ranks->collectives()->ReduceScatter(plan, bucket, full, local, /*accumulate=*/true));
    if (bucket + 1 == plan.buckets()) continue;
    RETURN_IF_ERROR(ranks->collectives()->WaitUntilRead(bucket + 1));
    const FlatRange range = plan.Bucket(bucket + 1);
    full.narrow(0, range.begin, range.size()).fill_(-1);
  }
  return ranks->collectives()->Wait("the gradient reduce-scatter");
}

// Tests reduce-scatter and all-gather with numbers that differ by rank and position and whose sums
// are exact.
absl::Status Shards(int64_t size, int64_t bucket, at::Device device, ProcessGroup* ranks) {
  const ZeroShardPlan plan(size, ranks->size(), bucket);
  const int all_factors = ranks->size() * (ranks->size() + 1) / 2;
  const auto fp32 = at::TensorOptions(device).dtype(at::kFloat);
  const at::Tensor places = at::arange(size, fp32);
  const at::Tensor local = at::zeros({plan.LocalSize(ranks->rank())}, fp32);
  const at::Tensor mine = places.mul(ranks->rank() + 1);
  RETURN_IF_ERROR(Reduce(plan, mine, local, ranks));
  const at::Tensor all = at::zeros({size}, fp32);
  RETURN_IF_ERROR(AllGatherShards(plan, local, all, ranks));
  RETURN_IF_ERROR(Expect(all.equal(places.mul(all_factors)), "ReduceScatter and AllGatherShards"));
  RETURN_IF_ERROR(AddedSums(plan, mine, local, ranks));
  RETURN_IF_ERROR(AllGatherShards(plan, local, all, ranks));
  RETURN_IF_ERROR(Expect(all.equal(places.mul(2 * all_factors)), "sums added to sums"));
  RETURN_IF_ERROR(Reduce(plan, places.mul(ranks->rank() + 1), local, ranks));
  for (const at::ScalarType type : {at::kBFloat16, at::kByte, at::kLong, at::kDouble}) {
    const at::Tensor typed = at::zeros({size}, fp32.dtype(type));
    RETURN_IF_ERROR(AllGatherShards(plan, local.remainder(251).to(type), typed, ranks));
    RETURN_IF_ERROR(Expect(typed.equal(places.mul(all_factors).remainder(251).to(type)),
                           "AllGatherShards of another type"));
  }
  return absl::OkStatus();
}

// Tests flat buffers whose last bucket has equal shards, uneven shards, and some empty shards.
absl::Status Shards(ProcessGroup* ranks, at::Device device) {
  RETURN_IF_ERROR(
      Shards(int64_t{64} * 50 * ranks->size() * 3, 64 * 50 * ranks->size(), device, ranks));
  RETURN_IF_ERROR(Shards(64 * 1001, 64 * 300, device, ranks));
  return Shards(64 * 301 + 5, 64 * 300, device, ranks);
}

absl::Status AllCollectives(ProcessGroup* ranks) {
  const int rank = ranks->rank();
  double values[2] = {1.0 + rank, 10.0};
  RETURN_IF_ERROR(ranks->AllReduce(values));
  RETURN_IF_ERROR(Expect(values[0] == 3 && values[1] == 20, "AllReduce"));
  double largest[1] = {rank == 1 ? 5.0 : 2.0};
  RETURN_IF_ERROR(ranks->AllReduceMax(largest));
  RETURN_IF_ERROR(Expect(largest[0] == 5, "AllReduceMax"));
  RETURN_IF_ERROR(Shards(ranks, at::kCPU));
  const absl::Status agreed =
      ranks->AllReduceStatus(rank == 0 ? absl::OkStatus() : absl::NotFoundError("x"));
  RETURN_IF_ERROR(Expect(agreed == absl::NotFoundError("rank 1: x"), "AllReduceStatus"));
  RETURN_IF_ERROR(ranks->AllReduceStatus(absl::OkStatus()));
  ASSIGN_OR_RETURN(const auto texts, ranks->AllGather(rank == 0 ? "" : "from one"));
  RETURN_IF_ERROR(
      Expect(texts.size() == 2 && texts[0].empty() && texts[1] == "from one", "AllGather"));
  std::string text = rank == 0 ? "root's" : "mine";
  RETURN_IF_ERROR(ranks->Broadcast(&text));
  RETURN_IF_ERROR(Expect(text == "root's", "Broadcast"));
  ASSIGN_OR_RETURN(const bool any, ranks->Any(rank == 1));
  ASSIGN_OR_RETURN(const bool none, ranks->Any(false));
  RETURN_IF_ERROR(Expect(any && !none, "Any"));
  RETURN_IF_ERROR(Expect(ranks->local_rank() == rank && ranks->local_size() == 2, "local rank"));
  std::printf("rank %d of %d ok\n", rank, ranks->size());
  return ranks->Barrier();
}

// The last and the first of three ranks form a group, in this order, and make collective calls in
// it while the middle rank does not. Then all three continue together.
absl::Status Groups(ProcessGroup* ranks) {
  RETURN_IF_ERROR(Expect(ranks->size() == 3, "three ranks"));
  const auto twice = ranks->NewGroup({0, 0});
  RETURN_IF_ERROR(Expect(absl::IsInvalidArgument(twice.status()), "a rank that is there twice"));
  ASSIGN_OR_RETURN(const auto group, ranks->NewGroup({2, 0}));
  RETURN_IF_ERROR(Expect((group != nullptr) == (ranks->rank() != 1), "who is in the group"));
  if (group != nullptr) {
    RETURN_IF_ERROR(Expect(group->size() == 2 && group->rank() == (ranks->rank() == 2 ? 0 : 1) &&
                               group->local_rank() == ranks->local_rank(),
                           "ranks of the group"));
    ASSIGN_OR_RETURN(const auto texts, group->AllGather(std::to_string(ranks->rank())));
    RETURN_IF_ERROR(Expect(texts == std::vector<std::string>({"2", "0"}), "AllGather of a group"));
    const at::Tensor numbers = at::arange(1000, at::kBFloat16).add_(ranks->rank());
    RETURN_IF_ERROR(group->collectives()->Broadcast(numbers, 0));
    RETURN_IF_ERROR(group->collectives()->Wait("a broadcast"));
    RETURN_IF_ERROR(Expect(numbers.equal(at::arange(1000, at::kBFloat16).add_(2)), "Broadcast"));
  }
  const at::Tensor all = at::full({10}, ranks->rank(), at::kLong);
  RETURN_IF_ERROR(ranks->collectives()->Broadcast(all, 1));
  RETURN_IF_ERROR(Expect(all.equal(at::ones({10}, at::kLong)), "Broadcast of all"));
  ASSIGN_OR_RETURN(const auto alone, ranks->NewGroup({1}));
  if (alone != nullptr) RETURN_IF_ERROR(Expect(alone->size() == 1, "a group of one"));
  std::printf("rank %d of %d ok\n", ranks->rank(), ranks->size());
  return absl::OkStatus();
}

// Rank 1 dies or hangs, depending on `what`, while the other ranks wait for it.
absl::Status LoseARank(ProcessGroup* ranks, const std::string& what, at::Device device) {
  if (ranks->rank() == 1) {
    if (absl::EndsWith(what, "die")) raise(SIGKILL);
    sleep(600);
  }
  const ZeroShardPlan plan(10, ranks->size());
  const at::Tensor all = at::zeros({10}, at::TensorOptions(device).dtype(at::kFloat));
  const at::Tensor local = all.narrow(0, 0, plan.LocalSize(0));
  if (absl::EndsWith(what, "window_hang")) {  // as before a gradient ring buffer is overwritten
    RETURN_IF_ERROR(ranks->collectives()->ReduceScatter(plan, 0, all, local, /*accumulate=*/false));
    RETURN_IF_ERROR(ranks->collectives()->WaitUntilRead(0));
  }
  RETURN_IF_ERROR(Reduce(plan, all, local, ranks));
  std::printf("survived\n");
  return absl::OkStatus();
}

// Measures the transfers between GPUs for a model of 2^31 parameters: the reduce-scatter of 8 GiB
// of fp32 gradients and the all-gather of 4 GiB of bf16 weights.
absl::Status Rates(ProcessGroup* ranks, at::Device device) {
  const auto fp32 = at::TensorOptions(device).dtype(at::kFloat);
  const ZeroShardPlan plan(int64_t{1} << 31, ranks->size());
  const at::Tensor full = at::zeros({plan.flat_size()}, fp32);
  const at::Tensor local = at::zeros({plan.LocalSize(ranks->rank())}, fp32);
  const at::Tensor weights = at::zeros({plan.flat_size()}, fp32.dtype(at::kBFloat16));
  const at::Tensor share = local.to(at::kBFloat16);
  for (int i = 0; i < 4; ++i) {
    const absl::Time start = absl::Now();
    RETURN_IF_ERROR(Reduce(plan, full, local, ranks));
    const absl::Time reduced = absl::Now();
    RETURN_IF_ERROR(AllGatherShards(plan, share, weights, ranks));
    if (!ranks->is_root()) continue;
    std::printf("8 GiB of gradients %.4f s, 4 GiB of weights %.4f s\n",
                absl::ToDoubleSeconds(reduced - start),
                absl::ToDoubleSeconds(absl::Now() - reduced));
  }
  return absl::OkStatus();
}

// Tests the NCCL calls of a single rank, on a machine with one GPU.
absl::Status GpuAlone(at::Device device) {
  ASSIGN_OR_RETURN(std::unique_ptr<NcclCommunicator> group,
                   NcclCommunicator::Join({.device = device, .timeout = absl::Seconds(60)},
                                          [](std::string*) { return absl::OkStatus(); }));
  NcclCollectives gpus(std::move(group), NcclCollectives::Ordering::kOwnStream, MPI_COMM_NULL);
  const ZeroShardPlan plan(1000, 1, 256);
  const auto fp32 = at::TensorOptions(device).dtype(at::kFloat);
  const at::Tensor full = at::arange(1000, fp32), local = at::zeros({1000}, fp32);
  for (int64_t bucket = 0; bucket < plan.buckets(); ++bucket) {
    RETURN_IF_ERROR(gpus.ReduceScatter(plan, bucket, full, local, /*accumulate=*/false));
    RETURN_IF_ERROR(gpus.ReduceScatter(plan, bucket, full, local, /*accumulate=*/true));
    RETURN_IF_ERROR(gpus.WaitUntilRead(bucket));
  }
  RETURN_IF_ERROR(gpus.Wait("sums"));
  RETURN_IF_ERROR(Expect(local.equal(full.mul(2)), "sums of one rank"));
  const at::Tensor bytes = local.remainder(251).to(at::kByte), gathered = bytes.clone();
  for (int64_t bucket = 0; bucket < plan.buckets(); ++bucket) {
    RETURN_IF_ERROR(gpus.AllGather(plan, bucket, gathered));
  }
  RETURN_IF_ERROR(gpus.Wait("an exchange"));
  RETURN_IF_ERROR(Expect(gathered.equal(bytes), "an exchange of one rank"));
  std::printf("one rank ok\n");
  return absl::OkStatus();
}

absl::Status Run(const std::string& what, ProcessGroup* ranks) {
  if (what == "gpu_alone") return GpuAlone(at::Device(at::kCUDA, 0));
  at::Device device = at::kCPU;
  const bool gpu = absl::StartsWith(what, "gpu");
  if (gpu) device = at::Device(at::kCUDA, static_cast<at::DeviceIndex>(ranks->local_rank()));
  RETURN_IF_ERROR(ranks->InitNcclCollectives(device));
  if (what == "collectives") return AllCollectives(ranks);
  if (what == "groups") return Groups(ranks);
  if (what != "shards" && what != "gpu_collectives") return LoseARank(ranks, what, device);
  RETURN_IF_ERROR(Shards(ranks, device));
  if (gpu) RETURN_IF_ERROR(Rates(ranks, device));
  std::printf("rank %d of %d ok\n", ranks->rank(), ranks->size());
  return ranks->Barrier();
}

int Main(const std::string& what) {
  const bool hangs = absl::EndsWith(what, "hang") || what == "gpu_die";
  auto ranks = ProcessGroup::Join(hangs ? absl::Seconds(2) : absl::Seconds(60));
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  return ExitCodeFor(Run(what, ranks->get()), ranks->get());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return argc == 2 ? tritonrl::Main(argv[1]) : 2; }
