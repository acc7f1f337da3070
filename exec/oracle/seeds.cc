#include "exec/oracle/seeds.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/hash.h"

namespace tritonrl {
namespace {

uint64_t Derive(uint64_t run_seed, absl::string_view purpose, int trial) {
  return Hash64(absl::StrCat("tritonrl job ", purpose, " ", run_seed, " ", trial)) >> 1;
}

}  // namespace

JobSeeds DeriveSeeds(uint64_t run_seed, int trials, int more) {
  JobSeeds seeds;
  seeds.weights = Derive(run_seed, "weights", 0);
  for (int trial = 0; trial < trials; ++trial) {
    seeds.inputs.push_back(Derive(run_seed, "inputs", trial));
    seeds.forward.push_back(Derive(run_seed, "forward", trial));
  }
  for (int i = 0; i < more; ++i) {
    seeds.variants.push_back(Derive(run_seed, "variants", i));
    seeds.forward.push_back(Derive(run_seed, "forward", trials + i));
  }
  return seeds;
}

}  // namespace tritonrl
