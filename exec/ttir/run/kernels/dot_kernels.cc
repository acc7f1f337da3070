// Dot products of tiles. A block of rows and columns of the result stays in registers while k runs,
// so that an element of b serves kRows products and an element of a kColumns. Each product is added
// to its sum before the next one, with one rounding for both where the set has fma. Products of
// f16, bf16, fp8 and tf32 numbers are exact, so that this makes no difference to them.
#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __FMA__
#include <immintrin.h>
#endif

#include "exec/ttir/run/kernels/sets.h"

namespace tritonrl::ttir::TRITONRL_TTIR_SET {
namespace {

template <typename T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
  static constexpr int kLanes = kVectorBytes / sizeof(T);
};

template <typename T>
inline typename VectorOf<T>::Type Load(const T* p) {
  typename VectorOf<T>::Type v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
template <typename T>
inline void Store(T* p, typename VectorOf<T>::Type v) {
  std::memcpy(p, &v, sizeof(v));
}

template <typename T>
inline typename VectorOf<T>::Type MultiplyAdd(T a, typename VectorOf<T>::Type b,
                                              typename VectorOf<T>::Type c) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_fmadd_ps(_mm512_set1_ps(a), b, c);
  if constexpr (sizeof(T) == 8) return _mm512_fmadd_pd(_mm512_set1_pd(a), b, c);
#elif defined(__FMA__)
  if constexpr (sizeof(T) == 4) return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c);
  if constexpr (sizeof(T) == 8) return _mm256_fmadd_pd(_mm256_set1_pd(a), b, c);
#else
  return c + b * a;
#endif
}

// kRows rows and kVectors vectors of columns of c.
template <typename T, int kRows, int kVectors>
inline void Block(T* c, const T* a, const T* b, const DotShape& shape) {
  using Vector = typename VectorOf<T>::Type;
  constexpr int kLanes = VectorOf<T>::kLanes;
  Vector sums[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) sums[i][j] = Load(c + i * shape.n + j * kLanes);
  }
  for (int64_t k = 0; k < shape.k; ++k) {
    Vector row[kVectors];
    for (int j = 0; j < kVectors; ++j) row[j] = Load(b + k * shape.n + j * kLanes);
    for (int i = 0; i < kRows; ++i) {
      const T factor = a[i * shape.k + k];
      for (int j = 0; j < kVectors; ++j) sums[i][j] = MultiplyAdd<T>(factor, row[j], sums[i][j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) Store(c + i * shape.n + j * kLanes, sums[i][j]);
  }
}

template <typename T, int kRows>
void Rows(T* c, const T* a, const T* b, const DotShape& shape) {
  constexpr int kLanes = VectorOf<T>::kLanes;
  int64_t j = 0;
  for (; j + 2 * kLanes <= shape.n; j += 2 * kLanes) Block<T, kRows, 2>(c + j, a, b + j, shape);
  for (; j + kLanes <= shape.n; j += kLanes) Block<T, kRows, 1>(c + j, a, b + j, shape);
  for (; j < shape.n; ++j) {
    for (int i = 0; i < kRows; ++i) {
      T sum = c[i * shape.n + j];
      for (int64_t k = 0; k < shape.k; ++k) {
        const T factor = a[i * shape.k + k];
        const T other = b[k * shape.n + j];
#ifdef __FMA__
        sum = std::fma(factor, other, sum);
#else
        sum += factor * other;
#endif
      }
      c[i * shape.n + j] = sum;
    }
  }
}

template <typename T>
void DotFloats(void* c, const void* a, const void* b, const DotShape& shape) {
  T* const out = static_cast<T*>(c);
  const T* const left = static_cast<const T*>(a);
  const T* const right = static_cast<const T*>(b);
  int64_t i = 0;
  for (; i + 4 <= shape.m; i += 4) {
    Rows<T, 4>(out + i * shape.n, left + i * shape.k, right, shape);
  }
  for (; i < shape.m; ++i) Rows<T, 1>(out + i * shape.n, left + i * shape.k, right, shape);
}

template <typename T>
void DotIntegers(void* c, const void* a, const void* b, const DotShape& shape) {
  uint32_t* const out = static_cast<uint32_t*>(c);
  const T* const left = static_cast<const T*>(a);
  const T* const right = static_cast<const T*>(b);
  for (int64_t i = 0; i < shape.m; ++i) {
    uint32_t* const sums = out + i * shape.n;
    for (int64_t k = 0; k < shape.k; ++k) {
      const auto factor = static_cast<uint32_t>(int32_t{left[i * shape.k + k]});
      const T* const row = right + k * shape.n;
#pragma GCC ivdep
      for (int64_t j = 0; j < shape.n; ++j) {
        sums[j] += factor * static_cast<uint32_t>(int32_t{row[j]});
      }
    }
  }
}

}  // namespace

DotKernel FindDot(Lane operand, Lane accumulator) {
  if (accumulator == Lane::kF32 && operand == Lane::kF32) return DotFloats<float>;
  if (accumulator == Lane::kF64 && operand == Lane::kF64) return DotFloats<double>;
  if (accumulator != Lane::kI32) return nullptr;
  if (operand == Lane::kI8) return DotIntegers<int8_t>;
  if (operand == Lane::kI16) return DotIntegers<int16_t>;
  return operand == Lane::kI32 ? DotIntegers<int32_t> : nullptr;
}

}  // namespace tritonrl::ttir::TRITONRL_TTIR_SET
