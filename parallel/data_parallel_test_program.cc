// Started by data_parallel_test under mpirun with the case's name as its argument, and perhaps with
// a number of ranks: so many after each other then count as a node, and buckets go in two levels.
// By hand, bucket_times prints what a bucket takes in both ways. On a machine with two GPUs or more
// (from an archive of tools/bundle.sh) also by hand, with gpu_collectives, gpu_die, gpu_hang,
// gpu_window_hang and gpu_bucket_times; with four, of which two are a node, these in two levels and
// gpu_node_hang:
//   mpirun -n 2 ./run data_parallel_test_program gpu_collectives
//   mpirun -n 4 ./run data_parallel_test_program gpu_collectives 2
// With one GPU: gpu_alone, without mpirun.
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
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "parallel/data_parallel.h"
#include "parallel/exit_code.h"
#include "parallel/gpu_collectives.h"
#include "parallel/time_buckets.h"

namespace tritonrl {
namespace {

absl::Status Expect(bool holds, const char* what) {
  return holds ? absl::OkStatus() : absl::InternalError(std::string("wrong: ") + what);
}

absl::Status Reduce(const ShardPlan& plan, const at::Tensor& full, const at::Tensor& local,
                    DataParallel* ranks) {
  for (int64_t bucket = plan.buckets() - 1; bucket >= 0; --bucket) {
    RETURN_IF_ERROR(ranks->ReduceBucket(plan, bucket, full, local));
  }
  return ranks->FinishBuckets(full, "the sum of gradients");
}

// Adds the sums of `full` to `local` once more, and overwrites each bucket of it as soon as that is
// allowed.
absl::Status AddedSums(const ShardPlan& plan, const at::Tensor& full, const at::Tensor& local,
                       DataParallel* ranks) {
  for (int64_t bucket = plan.buckets() - 1; bucket >= 0; --bucket) {
    RETURN_IF_ERROR(ranks->ReduceBucket(plan, bucket, full, local, /*add=*/true));
    if (bucket + 1 == plan.buckets()) continue;
    RETURN_IF_ERROR(ranks->AwaitReduce(full, bucket + 1));
    const FlatRange range = plan.Bucket(bucket + 1);
    full.narrow(0, range.begin, range.size()).fill_(-1);
  }
  return ranks->FinishBuckets(full, "the sum of gradients");
}

// Numbers that differ by rank and place, whose sums are exact; the last bucket is shorter.
absl::Status Shards(int64_t size, int64_t bucket, at::Device device, DataParallel* ranks) {
  const ShardPlan plan(size, ranks->size(), bucket);
  const int all_factors = ranks->size() * (ranks->size() + 1) / 2;
  const auto fp32 = at::TensorOptions(device).dtype(at::kFloat);
  const at::Tensor places = at::arange(size, fp32);
  const at::Tensor local = at::zeros({plan.LocalSize(ranks->rank())}, fp32);
  const at::Tensor mine = places.mul(ranks->rank() + 1);
  RETURN_IF_ERROR(Reduce(plan, mine, local, ranks));
  const at::Tensor all = at::zeros({size}, fp32);
  RETURN_IF_ERROR(ranks->GatherShards(plan, local, all));
  RETURN_IF_ERROR(Expect(all.equal(places.mul(all_factors)), "ReduceToShards and GatherShards"));
  RETURN_IF_ERROR(AddedSums(plan, mine, local, ranks));
  RETURN_IF_ERROR(ranks->GatherShards(plan, local, all));
  RETURN_IF_ERROR(Expect(all.equal(places.mul(2 * all_factors)), "sums added to sums"));
  RETURN_IF_ERROR(Reduce(plan, places.mul(ranks->rank() + 1), local, ranks));
  for (const at::ScalarType type : {at::kBFloat16, at::kByte, at::kLong, at::kDouble}) {
    const at::Tensor typed = at::zeros({size}, fp32.dtype(type));
    RETURN_IF_ERROR(ranks->GatherShards(plan, local.remainder(251).to(type), typed));
    RETURN_IF_ERROR(Expect(typed.equal(places.mul(all_factors).remainder(251).to(type)),
                           "GatherShards of another type"));
  }
  return absl::OkStatus();
}

// Last buckets whose pieces are of one size, uneven, and in part empty.
absl::Status Shards(DataParallel* ranks, at::Device device) {
  RETURN_IF_ERROR(
      Shards(int64_t{64} * 50 * ranks->size() * 3, 64 * 50 * ranks->size(), device, ranks));
  RETURN_IF_ERROR(Shards(64 * 1001, 64 * 300, device, ranks));
  return Shards(64 * 301 + 5, 64 * 300, device, ranks);
}

absl::Status Collectives(DataParallel* ranks) {
  const int rank = ranks->rank();
  double values[2] = {1.0 + rank, 10.0};
  RETURN_IF_ERROR(ranks->Sum(values));
  RETURN_IF_ERROR(Expect(values[0] == 3 && values[1] == 20, "Sum"));
  double largest[1] = {rank == 1 ? 5.0 : 2.0};
  RETURN_IF_ERROR(ranks->Max(largest));
  RETURN_IF_ERROR(Expect(largest[0] == 5, "Max"));
  RETURN_IF_ERROR(Shards(ranks, at::kCPU));
  const absl::Status agreed = ranks->Agree(rank == 0 ? absl::OkStatus() : absl::NotFoundError("x"));
  RETURN_IF_ERROR(Expect(agreed == absl::NotFoundError("rank 1: x"), "Agree"));
  RETURN_IF_ERROR(ranks->Agree(absl::OkStatus()));
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

// Of three ranks the last and the first make a group, in this order, and work in it while the other
// does something else; then all go on together.
absl::Status Groups(DataParallel* ranks) {
  RETURN_IF_ERROR(Expect(ranks->size() == 3, "three ranks"));
  const auto twice = ranks->Group({0, 0});
  RETURN_IF_ERROR(Expect(absl::IsInvalidArgument(twice.status()), "a rank that is there twice"));
  ASSIGN_OR_RETURN(const auto group, ranks->Group({2, 0}));
  RETURN_IF_ERROR(Expect((group != nullptr) == (ranks->rank() != 1), "who is in the group"));
  if (group != nullptr) {
    RETURN_IF_ERROR(Expect(group->size() == 2 && group->rank() == (ranks->rank() == 2 ? 0 : 1) &&
                               group->local_rank() == ranks->local_rank(),
                           "ranks of the group"));
    ASSIGN_OR_RETURN(const auto texts, group->AllGather(std::to_string(ranks->rank())));
    RETURN_IF_ERROR(Expect(texts == std::vector<std::string>({"2", "0"}), "AllGather of a group"));
    const at::Tensor numbers = at::arange(1000, at::kBFloat16).add_(ranks->rank());
    RETURN_IF_ERROR(group->BroadcastBucket(numbers, 0));
    RETURN_IF_ERROR(group->FinishBuckets(numbers, "a broadcast"));
    RETURN_IF_ERROR(
        Expect(numbers.equal(at::arange(1000, at::kBFloat16).add_(2)), "BroadcastBucket"));
  }
  const at::Tensor all = at::full({10}, ranks->rank(), at::kLong);
  RETURN_IF_ERROR(ranks->BroadcastBucket(all, 1));
  RETURN_IF_ERROR(Expect(all.equal(at::ones({10}, at::kLong)), "BroadcastBucket of all"));
  ASSIGN_OR_RETURN(const auto alone, ranks->Group({1}));
  if (alone != nullptr) RETURN_IF_ERROR(Expect(alone->size() == 1, "a group of one"));
  std::printf("rank %d of %d ok\n", ranks->rank(), ranks->size());
  return absl::OkStatus();
}

// Ranks with odd numbers, or in cases of a lost node the first two, fail in their own way while the
// others wait for them.
absl::Status LoseARank(DataParallel* ranks, const std::string& what, at::Device device) {
  const bool lost = absl::StrContains(what, "node") ? ranks->rank() < 2 : ranks->rank() % 2 == 1;
  if (lost) {
    if (absl::EndsWith(what, "die")) raise(SIGKILL);
    sleep(600);
  }
  const ShardPlan plan(10, ranks->size());
  const at::Tensor all = at::zeros({10}, at::TensorOptions(device).dtype(at::kFloat));
  const at::Tensor local = all.narrow(0, 0, plan.LocalSize(0));
  if (absl::EndsWith(what, "window_hang")) {  // as when gradients are about to be overwritten
    RETURN_IF_ERROR(ranks->ReduceBucket(plan, 0, all, local));
    RETURN_IF_ERROR(ranks->AwaitReduce(all, 0));
  }
  RETURN_IF_ERROR(Reduce(plan, all, local, ranks));
  std::printf("survived\n");
  return absl::OkStatus();
}

// What the bytes of an 8B model take between the GPUs: 8 GiB of fp32 into shares, 4 GiB of bf16
// out.
absl::Status Rates(DataParallel* ranks, at::Device device) {
  const auto fp32 = at::TensorOptions(device).dtype(at::kFloat);
  const ShardPlan plan(int64_t{1} << 31, ranks->size());
  const at::Tensor full = at::zeros({plan.flat_size()}, fp32);
  const at::Tensor local = at::zeros({plan.LocalSize(ranks->rank())}, fp32);
  const at::Tensor weights = at::zeros({plan.flat_size()}, fp32.dtype(at::kBFloat16));
  const at::Tensor share = local.to(at::kBFloat16);
  for (int i = 0; i < 4; ++i) {
    const absl::Time start = absl::Now();
    RETURN_IF_ERROR(Reduce(plan, full, local, ranks));
    const absl::Time reduced = absl::Now();
    RETURN_IF_ERROR(ranks->GatherShards(plan, share, weights));
    if (!ranks->is_root()) continue;
    std::printf("8 GiB of gradients %.4f s, 4 GiB of weights %.4f s\n",
                absl::ToDoubleSeconds(reduced - start),
                absl::ToDoubleSeconds(absl::Now() - reduced));
  }
  return absl::OkStatus();
}

// A bucket alone, in both ways if there are nodes.
absl::Status PrintBucketTimes(DataParallel* ranks, at::Device device) {
  for (const BucketWay way : {BucketWay::kPlain, BucketWay::kTwoLevel}) {
    if (way == BucketWay::kTwoLevel && !ranks->Grid().ok()) break;
    RETURN_IF_ERROR(ranks->SetBucketWay(way));
    for (const int64_t elements : {int64_t{1} << 16, int64_t{1} << 21, int64_t{1} << 26}) {
      ASSIGN_OR_RETURN(const BucketTimes times,
                       TimeBuckets(elements, at::kBFloat16, device, ranks));
      if (!ranks->is_root()) continue;
      std::printf("%s, %.2f MiB of gradients: sum %.3f ms, exchange of bf16 weights %.3f ms\n",
                  way == BucketWay::kPlain ? "plain" : "two levels",
                  static_cast<double>(elements) * 4 / (1 << 20), 1e3 * times.reduce,
                  1e3 * times.gather);
    }
  }
  return absl::OkStatus();
}

// A rank alone, over NCCL all the same: what can be tried of the calls where there is one GPU.
absl::Status GpuAlone(at::Device device) {
  const auto join = [&] {
    return GpuCommunicator::Join({.device = device, .timeout = absl::Seconds(60)},
                                 [](std::string*) { return absl::OkStatus(); });
  };
  ASSIGN_OR_RETURN(std::unique_ptr<GpuCommunicator> all, join());
  GpuCollectives gpus(std::move(all));
  const ShardPlan plan(1000, 1, 256);
  const auto fp32 = at::TensorOptions(device).dtype(at::kFloat);
  const at::Tensor full = at::arange(1000, fp32), local = at::zeros({1000}, fp32);
  for (const bool levels : {false, true, false}) {
    if (levels) {
      ASSIGN_OR_RETURN(std::unique_ptr<GpuCommunicator> node, join());
      ASSIGN_OR_RETURN(std::unique_ptr<GpuCommunicator> peers, join());
      gpus.UseLevels(NodeGrid(), std::move(node), std::move(peers));
    } else {
      gpus.UsePlain();
    }
    for (int64_t bucket = 0; bucket < plan.buckets(); ++bucket) {
      RETURN_IF_ERROR(gpus.Reduce(plan, bucket, full, local, /*add=*/false));
      RETURN_IF_ERROR(gpus.Reduce(plan, bucket, full, local, /*add=*/true));
      RETURN_IF_ERROR(gpus.AwaitReduce(bucket));
    }
    RETURN_IF_ERROR(gpus.Finish("sums"));
    RETURN_IF_ERROR(Expect(local.equal(full.mul(2)), "sums of one rank"));
    const at::Tensor bytes = local.remainder(251).to(at::kByte), gathered = bytes.clone();
    for (int64_t bucket = 0; bucket < plan.buckets(); ++bucket) {
      RETURN_IF_ERROR(gpus.Gather(plan, bucket, gathered));
    }
    RETURN_IF_ERROR(gpus.Finish("an exchange"));
    RETURN_IF_ERROR(Expect(gathered.equal(bytes), "an exchange of one rank"));
  }
  std::printf("one rank ok\n");
  return absl::OkStatus();
}

absl::Status Run(const std::string& what, bool levels, DataParallel* ranks) {
  if (what == "gpu_alone") return GpuAlone(at::Device(at::kCUDA, 0));
  at::Device device = at::kCPU;
  const bool gpu = absl::StartsWith(what, "gpu");
  if (gpu) device = at::Device(at::kCUDA, static_cast<at::DeviceIndex>(ranks->local_rank()));
  RETURN_IF_ERROR(ranks->JoinGpus(device));
  if (absl::EndsWith(what, "bucket_times")) return PrintBucketTimes(ranks, device);
  if (levels) {
    ASSIGN_OR_RETURN(const NodeGrid grid, ranks->Grid());
    RETURN_IF_ERROR(Expect(ranks->local_rank() == ranks->rank() % grid.ranks_per_node,
                           "local rank on a node that is emulated"));
    RETURN_IF_ERROR(ranks->SetBucketWay(BucketWay::kTwoLevel));
  }
  if (what == "collectives") return Collectives(ranks);
  if (what == "groups") return Groups(ranks);
  if (what != "shards" && what != "gpu_collectives") return LoseARank(ranks, what, device);
  RETURN_IF_ERROR(Shards(ranks, device));
  if (gpu) RETURN_IF_ERROR(Rates(ranks, device));
  if (levels) {  // and back
    RETURN_IF_ERROR(ranks->SetBucketWay(BucketWay::kPlain));
    RETURN_IF_ERROR(Shards(ranks, device));
  }
  std::printf("rank %d of %d ok\n", ranks->rank(), ranks->size());
  return ranks->Barrier();
}

int Main(const std::string& what, int ranks_per_node) {
  const bool hangs = absl::EndsWith(what, "hang") || what == "gpu_die";
  auto ranks = DataParallel::Join(hangs ? absl::Seconds(2) : absl::Seconds(60), ranks_per_node);
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  return ExitCodeFor(Run(what, ranks_per_node > 0, ranks->get()), ranks->get());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  int ranks_per_node = 0;
  if (argc < 2 || argc > 3) return 2;
  if (argc == 3 && !absl::SimpleAtoi(argv[2], &ranks_per_node)) return 2;
  return tritonrl::Main(argv[1], ranks_per_node);
}
