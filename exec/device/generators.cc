#include "exec/device/generators.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>

#include "exec/device/json.h"

namespace tritonrl::device {

Generators::Generators(int64_t max_generators, at::Device device)
    : max_generators_(max_generators), device_(device) {
  generators_.push_back(Make());
}

at::Generator Generators::Make() const {
  if (device_.is_cpu()) return at::detail::createCPUGenerator();
  return at::globalContext()
      .getAcceleratorHooksInterface(device_.type())
      .getNewGenerator(device_.index());
}

absl::StatusOr<int64_t> Generators::Create() {
  if (generators_.size() > static_cast<size_t>(max_generators_)) {
    return absl::ResourceExhaustedError("there are too many generators");
  }
  generators_.push_back(Make());
  return static_cast<int64_t>(generators_.size()) - 1;
}

absl::Status Generators::Check(int64_t number) const {
  if (number >= 0 && number < static_cast<int64_t>(generators_.size())) return absl::OkStatus();
  return Hostile("a generator that does not exist");
}

void Generators::Seed(int64_t number, uint64_t seed) { generators_[number].set_current_seed(seed); }

std::vector<at::Generator> Generators::Save() const {
  std::vector<at::Generator> saved;
  for (const at::Generator& generator : generators_) saved.push_back(generator.clone());
  return saved;
}

void Generators::Restore(const std::vector<at::Generator>& saved) {
  for (size_t i = 0; i < saved.size() && i < generators_.size(); ++i) {
    generators_[i] = saved[i].clone();
  }
}

void Generators::WithDefault(const std::function<void()>& f) {
  at::Generator shared = at::globalContext().defaultGenerator(device_);
  const at::Tensor before = shared.get_state();
  shared.set_state(generators_[0].get_state());
  f();
  generators_[0].set_state(shared.get_state());
  shared.set_state(before);
}

}  // namespace tritonrl::device
