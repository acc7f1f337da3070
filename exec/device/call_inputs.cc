#include "exec/device/call_inputs.h"

#include <ATen/ops/equal.h>

#include <algorithm>

#include "base/status.h"
#include "exec/device/bytes.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {
namespace {

constexpr int64_t kScaledAtOnce = int64_t{1} << 24;  // elements

// An input's bytes as they lie in its storage, which is found.
struct InputBytes {
  at::Tensor source;  // keeps the bytes
  Storage* storage = nullptr;
  int64_t count = 0;
};

bool IsInWindow(const at::Tensor& tensor, const Device& device) {
  return device.input_window() != nullptr && tensor.defined() && tensor.numel() > 0 &&
         device.input_window()->Contains(tensor.const_data_ptr());
}

// The source's.
at::Tensor SourceBytes(const InputBytes& bytes, at::Device place) {
  return BytesAt(place, const_cast<void*>(bytes.source.const_data_ptr()), bytes.count);
}

// The bytes as larger elements where that is possible, which are faster to compare.
at::Tensor Words(const at::Tensor& bytes) {
  return bytes.numel() % 8 == 0 ? bytes.view(at::kLong) : bytes;
}

// In parts, as there may be no room for another copy in float64.
void Scale(const InputBytes& bytes, at::ScalarType type, double scale, at::Device place) {
  const at::Tensor elements = BytesAt(place, bytes.storage->data, bytes.count).view(type);
  for (int64_t begin = 0; begin < elements.numel(); begin += kScaledAtOnce) {
    at::Tensor part = elements.narrow(0, begin, std::min(kScaledAtOnce, elements.numel() - begin));
    part.copy_(part.to(at::kDouble).mul_(scale));
  }
}

absl::StatusOr<InputBytes> FindInput(const at::Tensor& from, const TensorRef& to, Device& device) {
  if (from.scalar_type() != to.dtype || from.sizes() != to.shape) {
    return absl::InvalidArgumentError("an input has another shape or type than the recorded one");
  }
  InputBytes bytes;
  bytes.source =
      from.strides() == to.stride ? from : from.contiguous().as_strided(to.shape, to.stride);
  ASSIGN_OR_RETURN(const int64_t span, SpanOf(to));
  if (from.strides() != to.stride && span != from.numel()) {
    return absl::InvalidArgumentError("an input has other strides than the recorded one");
  }
  bytes.storage = device.memory().Find(to.storage);
  bytes.count = span * BytesOf(to.dtype);
  if (bytes.storage == nullptr || bytes.count > bytes.storage->bytes) {
    return absl::InternalError("an input's storage is missing");
  }
  return bytes;
}

}  // namespace

absl::StatusOr<WrittenInput> WriteInput(const at::Tensor& from, const TensorRef& to, Device& device,
                                        double scale) {
  const bool in_window = IsInWindow(from, device);
  const MappedWindow mapped(in_window ? device.input_window() : nullptr);
  RETURN_IF_ERROR(mapped.status());
  ASSIGN_OR_RETURN(const InputBytes bytes, FindInput(from, to, device));
  const at::Device place = device.memory().device();
  WrittenInput written{to, from, at::Tensor()};
  RETURN_IF_ERROR(CatchTorch([&] {
    if (in_window) {
      BytesAt(place, bytes.storage->data, bytes.count).copy_(SourceBytes(bytes, place));
    } else {
      CopyFromHost(place, bytes.storage->data, bytes.source.const_data_ptr(), bytes.count);
    }
    if (scale != 1 && at::isFloatingType(to.dtype)) Scale(bytes, to.dtype, scale, place);
    FillBytes(place, bytes.storage->shadow.get(), static_cast<uint8_t>(Tag::kInput), bytes.count);
    if (!in_window) written.kept = KeepBytes(place, bytes.storage->data, bytes.count);
  }));
  return written;
}

bool HoldsInput(const WrittenInput& input, Device& device) {
  const bool in_window = IsInWindow(input.source, device);
  const MappedWindow mapped(in_window ? device.input_window() : nullptr);
  const absl::StatusOr<InputBytes> bytes = FindInput(input.source, input.place, device);
  if (!bytes.ok() || !mapped.status().ok()) return false;
  const at::Device place = device.memory().device();
  if (in_window) {
    return at::equal(Words(BytesAt(place, bytes->storage->data, bytes->count)),
                     Words(SourceBytes(*bytes, place)));
  }
  if (!input.kept.defined()) {
    return EqualsHost(place, bytes->storage->data, bytes->source.const_data_ptr(), bytes->count);
  }
  return at::equal(BytesAt(place, bytes->storage->data, bytes->count), input.kept);
}

bool HoldInputs(const std::vector<WrittenInput>& inputs, Device& device) {
  const MappedWindow mapped(device.input_window());
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](const WrittenInput& input) { return HoldsInput(input, device); });
}

}  // namespace tritonrl::device
