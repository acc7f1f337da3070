// Started by checkpoint_ranks_test, alone or under mpirun: resumes from a checkpoint if there is
// one, makes updates, saves, and prints a digest of weights and optimizer state over all ranks.
#include <ATen/ops/zeros.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"
#include "parallel/process_group.h"
#include "parallel/testing/all_gather_shards.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/program/training_program.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

// Sets gradients to multiples of 1/4 whose sum is exact and the same for any number of ranks.
void FillGradients(int64_t update, const ProcessGroup& ranks, Gradients* gradients) {
  int64_t number = 0;
  for (const ParameterInfo& info : gradients->layout().parameters) {
    const double value = 0.25 * static_cast<double>((update + 3 * ++number) % 7 - 3);
    const double others = 0.25 * (ranks.size() - 1);
    at::Tensor(gradients->Get(info.name)).fill_(ranks.is_root() ? value - others : 0.25);
  }
}

std::string Digest(const at::Tensor& tensor) {
  return Sha256Hex(
             absl::string_view(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()))
      .substr(0, 16);
}

// Digest of a whole tensor that is sharded over the ranks.
absl::StatusOr<std::string> DigestOfAll(const AdamW& optimizer, const at::Tensor& local,
                                        ProcessGroup* ranks) {
  const at::Tensor all = at::zeros({optimizer.plan().flat_size()}, at::kFloat);
  RETURN_IF_ERROR(AllGatherShards(optimizer.plan(), local, all, ranks));
  return Digest(all);
}

// Saves as `how` says:
//   leave       does not save
//   save        saves and waits
//   background  makes one more update before the checkpoint is complete
//   full        as `background`, but writes of rank 1 fail as on a full disk
absl::Status SaveAs(const std::string& how, const TrainingState& state, const Policy& policy,
                    AdamW* optimizer, CheckpointStore* store, ProcessGroup* ranks) {
  if (how == "leave") return absl::OkStatus();
  if (how == "save") return store->Save(state, policy, *optimizer);
  if (how == "full" && ranks->rank() == 1) {
    std::signal(SIGXFSZ, SIG_IGN);  // write() then fails, as on a full disk
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  RETURN_IF_ERROR(store->Begin(state, policy, *optimizer));
  Gradients gradients(*policy.weights);
  FillGradients(optimizer->updates(), *ranks, &gradients);
  RETURN_IF_ERROR(optimizer->Step(0.01, &gradients).status());
  RETURN_IF_ERROR(store->Poll());
  return store->Finish();
}

// Calls OnGradientsReady as a backward pass does, from the end, at offsets that are not bucket
// boundaries; with ZeRO-1 not in every update.
void FinishReduce(const Gradients& gradients, AdamW* optimizer) {
  const bool all = optimizer->sharded();
  if (!all && optimizer->updates() % 2 == 1) return;
  const int64_t size = optimizer->plan().flat_size();
  for (int64_t from = size; from > (all ? 0 : size / 3); from -= 1000) {
    optimizer->OnGradientsReady(from, gradients);
  }
  if (all) optimizer->OnGradientsReady(0, gradients);
}

absl::Status Run(const std::string& folder, FloatType dtype, int zero_stage, int64_t updates,
                 const std::string& save, ProcessGroup* ranks) {
  const std::string model = absl::StrCat(folder, "/model_", ranks->size(), "_", ranks->rank());
  LoadTinyPolicy(model);
  PolicyConfig policy_config = TinyPolicyConfig(model);
  policy_config.set_train_dtype(dtype);
  ASSIGN_OR_RETURN(Policy policy, LoadPolicy(policy_config, {.threads = 1}));
  OptimizerConfig config;
  config.set_weight_decay(0.1);
  config.set_zero_stage(zero_stage);
  config.set_clip_norm(0);  // the rounding of the norm depends on the number of ranks
  AdamW optimizer(config, policy.weights, ranks, /*bucket_elements=*/64 * 50);
  CheckpointStore store(absl::StrCat(folder, "/checkpoints"), 5, ranks);
  TrainingState state;
  state.program = "sft";
  std::vector<std::string> warnings;
  ASSIGN_OR_RETURN(const auto found, store.LoadNewest(state, &policy, &optimizer, &warnings));
  if (found.has_value()) state = *found;
  Gradients gradients(*policy.weights);
  for (int64_t i = 0; i < updates; ++i) {
    FillGradients(optimizer.updates(), *ranks, &gradients);
    FinishReduce(gradients, &optimizer);
    RETURN_IF_ERROR(optimizer.Step(0.01, &gradients).status());
    ++state.step;
  }
  RETURN_IF_ERROR(SaveAs(save, state, policy, &optimizer, &store, ranks));
  ASSIGN_OR_RETURN(const std::string m, DigestOfAll(optimizer, optimizer.first_moment(), ranks));
  ASSIGN_OR_RETURN(const std::string v, DigestOfAll(optimizer, optimizer.second_moment(), ranks));
  ASSIGN_OR_RETURN(const std::string w, DigestOfAll(optimizer, optimizer.master(), ranks));
  if (ranks->is_root()) {
    std::printf("step %lld weights %s master %s moments %s %s\n",
                static_cast<long long>(state.step), Digest(policy.weights->flat()).c_str(),
                w.c_str(), m.c_str(), v.c_str());
  }
  return absl::OkStatus();
}

// FOLDER fp32|bf16|fp32_zero2|bf16_zero2 UPDATES leave|save|background|full
int Main(int argc, char** argv) {
  int64_t updates = 0;
  if (argc != 5 || !absl::SimpleAtoi(argv[3], &updates)) return 2;
  auto ranks = ProcessGroup::Join(absl::Seconds(60));
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  const std::string type = argv[2];
  const FloatType dtype = type.substr(0, 4) == "bf16" ? BFLOAT16 : FLOAT32;
  const int zero_stage = type.size() > 4 ? 2 : 1;
  return ExitCodeFor(Run(argv[1], dtype, zero_stage, updates, argv[4], ranks->get()), ranks->get());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return tritonrl::Main(argc, argv); }
