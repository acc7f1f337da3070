// Reading and writing `*.safetensors`: 8 bytes header length, a JSON header with each tensor's
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
  std::string path;  // file
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  int64_t begin = 0;  // bytes from the start of the file
  int64_t size = 0;   // bytes
};

// Reads `count` elements of a tensor from element `begin` on, in row-major order and the type that
// they are stored in, to `to`.
absl::Status ReadElements(const SafetensorsEntry& entry, int64_t begin, int64_t count, void* to);
// Reads `runs` runs of `count` elements each, whose starts are `stride` elements apart, and stores
// them contiguously at `to`.
absl::Status ReadStrided(const SafetensorsEntry& entry, int64_t begin, int64_t count, int64_t runs,
                         int64_t stride, void* to);

// The tensors of one file or of all shards of a folder, by name. Holds no data.
class SafetensorsReader {
 public:
  // Checks the header and that the file has all the bytes it promises. Errors name the file, and
  // the tensor where one is to blame.
  static absl::StatusOr<SafetensorsReader> OpenFile(const std::string& path);
  // `dir`/model.safetensors, or the shards that `dir`/model.safetensors.index.json lists.
  static absl::StatusOr<SafetensorsReader> OpenFolder(const std::string& dir);

  const std::map<std::string, SafetensorsEntry>& entries() const { return entries_; }

  // Reads one tensor to the CPU in the type it is stored in.
  absl::StatusOr<at::Tensor> Read(const std::string& name) const;

 private:
  std::string where_;  // file or folder, for messages
  std::map<std::string, SafetensorsEntry> entries_;
};

// Writes the tensors (any device; float, double, half, bfloat16, int types) to one file, in the
// given order. The file is replaced atomically; on failure the old one is untouched.
absl::Status WriteSafetensors(const std::string& path,
                              const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                              const std::map<std::string, std::string>& metadata = {
                                  {"format", "pt"}});

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHTS_SAFETENSORS_H_
