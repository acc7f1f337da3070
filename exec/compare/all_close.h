// Vectorised all-close test of a block of elements: the fast path of a comparison.
#ifndef TRITONRL_EXEC_COMPARE_ALL_CLOSE_H_
#define TRITONRL_EXEC_COMPARE_ALL_CLOSE_H_

#include <cstdint>

#include "exec/compare/tensor_layout.h"

namespace tritonrl {

constexpr int kAllCloseBlock = 1024;  // elements

// Whether each of the kAllCloseBlock elements of `got` is finite and |got - want| <= atol + rtol *
// |want|, in double precision; `largest` is raised to the largest |got - want|. Always false for
// types other than float32, float64, float16 and bfloat16. False does not say that one is wrong:
// infinities and NaN are left to who looks closer. Vectorised; needs no alignment. Memory that
// changes meanwhile is read once.
bool BlockAllClose(DType type, const char* want, const char* got, double atol, double rtol,
                   double* largest);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_COMPARE_ALL_CLOSE_H_
