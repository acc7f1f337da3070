#include "exec/candidate/tensor_exchange.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "exec/candidate/call_judge.h"
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

// Shared CPU memory: the runner reads inputs that the reference runner sealed, and writes outputs
// into memory of its own. The supervisor compares them here.
class MemoryExchange : public TensorExchange {
 public:
  MemoryExchange(const ExecRequest& request, const ReferenceResult& reference_result,
                 SharedMemory memory)
      : reference_result_(reference_result),
        memory_(std::move(memory)),
        access_(AccessInMemory(request, reference_result, [this] { return memory_.view(); })) {}

  std::vector<JobFd> fds() const override {
    return {{"visible", reference_result_.visible.fd()}, {"memory", memory_.fd()}};
  }
  uint64_t memory_bytes() const override { return memory_.bytes(); }
  absl::Status Provide(int) override { return absl::OkStatus(); }  // all are there

  absl::StatusOr<Comparison> Compare(size_t call, const std::vector<Leaf>& output) override {
    return access_.compare(call, output);
  }

  absl::StatusOr<InputSensitivity> Follow(size_t call, int leaf, const Leaf& got) override {
    return access_.follow(call, leaf, got);
  }

  bool inputs_come_back() const override { return true; }
  bool SameInputs(int trial, const std::vector<Leaf>& inputs) const override {
    return SameTensors({reference_result_.inputs[trial], reference_result_.visible.view()},
                       {inputs, memory_.view()});
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
  const ReferenceResult& reference_result_;
  SharedMemory memory_;
  const OutputAccess access_;
  SavedOutput kept_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorExchange>> OpenExchange(
    const ExecRequest& request, const ReferenceResult& reference_result, absl::Duration call_limit,
    absl::Time deadline, WaitedTime* queued) {
  if (!reference_result.has_memory())
    return OpenWindows(request, reference_result, call_limit, deadline, queued);
  uint64_t outputs = 0, inputs = 0;
  for (const auto& leaves : reference_result.outputs) outputs = std::max(outputs, RoomFor(leaves));
  for (const auto& leaves : reference_result.inputs) inputs = std::max(inputs, RoomFor(leaves));
  ASSIGN_OR_RETURN(SharedMemory memory, SharedMemory::Create("memory", outputs + inputs));
  RETURN_IF_ERROR(memory.Map(memory.bytes()).status());
  return std::make_unique<MemoryExchange>(request, reference_result, std::move(memory));
}

}  // namespace tritonrl
