#include "exec/candidate/tensor_exchange.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "exec/candidate/window_exchange.h"

namespace tritonrl {
namespace {

// Bytes for the tensors of all leaves, each aligned as the writer does it.
uint64_t RoomFor(const std::vector<Leaf>& leaves) {
  constexpr uint64_t kAlignment = 64;
  uint64_t room = 0;
  for (const Leaf& leaf : leaves) {
    if (leaf.kind == Leaf::Kind::kTensor) room += static_cast<uint64_t>(leaf.bytes()) + kAlignment;
  }
  return room;
}

// Shared memory of the host: the runner reads what the oracle sealed and writes what it hands over
// into memory of its own, which is compared here.
class MemoryExchange : public TensorExchange {
 public:
  MemoryExchange(const ExecRequest& request, const OracleResult& oracle, SharedMemory memory)
      : request_(request), oracle_(oracle), memory_(std::move(memory)) {}

  std::vector<JobFd> fds() const override {
    return {{"visible", oracle_.visible.fd()}, {"memory", memory_.fd()}};
  }
  uint64_t memory_bytes() const override { return memory_.bytes(); }
  absl::Status Provide(int) override { return absl::OkStatus(); }  // all are there

  absl::StatusOr<Comparison> Compare(size_t call, const std::vector<Leaf>& output) override {
    return CompareOutputs({oracle_.outputs[call], oracle_.hidden.view()}, {output, memory_.view()},
                          oracle_.ToleranceOf(request_, call));
  }

  absl::StatusOr<Following> Follow(size_t call, int leaf, const Leaf& got) override {
    const Leaf& first = oracle_.outputs[0][leaf];
    const Leaf& want = oracle_.outputs[call][leaf];
    if (call == 0 || !first.offset.has_value() || !want.offset.has_value()) return Following();
    const char* const hidden = oracle_.hidden.view().data();
    return FollowElements(want, hidden + *first.offset, hidden + *want.offset,
                          memory_.view().data() + *got.offset);
  }

  bool inputs_come_back() const override { return true; }
  bool SameInputs(int trial, const std::vector<Leaf>& inputs) const override {
    return SameTensors({oracle_.inputs[trial], oracle_.visible.view()}, {inputs, memory_.view()});
  }

  absl::Status Keep(const std::vector<Leaf>& output) override {
    kept_.Keep({output, memory_.view()});
    return absl::OkStatus();
  }
  absl::StatusOr<bool> IsSameAsKept(const std::vector<Leaf>& output) override {
    return kept_.IsSame({output, memory_.view()});
  }

  absl::StatusOr<std::string> AskTimer(const std::string&) override {
    return absl::UnimplementedError("times are modelled here");
  }

 private:
  const ExecRequest& request_;
  const OracleResult& oracle_;
  SharedMemory memory_;
  KeptOutput kept_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorExchange>> OpenExchange(const ExecRequest& request,
                                                             const OracleResult& oracle,
                                                             absl::Duration call_limit,
                                                             absl::Time deadline,
                                                             WaitedTime* queued) {
  if (oracle.host != nullptr) return OpenWindows(request, oracle, call_limit, deadline, queued);
  uint64_t outputs = 0, inputs = 0;
  for (const auto& leaves : oracle.outputs) outputs = std::max(outputs, RoomFor(leaves));
  for (const auto& leaves : oracle.inputs) inputs = std::max(inputs, RoomFor(leaves));
  ASSIGN_OR_RETURN(SharedMemory memory, SharedMemory::Create("memory", outputs + inputs));
  RETURN_IF_ERROR(memory.Map(memory.bytes()).status());
  return std::make_unique<MemoryExchange>(request, oracle, std::move(memory));
}

}  // namespace tritonrl
