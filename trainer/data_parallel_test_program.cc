// Started by data_parallel_test under mpirun with the case's name as its argument.
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/status.h"
#include "trainer/data_parallel.h"
#include "trainer/main_support.h"

namespace tritonrl {
namespace {

absl::Status Expect(bool holds, const char* what) {
  return holds ? absl::OkStatus() : absl::InternalError(std::string("wrong: ") + what);
}

// Numbers that differ by rank and place, in buckets of which the last one is short.
absl::Status Shards(DataParallel* ranks) {
  const int64_t size = 64 * 1001;
  const ShardPlan plan(size, ranks->size(), 64 * 300);
  const at::Tensor places = at::arange(size, at::kFloat);
  const at::Tensor local = at::zeros({plan.LocalSize(ranks->rank())}, at::kFloat);
  RETURN_IF_ERROR(ranks->ReduceToShards(plan, places.mul(ranks->rank() + 1), local));
  const at::Tensor all = at::zeros({size}, at::kFloat);
  RETURN_IF_ERROR(ranks->GatherShards(plan, local, all));
  RETURN_IF_ERROR(Expect(all.equal(places.mul(3)), "ReduceToShards and GatherShards"));
  const at::Tensor short_all = at::zeros({size}, at::kBFloat16);
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
  RETURN_IF_ERROR(Shards(ranks));
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

// Rank 1 fails in its own way while rank 0 waits for it.
absl::Status LoseARank(DataParallel* ranks, bool die) {
  if (ranks->rank() == 1) {
    if (die) raise(SIGKILL);
    sleep(600);
  }
  const ShardPlan plan(10, 2);
  const at::Tensor all = at::zeros({10}, at::kFloat);
  RETURN_IF_ERROR(ranks->ReduceToShards(plan, all, all.narrow(0, 0, plan.LocalSize(0))));
  std::printf("survived\n");
  return absl::OkStatus();
}

int Main(const std::string& what) {
  auto ranks = DataParallel::Join(what == "hang" ? absl::Seconds(2) : absl::Seconds(60));
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  const absl::Status status =
      what == "collectives" ? Collectives(ranks->get()) : LoseARank(ranks->get(), what == "die");
  return ExitCodeFor(status, ranks->get());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return argc == 2 ? tritonrl::Main(argv[1]) : 2; }
