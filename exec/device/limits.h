// Bounds on what one candidate may ask of the executor.
#ifndef TRITONRL_EXEC_DEVICE_LIMITS_H_
#define TRITONRL_EXEC_DEVICE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace tritonrl::device {

// Of one message. Every parser of this folder relies on them.
inline constexpr size_t kMaxHeaderBytes = 8 << 20;
inline constexpr size_t kMaxPayloadBytes = size_t{1} << 30;
inline constexpr int kMaxJsonDepth = 64;
inline constexpr int64_t kMaxJsonNodes = 1'000'000;
inline constexpr int kMaxRank = 64;
inline constexpr size_t kMaxListItems = 65'536;
inline constexpr size_t kMaxErrorText = 2'000;

struct SessionLimits {
  int64_t max_init_commands = 20'000;
  int64_t max_forward_commands = 2'000;  // of one call, replayed graphs included
  int64_t max_bench_commands = 20'000;   // between bench begin and end, of the whole session
  int64_t max_kernels = 256;
  int64_t max_graphs = 64;
  int64_t max_generators = 64;
  int64_t max_ttir_bytes = 4 << 20;
  int64_t max_programs = int64_t{1} << 31;  // of one grid
  int64_t max_shared_bytes = 101'376;       // of a block: the device's
  int64_t max_threads = 1'024;              // likewise
  int64_t max_memory_bytes = int64_t{16} << 30;
  // Each storage takes two mappings of its own, and Linux allows 65,530.
  int64_t max_live_storages = 24'576;
  int64_t max_storages = 200'000;  // ever made
  // Of one call's result on the host: an expanded tensor has more elements than memory.
  int64_t max_output_bytes = int64_t{4} << 30;
  int64_t max_init_read_bytes = 1 << 20;
  int64_t max_read_elements = 16;          // of one read in forward
  int64_t max_read_elements_of_call = 64;  // of all reads of one call
  int64_t max_init_upload_bytes = int64_t{1} << 30;
  int64_t max_upload_bytes_of_call = 4'096;  // from the candidate's host memory
  // Values in the arguments of all recorded commands: each takes some 300 bytes.
  int64_t max_recorded_values = 1'000'000;
  // Operators that compute may touch so many elements, inputs and results together.
  int64_t max_small_elements = 16;
  int64_t max_small_elements_of_call = 64;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_LIMITS_H_
