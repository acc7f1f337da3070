// Started by data_parallel_test under mpirun with the case's name as its argument. On a machine
// with two GPUs or more (from an archive of tools/bundle.sh) also by hand, with gpu_collectives,
// gpu_die, gpu_hang and gpu_window_hang:  mpirun -n 2 ./run data_parallel_test_program
// gpu_collectives
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "parallel/data_parallel.h"
#include "parallel/exit_code.h"

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

// Numbers that differ by rank and place, in buckets of which the last one is short.
absl::Status Shards(DataParallel* ranks, at::Device device) {
  const int64_t size = 64 * 1001;
  const ShardPlan plan(size, ranks->size(), 64 * 300);
  const auto fp32 = at::TensorOptions(device).dtype(at::kFloat);
  const at::Tensor places = at::arange(size, fp32);
  const at::Tensor local = at::zeros({plan.LocalSize(ranks->rank())}, fp32);
  const at::Tensor mine = places.mul(ranks->rank() + 1);
  RETURN_IF_ERROR(Reduce(plan, mine, local, ranks));
  const at::Tensor all = at::zeros({size}, fp32);
  RETURN_IF_ERROR(ranks->GatherShards(plan, local, all));
  RETURN_IF_ERROR(Expect(all.equal(places.mul(3)), "ReduceToShards and GatherShards"));
  RETURN_IF_ERROR(AddedSums(plan, mine, local, ranks));
  RETURN_IF_ERROR(ranks->GatherShards(plan, local, all));
  RETURN_IF_ERROR(Expect(all.equal(places.mul(6)), "sums added to sums"));
  RETURN_IF_ERROR(Reduce(plan, places.mul(ranks->rank() + 1), local, ranks));
  const at::Tensor short_all = at::zeros({size}, fp32.dtype(at::kBFloat16));
  RETURN_IF_ERROR(ranks->GatherShards(plan, local.to(at::kBFloat16), short_all));
  return Expect(short_all.equal(places.mul(3).to(at::kBFloat16)), "GatherShards of bf16");
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

// Rank 1 fails in its own way while rank 0 waits for it.
absl::Status LoseARank(DataParallel* ranks, const std::string& what, at::Device device) {
  if (ranks->rank() == 1) {
    if (absl::EndsWith(what, "die")) raise(SIGKILL);
    sleep(600);
  }
  const ShardPlan plan(10, 2);
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

absl::Status OnGpus(const std::string& what, DataParallel* ranks) {
  const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(ranks->local_rank()));
  RETURN_IF_ERROR(ranks->JoinGpus(device));
  if (what != "gpu_collectives") return LoseARank(ranks, what, device);
  RETURN_IF_ERROR(Shards(ranks, device));
  RETURN_IF_ERROR(Rates(ranks, device));
  std::printf("rank %d of %d ok\n", ranks->rank(), ranks->size());
  return ranks->Barrier();
}

int Main(const std::string& what) {
  const bool hangs = absl::EndsWith(what, "hang") || what == "gpu_die";
  auto ranks = DataParallel::Join(hangs ? absl::Seconds(2) : absl::Seconds(60));
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  absl::Status status;
  if (what.substr(0, 3) == "gpu") {
    status = OnGpus(what, ranks->get());
  } else if (what == "collectives") {
    status = Collectives(ranks->get());
  } else if (what == "groups") {
    status = Groups(ranks->get());
  } else {
    status = LoseARank(ranks->get(), what, at::kCPU);
  }
  return ExitCodeFor(status, ranks->get());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return argc == 2 ? tritonrl::Main(argv[1]) : 2; }
