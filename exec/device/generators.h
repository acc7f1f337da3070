// The candidate's random generators. They draw what torch's generators draw on the CPU.
#ifndef TRITONRL_EXEC_DEVICE_GENERATORS_H_
#define TRITONRL_EXEC_DEVICE_GENERATORS_H_

#include <ATen/core/Generator.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl::device {

// Number 0 is the default generator; the others are those of torch.Generator.
class Generators {
 public:
  explicit Generators(int64_t max_generators);

  // ResourceExhausted: the candidate has too many.
  absl::StatusOr<int64_t> Create();
  // InvalidArgument "the candidate's process sent ...": there is no such generator.
  absl::Status Check(int64_t number) const;
  void Seed(int64_t number, uint64_t seed);
  const at::Generator& Get(int64_t number) const { return generators_[number]; }

  // Copies of all of them, and the way back; generators that were made since stay.
  std::vector<at::Generator> Save() const;
  void Restore(const std::vector<at::Generator>& saved);

  // Runs f while torch's own default generator has the state of generator 0, for operators that
  // take no generator. That generator belongs to the process: only one session may run in it.
  void WithDefault(const std::function<void()>& f);

 private:
  int64_t max_generators_;
  std::vector<at::Generator> generators_;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_GENERATORS_H_
