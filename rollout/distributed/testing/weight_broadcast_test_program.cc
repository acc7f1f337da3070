// weight_broadcast_test starts this program under mpirun, with the case's name as its argument. On
// a machine with two or more GPUs a person can start it from an archive of tools/bundle.sh, with
// the prefix "gpu_":
//   mpirun -n 2 ./run weight_broadcast_test_program gpu_update
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "parallel/process_group.h"
#include "rollout/distributed/weight_broadcast.h"
#include "rollout/factory/make_engine.h"
#include "rollout/testing/fake_engine.h"

namespace tritonrl {
namespace {

constexpr int64_t kBucket = 64 * 50;  // elements, so that even this model takes several buckets

absl::Status Expect(bool holds, const std::string& what) {
  return holds ? absl::OkStatus() : absl::InternalError("wrong: " + what);
}

// Checks that `found` has the code, and its message contains the text.
absl::Status ExpectError(const absl::Status& found, absl::StatusCode code,
                         const std::string& text) {
  return Expect(found.code() == code && absl::StrContains(found.message(), text),
                absl::StrCat("\"", text, "\" expected, found ", found.ToString()));
}

struct Setting {
  ProcessGroup* ranks = nullptr;
  at::Device device = at::Device(at::kCPU);
  bool sends() const { return ranks->is_root(); }
};

ModelConfig SmallConfig() {
  ModelConfig config;
  config.hidden_size = 32;
  config.num_layers = 2;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 16;
  config.intermediate_size = 48;
  config.vocab_size = 96;
  config.max_positions = 128;
  return config;
}

// Different weights on each rank, scaled so that the next token depends strongly on the text.
std::shared_ptr<Weights> RanksOwnWeights(const Setting& setting,
                                         const ModelConfig& config = SmallConfig()) {
  const at::ScalarType type = setting.device.is_cuda() ? at::kBFloat16 : at::kFloat;
  auto weights = Weights::RandomInit(config, setting.ranks->rank(), setting.device, type);
  for (const ParameterInfo& parameter : weights->layout().parameters) {
    if (parameter.decay()) at::Tensor(weights->Get(parameter.name)).mul_(12.0);
  }
  return weights;
}

// Generates samples of a few prompts; returns their versions, tokens and log-probabilities' bits as
// text.
absl::StatusOr<std::string> Samples(Engine* engine) {
  for (uint64_t id = 0; id < 3; ++id) {
    GenerateRequest request;
    request.id = id;
    for (uint64_t i = 0; i < 4 + 9 * id; ++i) {
      request.prompt.push_back(static_cast<int32_t>((id * 31 + i * 7) % 96));
    }
    request.n = 3;
    request.sampling.max_tokens = 30;
    request.key = {.run_seed = 1, .step = 2, .task = id};
    RETURN_IF_ERROR(engine->Submit(std::move(request)));
  }
  std::vector<std::string> texts(9);
  while (engine->Outstanding() > 0) {
    ASSIGN_OR_RETURN(const Sample sample, engine->Next(absl::Now() + absl::Seconds(60)));
    std::string& text = texts[sample.request_id * 3 + sample.index];
    for (const WeightVersionSpan& run : sample.versions)
      absl::StrAppend(&text, "version ", run.version);
    for (size_t t = 0; t < sample.tokens.size(); ++t) {
      uint32_t bits = 0;
      std::memcpy(&bits, &sample.log_probs[t], sizeof(bits));
      absl::StrAppend(&text, " ", sample.tokens[t], ":", absl::Hex(bits));
    }
  }
  std::string all;
  for (const std::string& text : texts) absl::StrAppend(&all, text, "\n");
  return all;
}

struct Parts {
  std::shared_ptr<Weights> weights;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<WeightBroadcast> broadcast;
};

// All ranks generate; `same`: the samples must equal the sender's, else they must differ. On a GPU
// in bf16 samples depend on the batch, so there the weights are compared.
absl::Status CompareSamples(const Parts& parts, bool same, ProcessGroup* ranks) {
  ASSIGN_OR_RETURN(std::string mine, Samples(parts.engine.get()));
  if (parts.weights->device().is_cuda()) {
    mine = EncodeArrival(
        0, BucketChecksums(parts.weights->flat(), {{0, parts.weights->layout().flat_size}}));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> all, ranks->AllGather(mine));
  for (int rank = 1; rank < ranks->size(); ++rank) {
    RETURN_IF_ERROR(Expect((all[rank] == all[0]) == same,
                           absl::StrCat("samples of rank ", rank, ":\n", all[rank], all[0])));
  }
  return absl::OkStatus();
}

absl::StatusOr<Parts> MakeParts(const Setting& setting) {
  Parts parts;
  parts.weights = RanksOwnWeights(setting);
  ASSIGN_OR_RETURN(parts.engine, MakeBatchedEngine(parts.weights, {}, {.cpu_threads = 1}));
  ASSIGN_OR_RETURN(parts.broadcast, WeightBroadcast::Join(parts.weights, setting.ranks, kBucket));
  return parts;
}

// Sends an update while the sender's engine, which shares the weights, is in an update too.
absl::Status SendFromEngine(uint64_t version,
                            const std::optional<std::vector<std::string>>& changed, Parts* parts) {
  RETURN_IF_ERROR(parts->engine->BeginWeightUpdate());
  RETURN_IF_ERROR(parts->broadcast->Send(version, changed));
  parts->engine->EndWeightUpdate(version);
  return absl::OkStatus();
}

absl::Status Update(const Setting& setting) {
  ASSIGN_OR_RETURN(Parts parts, MakeParts(setting));
  RETURN_IF_ERROR(CompareSamples(parts, false, setting.ranks));
  const std::vector<std::string> some = {"model.layers.1.mlp.up_proj.weight", "model.norm.weight"};
  const std::vector<std::optional<std::vector<std::string>>> updates = {std::nullopt, some,
                                                                        std::vector<std::string>()};
  for (size_t i = 0; i < updates.size(); ++i) {
    if (setting.sends()) {
      if (i == 1) {
        for (const std::string& name : some) at::Tensor(parts.weights->Get(name)).mul_(-0.5);
      }
      RETURN_IF_ERROR(SendFromEngine(7 + i, updates[i], &parts));
    } else {
      ASSIGN_OR_RETURN(const uint64_t version, parts.broadcast->Receive(parts.engine.get()));
      RETURN_IF_ERROR(Expect(version == 7 + i, "the version"));
    }
    const at::Tensor& flat = parts.weights->flat();
    const int64_t elements = i == 0 ? flat.numel() : i == 1 ? 48 * 32 + 64 : 0;
    RETURN_IF_ERROR(Expect(
        parts.broadcast->times().bytes == elements * static_cast<int64_t>(flat.element_size()),
        "bytes that travelled"));
    RETURN_IF_ERROR(CompareSamples(parts, true, setting.ranks));
  }
  return absl::OkStatus();
}

absl::Status Shapes(const Setting& setting) {
  ModelConfig config = SmallConfig();
  if (setting.ranks->rank() == setting.ranks->size() - 1) config.intermediate_size = 64;
  const auto joined =
      WeightBroadcast::Join(RanksOwnWeights(setting, config), setting.ranks, kBucket);
  return ExpectError(joined.status(), absl::StatusCode::kInvalidArgument,
                     "[64, 32] where rank 0 has model.layers.0.mlp.gate_proj.weight");
}

// An engine that refuses its first update.
class BusyEngine : public FakeEngine {
 public:
  BusyEngine() : FakeEngine([](const GenerateRequest&, int) { return std::vector<int32_t>{1}; }) {}
  absl::Status BeginWeightUpdate() override {
    if (std::exchange(busy_, false)) return absl::FailedPreconditionError("3 samples are made");
    return FakeEngine::BeginWeightUpdate();
  }

 private:
  bool busy_ = true;
};

// A rank that is not ready, or that expects another version, stops the update on all ranks before
// anything is written; the next attempt succeeds.
absl::Status NotReady(const Setting& setting) {
  const std::shared_ptr<Weights> weights = RanksOwnWeights(setting);
  const at::Tensor before = weights->flat().clone();
  ASSIGN_OR_RETURN(const auto broadcast, WeightBroadcast::Join(weights, setting.ranks, kBucket));
  const int last = setting.ranks->size() - 1;
  FakeEngine ready([](const GenerateRequest&, int) { return std::vector<int32_t>{1}; });
  BusyEngine busy;
  Engine* engine = setting.ranks->rank() == last ? &busy : &ready;
  const auto attempt = [&](uint64_t version, uint64_t expected) -> absl::Status {
    if (setting.sends()) return broadcast->Send(version);
    return broadcast->Receive(engine, {.expected = expected}).status();
  };
  RETURN_IF_ERROR(ExpectError(attempt(4, 4), absl::StatusCode::kFailedPrecondition,
                              absl::StrCat("rank ", last, ": 3 samples are made")));
  RETURN_IF_ERROR(ExpectError(attempt(4, 5), absl::StatusCode::kFailedPrecondition,
                              "rank 1: weights of version 5 were expected and version 4 was sent"));
  RETURN_IF_ERROR(Expect(weights->flat().equal(before), "weights untouched"));
  GenerateRequest request;
  request.prompt = {1};
  RETURN_IF_ERROR(engine->Submit(request));  // the engine is not in an update
  RETURN_IF_ERROR(engine->Next(absl::InfiniteFuture()).status());
  RETURN_IF_ERROR(attempt(5, 5));
  return Expect(setting.sends() || !weights->flat().equal(before), "weights that have come");
}

// Runs this rank's side of an update without a WeightBroadcast, until the given share of its
// buckets is transferred.
absl::StatusOr<WeightUpdate> TakePart(const Setting& setting, const Weights& weights,
                                      double share) {
  const ParameterLayout& layout = weights.layout();
  std::string text;
  if (setting.sends()) {
    ASSIGN_OR_RETURN(const std::vector<FlatRange> buckets,
                     ChangedBuckets(layout, nullptr, kBucket));
    text = EncodeUpdate({.version = 1, .buckets = buckets});
  }
  RETURN_IF_ERROR(setting.ranks->Broadcast(&text));
  ASSIGN_OR_RETURN(WeightUpdate update, DecodeUpdate(text, layout.flat_size));
  RETURN_IF_ERROR(setting.ranks->AllReduceStatus(absl::OkStatus()));
  const auto count = static_cast<size_t>(share * static_cast<double>(update.buckets.size()));
  for (size_t i = 0; i < count; ++i) {
    const FlatRange& bucket = update.buckets[i];
    RETURN_IF_ERROR(setting.ranks->collectives()->Broadcast(
        weights.flat().narrow(0, bucket.begin, bucket.size()), 0));
  }
  return update;
}

// Acts as a rank that receives other weights than were sent.
absl::Status ReceiveDamaged(const Setting& setting, const Weights& weights) {
  ASSIGN_OR_RETURN(const WeightUpdate update, TakePart(setting, weights, 1));
  RETURN_IF_ERROR(setting.ranks->collectives()->Wait("a damaged update"));
  at::Tensor(weights.flat())[kBucket] = 3.5;
  return setting.ranks
      ->AllGather(EncodeArrival(update.version, BucketChecksums(weights.flat(), update.buckets)))
      .status();
}

// The update fails on all ranks if one rank's weights differ from those sent.
absl::Status Damaged(const Setting& setting) {
  ASSIGN_OR_RETURN(Parts parts, MakeParts(setting));
  const int last = setting.ranks->size() - 1;
  const std::string found = absl::StrCat(
      "elements 3200 to 6400 of the weights differ between rank ", last, " and rank 0");
  if (setting.sends()) {
    RETURN_IF_ERROR(ExpectError(parts.broadcast->Send(1), absl::StatusCode::kDataLoss, found));
  } else if (setting.ranks->rank() == last) {
    RETURN_IF_ERROR(ReceiveDamaged(setting, *parts.weights));
  } else {
    RETURN_IF_ERROR(ExpectError(parts.broadcast->Receive(parts.engine.get()).status(),
                                absl::StatusCode::kDataLoss, found));
    RETURN_IF_ERROR(ExpectError(Samples(parts.engine.get()).status(),
                                absl::StatusCode::kFailedPrecondition, "update"));
  }
  if (setting.sends()) {
    RETURN_IF_ERROR(SendFromEngine(2, std::nullopt, &parts));
  } else {
    RETURN_IF_ERROR(parts.broadcast->Receive(parts.engine.get()).status());
  }
  return CompareSamples(parts, true, setting.ranks);
}

// The sender is lost after half of the buckets.
absl::Status LoseTheSender(const Setting& setting, bool dies) {
  ASSIGN_OR_RETURN(Parts parts, MakeParts(setting));
  if (setting.sends()) {
    RETURN_IF_ERROR(TakePart(setting, *parts.weights, 0.5).status());
    if (dies) raise(SIGKILL);
    sleep(600);
  }
  RETURN_IF_ERROR(parts.broadcast->Receive(parts.engine.get()).status());
  std::printf("survived\n");
  return absl::OkStatus();
}

absl::Status Run(absl::string_view what, ProcessGroup* ranks) {
  Setting setting = {.ranks = ranks};
  if (absl::ConsumePrefix(&what, "gpu_")) {
    setting.device = at::Device(at::kCUDA, static_cast<at::DeviceIndex>(ranks->local_rank()));
    RETURN_IF_ERROR(ranks->InitNcclCollectives(setting.device));
  }
  if (what == "die" || what == "hang") return LoseTheSender(setting, what == "die");
  if (what == "update") {
    RETURN_IF_ERROR(Update(setting));
  } else if (what == "shapes") {
    RETURN_IF_ERROR(Shapes(setting));
  } else if (what == "not_ready") {
    RETURN_IF_ERROR(NotReady(setting));
  } else if (what == "damaged") {
    RETURN_IF_ERROR(Damaged(setting));
  } else {
    return absl::InvalidArgumentError(absl::StrCat("no case \"", what, "\""));
  }
  std::printf("rank %d of %d: %s\n", ranks->rank(), ranks->size(), std::string(what).c_str());
  return ranks->Barrier();
}

int Main(const std::string& what) {
  const bool lost = absl::EndsWith(what, "hang") || absl::EndsWith(what, "die");
  auto ranks = ProcessGroup::Join(lost ? absl::Seconds(2) : absl::Seconds(60));
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  return ExitCodeFor(Run(what, ranks->get()), ranks->get());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return argc == 2 ? tritonrl::Main(argv[1]) : 2; }
