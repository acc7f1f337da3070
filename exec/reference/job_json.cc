#include "exec/reference/job_json.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

namespace {

class Derivation {
 public:
  Derivation(const SecretKey& key, uint64_t run_seed) : key_(key), run_seed_(run_seed) {}
  uint64_t operator()(absl::string_view purpose, int trial) const {
    return key_.Hash64(absl::StrCat("tritonrl job ", purpose, " ", run_seed_, " ", trial)) >> 1;
  }

 private:
  const SecretKey& key_;
  const uint64_t run_seed_;
};

}  // namespace

JobSeeds DeriveSeeds(const SecretKey& key, uint64_t run_seed, int trials, int more) {
  const Derivation derive(key, run_seed);
  JobSeeds seeds;
  seeds.weights = derive("weights", 0);
  seeds.decoy = derive("decoy", 0);
  for (int trial = 0; trial < trials; ++trial) {
    seeds.inputs.push_back(derive("inputs", trial));
    seeds.forward.push_back(derive("forward", trial));
  }
  for (int i = 0; i < more; ++i) {
    seeds.variants.push_back(derive("variants", i));
    seeds.forward.push_back(derive("forward", trials + i));
  }
  return seeds;
}

namespace {

using Json = nlohmann::json;

// Sources come from a language model: bytes that are not UTF-8 become a replacement character.
std::string Text(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

}  // namespace

int TrialsOf(const ExecRequest& request) { return request.trials() > 0 ? request.trials() : 5; }

std::vector<int> CallsOf(int trials) {
  std::vector<int> calls = {0};
  for (int trial = 0; trial < trials; ++trial) calls.push_back(trial);
  return calls;
}

int MaxVariants(const ExecRequest& request) {
  constexpr int kDerived = 6, kShapes = 8;  // as in variants.py and oracle.py
  return request.rules() == RULES_ROBUST ? kDerived + kShapes : 0;
}

std::string ReferenceJobJson(const JobContext& context) {
  const ExecRequest& request = context.request;
  Json job{
      {"role", "oracle"},
      {"task_id", request.task_id()},
      {"weights_seed", context.seeds.weights},
      {"forward_seeds", context.seeds.forward},
      {"device", context.device},
      {"time_limit_s", context.time_limit_seconds},
      {"measure_time", !request.skip_timing()},
  };
  if (request.rules() == RULES_ROBUST) {
    job["mode"] = "robust";
    job["variant_seeds"] = context.seeds.variants;
  }
  if (request.probe_task()) job["probes"] = true;
  job["reference_source"] = request.reference_source();
  job["input_seeds"] = context.seeds.inputs;
  job["calls"] = CallsOf(TrialsOf(request));
  if (context.reference_processes != nullptr) job["host"] = true;
  if (context.host_memory_bytes > 0) job["own_memory"] = context.host_memory_bytes;
  if (context.has_all_memory) job["has_all_memory"] = true;
  if (context.keep_bytes > 0) job["keep_bytes"] = context.keep_bytes;
  if (context.whole_bytes >= 0) job["whole_bytes"] = context.whole_bytes;
  return Text(job);
}

}  // namespace tritonrl
