// Bounds on an untrusted TTIR text, far above what Triton prints for a kernel.
#ifndef TRITONRL_EXEC_TTIR_LIMITS_H_
#define TRITONRL_EXEC_TTIR_LIMITS_H_

#include <cstddef>

namespace tritonrl::ttir {

inline constexpr size_t kMaxTextBytes = 4 << 20;
inline constexpr int kMaxOperations = 100'000;
inline constexpr int kMaxValues = 400'000;  // of one function
inline constexpr int kMaxFunctions = 4'096;
inline constexpr int kMaxBlocks = 4'096;  // of one region
inline constexpr int kMaxRegionDepth = 64;
inline constexpr int kMaxCallDepth = 64;
inline constexpr int kMaxSyntaxDepth = 64;       // of types, attributes and locations
inline constexpr int kMaxListElements = 16'384;  // of operands, results, attributes
inline constexpr size_t kMaxLocations = 500'000;

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_LIMITS_H_
