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

Json Common(const JobContext& context, const char* role) {
  const ExecRequest& request = context.request;
  return Json{
      {"role", role},
      {"task_id", request.task_id()},
      {"weights_seed", context.seeds.weights},
      {"forward_seeds", context.seeds.forward},
      {"device", context.device},
      {"device_model", request.device_model().empty() ? "l40s" : request.device_model()},
      {"time_limit_s", context.time_limit_seconds},
      {"measure_time", !request.skip_timing()},
  };
}

// Sources come from a language model: bytes that are not UTF-8 become a replacement character.
std::string Text(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

// `object` with one more member. `value` is inserted as text: it can be large, and it was already
// parsed once.
std::string WithMember(const Json& object, const char* name, const std::string& value) {
  std::string text = Text(object);
  text.pop_back();
  return absl::StrCat(text, ",\"", name, "\":", value, "}");
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
  Json job = Common(context, "oracle");
  if (context.request.rules() == RULES_ROBUST) {
    job["mode"] = "robust";
    job["variant_seeds"] = context.seeds.variants;
  }
  if (context.request.probe_task()) job["probes"] = true;
  job["reference_source"] = context.request.reference_source();
  job["input_seeds"] = context.seeds.inputs;
  job["calls"] = CallsOf(TrialsOf(context.request));
  if (context.reference_processes != nullptr) job["host"] = true;
  if (context.host_memory_bytes > 0) job["own_memory"] = context.host_memory_bytes;
  if (context.has_all_memory) job["has_all_memory"] = true;
  if (context.keep_bytes > 0) job["keep_bytes"] = context.keep_bytes;
  return Text(job);
}

std::string RunnerJobJson(const JobContext& context, const std::string& visible, int trials,
                          uint64_t in_bytes, uint64_t out_bytes) {
  Json job = Common(context, "runner");
  std::vector<uint64_t> seeds = context.seeds.forward;
  if (seeds.size() > static_cast<size_t>(trials)) seeds.resize(trials);
  job["forward_seeds"] = seeds;
  job["candidate_source"] = context.request.candidate_source();
  job["calls"] = CallsOf(trials);
  if (context.request.rules() == RULES_PAPER) job["copy_parameters"] = false;
  if (context.reference_processes != nullptr) {
    job["windows"] = true;
    job["in_bytes"] = in_bytes;
    job["out_bytes"] = out_bytes;
  }
  return WithMember(job, "visible", visible);
}

}  // namespace tritonrl
