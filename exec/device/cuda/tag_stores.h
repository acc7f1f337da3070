// Triton IR that also says who wrote each byte: behind each store and atomic operation stands a
// store of a tag, a constant distance of bytes away.
#ifndef TRITONRL_EXEC_DEVICE_CUDA_TAG_STORES_H_
#define TRITONRL_EXEC_DEVICE_CUDA_TAG_STORES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/ttir/operation.h"

namespace tritonrl::device {

// Whether the module stores through descriptors, which must be flattened first.
bool StoresThroughDescriptors(const ttir::Module& module);

// `module` is what `text` was parsed to; the result has more lines and parses too. The distance is
// a multiple of 8. Unimplemented: a store that cannot be followed, or a line of several operations.
absl::StatusOr<std::string> TagStores(absl::string_view text, const ttir::Module& module,
                                      uint8_t tag, int64_t distance);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_TAG_STORES_H_
