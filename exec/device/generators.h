// The candidate's random generators. They draw what torch's generators of the
// device draw.
#ifndef TRITONRL_EXEC_DEVICE_GENERATORS_H_
#define TRITONRL_EXEC_DEVICE_GENERATORS_H_

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl::device {

// Number 0 is the default generator; the others are those of torch.Generator.
class Generators {
 public:
  explicit Generators(int64_t max_generators, at::Device device = at::kCPU);

  // ResourceExhausted: the candidate has too many.
  absl::StatusOr<int64_t> Create();
  // InvalidArgument "the candidate's process sent ...": there is no such generator.
  absl::Status Check(int64_t number) const;
  void Seed(int64_t number, uint64_t seed);
  const at::Generator& Get(int64_t number) const { return generators_[number]; }
  const std::vector<at::Generator>& all() const { return generators_; }

  // Copies of all of them, and the way back; generators that were made since stay.
  std::vector<at::Generator> Save() const;
  void Restore(const std::vector<at::Generator>& saved);

  // Runs f while torch's own default generator has the state of generator 0, for operators that
  // take no generator. That generator belongs to the process: only one session may run in it.
  void WithDefault(const std::function<void()>& f);

 private:
  at::Generator Make() const;

  int64_t max_generators_;
  at::Device device_;
  std::vector<at::Generator> generators_;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_GENERATORS_H_
