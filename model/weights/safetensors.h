// Reader and writer of `*.safetensors`: 8 bytes of header length, a JSON header with each tensor's
// type, shape and byte range, then the data. Format: huggingface/safetensors README.

#ifndef TRITONRL_MODEL_WEIGHTS_SAFETENSORS_H_
#define TRITONRL_MODEL_WEIGHTS_SAFETENSORS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl {

struct SafetensorsEntry {
  std::string path;  // of the file
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  int64_t begin = 0;  // bytes from the start of the file
  int64_t size = 0;   // bytes
};

// Reads `count` elements of a tensor, in row-major order from element `begin` on, into `to`. The
// elements keep their stored type.
absl::Status ReadElements(const SafetensorsEntry& entry, int64_t begin, int64_t count, void* to);
// Reads `runs` runs of `count` elements each, whose starts are `stride` elements apart, and stores
// them contiguously at `to`.
absl::Status ReadStrided(const SafetensorsEntry& entry, int64_t begin, int64_t count, int64_t runs,
                         int64_t stride, void* to);

// Whether two tensors have the same type, shape and bytes. Reads both, up to the first difference.
absl::StatusOr<bool> SameElements(const SafetensorsEntry& a, const SafetensorsEntry& b);

// Index by name of the tensors of one file or of all shards of a folder. It holds no tensor data
// and no open file.
class SafetensorsReader {
 public:
  // Reads the header and checks that the file has all the bytes that the header lists. DataLoss
  // names the file and, for an invalid entry, the tensor. FailedPrecondition for a Git LFS pointer.
  static absl::StatusOr<SafetensorsReader> OpenFile(const std::string& path);
  // Opens `dir`/model.safetensors, or else the shards that `dir`/model.safetensors.index.json
  // lists. If `dir` has neither, the error says what it holds instead (NoWeightsError). DataLoss
  // names a shard that is missing, or that the index places outside the folder.
  static absl::StatusOr<SafetensorsReader> OpenFolder(const std::string& dir);

  const std::map<std::string, SafetensorsEntry>& entries() const { return entries_; }

  // Reads one tensor to the CPU in its stored type. NotFound for an unknown name.
  absl::StatusOr<at::Tensor> Read(const std::string& name) const;

 private:
  std::string where_;  // file or folder, for messages
  std::map<std::string, SafetensorsEntry> entries_;
};

// Writes the tensors (any device; float, double, half, bfloat16, integer types) to one file in the
// given order. Replaces the file atomically; a failed write leaves the old file unchanged.
absl::Status WriteSafetensors(const std::string& path,
                              const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                              const std::map<std::string, std::string>& metadata = {
                                  {"format", "pt"}});

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHTS_SAFETENSORS_H_
