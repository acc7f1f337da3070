#include "exec/device/bytes.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <string.h>

#include <algorithm>

namespace tritonrl::device {
namespace {

constexpr int64_t kCountedAtOnce = int64_t{1} << 29;  // as a comparison takes as much memory again

// Tags are few, and mostly all the same.
void CountPart(const at::Tensor& bytes, std::array<int64_t, 256>& counts) {
  const auto [least, most] = at::aminmax(bytes);
  const auto first = static_cast<size_t>(least.item<uint8_t>());
  const auto last = static_cast<size_t>(most.item<uint8_t>());
  int64_t left = bytes.numel();
  for (size_t value = first; value < last && left > 0; ++value) {
    const auto found = bytes.eq(static_cast<int64_t>(value)).sum().item<int64_t>();
    counts[value] += found;
    left -= found;
  }
  counts[last] += left;
}

}  // namespace

at::Tensor BytesAt(at::Device device, void* data, int64_t count) {
  return at::for_blob(data, {count})
      .options(at::TensorOptions().dtype(at::kByte).device(device))
      .target_device(device)
      .make_tensor();
}

void FillBytes(at::Device device, void* data, uint8_t value, int64_t count) {
  if (count == 0) return;
  if (device.is_cpu()) {
    memset(data, value, static_cast<size_t>(count));
  } else {
    BytesAt(device, data, count).fill_(value);
  }
}

void CopyFromHost(at::Device device, void* data, const void* host, int64_t count) {
  if (count == 0) return;
  if (device.is_cpu()) {
    memcpy(data, host, static_cast<size_t>(count));
  } else {
    BytesAt(device, data, count).copy_(BytesAt(at::kCPU, const_cast<void*>(host), count), true);
  }
}

at::Tensor KeepBytes(at::Device device, void* data, int64_t count) {
  return device.is_cpu() ? at::Tensor() : BytesAt(device, data, count).clone();
}

bool EqualsHost(at::Device device, void* data, const void* host, int64_t count) {
  if (count == 0) return true;
  if (device.is_cpu()) return memcmp(data, host, static_cast<size_t>(count)) == 0;
  const at::Tensor wanted = BytesAt(at::kCPU, const_cast<void*>(host), count).to(device);
  return at::equal(BytesAt(device, data, count), wanted);
}

at::Tensor BytesOnHost(at::Device device, void* data, int64_t count) {
  const at::Tensor bytes = BytesAt(device, data, count);
  return device.is_cpu() ? bytes : bytes.cpu();
}

bool HasByte(at::Device device, void* data, uint8_t value, int64_t count) {
  if (count == 0) return false;
  if (device.is_cpu()) return memchr(data, value, static_cast<size_t>(count)) != nullptr;
  return BytesAt(device, data, count).eq(value).any().item<bool>();
}

std::array<int64_t, 256> CountBytes(at::Device device, void* data, int64_t count) {
  std::array<int64_t, 256> counts = {};
  if (count == 0) return counts;
  if (device.is_cpu()) {
    const auto* const bytes = static_cast<const uint8_t*>(data);
    for (int64_t i = 0; i < count; ++i) ++counts[bytes[i]];
    return counts;
  }
  for (int64_t begin = 0; begin < count; begin += kCountedAtOnce) {
    CountPart(
        BytesAt(device, static_cast<char*>(data) + begin, std::min(kCountedAtOnce, count - begin)),
        counts);
  }
  return counts;
}

bool ReplaceByte(at::Device device, void* data, uint8_t from, uint8_t to, int64_t count) {
  if (count == 0) return false;
  if (device.is_cpu()) {
    bool found = false;
    auto* const bytes = static_cast<uint8_t*>(data);
    for (int64_t i = 0; i < count; ++i) {
      if (bytes[i] != from) continue;
      bytes[i] = to;
      found = true;
    }
    return found;
  }
  at::Tensor bytes = BytesAt(device, data, count);
  const at::Tensor found = bytes.eq(from);
  bytes.masked_fill_(found, to);
  return found.any().item<bool>();
}

void ReplaceOthers(at::Device device, void* data, uint8_t from, uint8_t to, int64_t count) {
  if (count == 0) return;
  if (device.is_cpu()) {
    auto* const bytes = static_cast<uint8_t*>(data);
    for (int64_t i = 0; i < count; ++i) {
      if (bytes[i] != from) bytes[i] = to;
    }
    return;
  }
  at::Tensor bytes = BytesAt(device, data, count);
  bytes.masked_fill_(bytes.ne(from), to);
}

double MillisecondsOf(at::Device gpu, const std::function<absl::Status()>& f) {
  const c10::impl::VirtualGuardImpl guard(gpu.type());
  const c10::Stream stream = guard.getStream(gpu);
  c10::Event begin(gpu.type(), c10::EventFlag::BACKEND_DEFAULT);
  c10::Event end(gpu.type(), c10::EventFlag::BACKEND_DEFAULT);
  begin.record(stream);
  const absl::Status status = f();
  end.record(stream);
  guard.synchronizeStream(stream);
  TORCH_CHECK(status.ok(), status.message());
  return begin.elapsedTime(end);
}

void WaitFor(at::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeStream(guard.getStream(device));
}

}  // namespace tritonrl::device
