#include "exec/device/hand_over.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "base/status.h"
#include "exec/device/bytes.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {
namespace {

// Memory that a GPU copies to by itself is slow to make, and torch keeps it.
constexpr int64_t kMaxPinnedBytes = int64_t{64} << 20;
constexpr int64_t kWindowAlignment = 64;

// The contents are there when the device was waited for.
at::Tensor QueueCopyToHost(const at::Tensor& dense) {
  const bool pinned = static_cast<int64_t>(dense.nbytes()) <= kMaxPinnedBytes;
  const auto options = at::TensorOptions().dtype(dense.scalar_type()).pinned_memory(pinned);
  at::Tensor host = at::empty(dense.sizes(), options);
  host.copy_(dense, /*non_blocking=*/true);
  return host;
}

absl::Status CopyTensorsOut(Value& value, Device& device, std::vector<TagCounts>* provenance) {
  if (value.kind == Value::Kind::kTensor) {
    StorageTable& memory = device.memory();
    RETURN_IF_ERROR(memory.Check(value.tensor));
    Value host;
    RETURN_IF_ERROR(CatchTorch([&] {
      if (provenance != nullptr) provenance->push_back(memory.Count(value.tensor));
      const at::Tensor dense = memory.View(value.tensor).resolve_conj().resolve_neg();
      host = Value::Host(memory.device().is_cpu() ? dense.clone(at::MemoryFormat::Contiguous)
                                                  : QueueCopyToHost(dense.contiguous()));
    }));
    value = std::move(host);
    return absl::OkStatus();
  }
  for (Value& item : value.items) RETURN_IF_ERROR(CopyTensorsOut(item, device, provenance));
  return absl::OkStatus();
}

// Copies tensors to the window one behind the other.
class WindowWriter {
 public:
  WindowWriter(Device& device, std::vector<TagCounts>* provenance)
      : device_(device), window_(*device.output_window()), provenance_(provenance) {}

  absl::Status Write(Value& value) {
    for (Value& item : value.items) RETURN_IF_ERROR(Write(item));
    at::Tensor tensor = value.host;
    if (value.kind == Value::Kind::kTensor) {
      RETURN_IF_ERROR(device_.memory().Check(value.tensor));
      RETURN_IF_ERROR(CatchTorch([&] {
        if (provenance_ != nullptr) provenance_->push_back(device_.memory().Count(value.tensor));
        tensor = device_.memory().View(value.tensor);
      }));
    } else if (value.kind != Value::Kind::kHost) {
      return absl::OkStatus();
    }
    return CatchTorch([&] { value = Value::Host(Placed(tensor)); });
  }

 private:
  at::Tensor Placed(const at::Tensor& tensor) {
    const int64_t begin = (end_ + kWindowAlignment - 1) / kWindowAlignment * kWindowAlignment;
    const auto bytes = static_cast<int64_t>(tensor.nbytes());
    const at::TensorOptions options = at::TensorOptions().dtype(tensor.scalar_type());
    if (begin > window_.bytes() || bytes > window_.bytes() - begin) {
      return at::empty(tensor.sizes(), options.device(at::kMeta));
    }
    if (bytes == 0) return at::empty(tensor.sizes(), options);
    end_ = begin + bytes;
    const at::Tensor place = BytesAt(window_.device(), window_.base() + begin, bytes)
                                 .view(tensor.scalar_type())
                                 .view(tensor.sizes());
    return place.copy_(tensor, /*non_blocking=*/false);
  }

  Device& device_;
  Window& window_;
  std::vector<TagCounts>* provenance_;
  int64_t end_ = 0;
};

}  // namespace

absl::StatusOr<Value> CopyOut(const Value& value, Device& device,
                              std::vector<TagCounts>* provenance) {
  Value copy = value;
  RETURN_IF_ERROR(CopyTensorsOut(copy, device, provenance));
  RETURN_IF_ERROR(CatchTorch([&] { WaitFor(device.memory().device()); }));
  return copy;
}

absl::StatusOr<Value> HandOver(const Value& value, Device& device,
                               std::vector<TagCounts>* provenance) {
  if (device.output_window() == nullptr) return CopyOut(value, device, provenance);
  const MappedWindow mapped(device.output_window());
  RETURN_IF_ERROR(mapped.status());
  Value copy = value;
  RETURN_IF_ERROR(WindowWriter(device, provenance).Write(copy));
  RETURN_IF_ERROR(CatchTorch([&] { WaitFor(device.memory().device()); }));
  return copy;
}

}  // namespace tritonrl::device
