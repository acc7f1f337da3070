// Work on plain bytes of a device's memory: on the CPU by the C library, elsewhere by torch.
//
// Elsewhere, functions that return something wait for it. They throw c10::Error if the device
// fails.
#ifndef TRITONRL_EXEC_DEVICE_BYTES_H_
#define TRITONRL_EXEC_DEVICE_BYTES_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace tritonrl::device {

// The bytes as a tensor of uint8, which does not own them.
at::Tensor BytesAt(at::Device device, void* data, int64_t count);

void FillBytes(at::Device device, void* data, uint8_t value, int64_t count);
// From memory of the CPU.
void CopyFromHost(at::Device device, void* data, const void* host, int64_t count);
// A copy of the bytes on the device, with which at::equal compares them faster than with the CPU's;
// undefined on the CPU.
at::Tensor KeepBytes(at::Device device, void* data, int64_t count);
// Whether the bytes are those of memory of the CPU.
bool EqualsHost(at::Device device, void* data, const void* host, int64_t count);
// The bytes in memory of the CPU: a copy, unless they are there.
at::Tensor BytesOnHost(at::Device device, void* data, int64_t count);

bool HasByte(at::Device device, void* data, uint8_t value, int64_t count);
// How often each value occurs.
std::array<int64_t, 256> CountBytes(at::Device device, void* data, int64_t count);
// Puts `to` where `from` stands. Returns whether there was one.
bool ReplaceByte(at::Device device, void* data, uint8_t from, uint8_t to, int64_t count);
// Puts `to` where anything but `from` stands.
void ReplaceOthers(at::Device device, void* data, uint8_t from, uint8_t to, int64_t count);

// Milliseconds on the GPU of what f queues on the current stream. Waits for it.
double MillisecondsOf(at::Device gpu, const std::function<absl::Status()>& f);

// Waits for all that was queued on the current stream; nothing to do on the CPU.
void WaitFor(at::Device device);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_BYTES_H_
