// Loops that the compiler vectorises: one template per number of operands. A functor has a static
// template `Of` of one element. An operand may be the result's own buffer, which ivdep allows and
// restrict would not.
#ifndef TRITONRL_EXEC_TTIR_RUN_KERNELS_LOOPS_H_
#define TRITONRL_EXEC_TTIR_RUN_KERNELS_LOOPS_H_

#include <cstdint>

#include "exec/ttir/run/kernels/kernels.h"

namespace tritonrl::ttir::TRITONRL_TTIR_SET {
namespace {

template <typename R, typename T, typename F>
void UnaryLoop(void* out, const void* a, int64_t count) {
  R* const r = static_cast<R*>(out);
  const T* const x = static_cast<const T*>(a);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) r[i] = F::Of(x[i]);
}

template <typename R, typename T, typename F, int kForm>
void BinaryLoop(void* out, const void* a, const void* b, int64_t count) {
  R* const r = static_cast<R*>(out);
  const T* const x = static_cast<const T*>(a);
  const T* const y = static_cast<const T*>(b);
  const T x0 = x[0];
  const T y0 = y[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    r[i] =
        F::Of((kForm & kFirstUniform) != 0 ? x0 : x[i], (kForm & kSecondUniform) != 0 ? y0 : y[i]);
  }
}

// X is the type of the first operand, T that of the others.
template <typename X, typename T, typename F, int kForm>
void TernaryLoop(void* out, const void* a, const void* b, const void* c, int64_t count) {
  T* const r = static_cast<T*>(out);
  const X* const x = static_cast<const X*>(a);
  const T* const y = static_cast<const T*>(b);
  const T* const z = static_cast<const T*>(c);
  const X x0 = x[0];
  const T y0 = y[0];
  const T z0 = z[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    r[i] =
        F::Of((kForm & kFirstUniform) != 0 ? x0 : x[i], (kForm & kSecondUniform) != 0 ? y0 : y[i],
              (kForm & kThirdUniform) != 0 ? z0 : z[i]);
  }
}

template <typename R, typename T, typename F>
Binary BinaryOf(int form) {
  switch (form) {
    case 0:
      return BinaryLoop<R, T, F, 0>;
    case kFirstUniform:
      return BinaryLoop<R, T, F, kFirstUniform>;
    case kSecondUniform:
      return BinaryLoop<R, T, F, kSecondUniform>;
    default:
      return nullptr;
  }
}

template <typename X, typename T, typename F>
Ternary TernaryOf(int form) {
  switch (form) {
    case 0:
      return TernaryLoop<X, T, F, 0>;
    case 1:
      return TernaryLoop<X, T, F, 1>;
    case 2:
      return TernaryLoop<X, T, F, 2>;
    case 3:
      return TernaryLoop<X, T, F, 3>;
    case 4:
      return TernaryLoop<X, T, F, 4>;
    case 5:
      return TernaryLoop<X, T, F, 5>;
    case 6:
      return TernaryLoop<X, T, F, 6>;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace tritonrl::ttir::TRITONRL_TTIR_SET

#endif  // TRITONRL_EXEC_TTIR_RUN_KERNELS_LOOPS_H_
