// Vectors of sixteen floats on AVX-512, AVX2 or SSE2. AVX-512 and AVX2 give the same bits, because
// reductions have a fixed tree; SSE2 has no fused multiply-add and rounds a multiply-add twice.

#ifndef TRITONRL_MODEL_CPU_SIMD_H_
#define TRITONRL_MODEL_CPU_SIMD_H_

#include <immintrin.h>
#include <stdint.h>

// Only files that are compiled for one instruction set each may include this header. All code is in
// a namespace of that set and uses no inline function of the standard library. Otherwise the linker
// could mix code of two sets.
#if defined(__AVX512F__)
#define TRITONRL_SIMD_NAMESPACE simd_avx512
#elif defined(__AVX2__) && defined(__FMA__)
#define TRITONRL_SIMD_NAMESPACE simd_avx2
#else
#define TRITONRL_SIMD_NAMESPACE simd_sse2
#endif

namespace tritonrl {
namespace TRITONRL_SIMD_NAMESPACE {

inline constexpr int64_t kLanes = 16;

#if defined(__AVX512F__)

// Size of the GEMM tile that fills the register file: kTileRows x (kTileVecs * kLanes).
inline constexpr int kTileRows = 12;
inline constexpr int kTileVecs = 2;

struct Vec {
  __m512 v;
};
inline __mmask16 FirstLanes(int64_t n) { return static_cast<__mmask16>((1u << n) - 1u); }
inline Vec Set1(float x) { return {_mm512_set1_ps(x)}; }
inline Vec Load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void Store(float* p, Vec a) { _mm512_storeu_ps(p, a.v); }
// Load or store the first n of 16 lanes (0 < n < 16). A load sets the other lanes to 0; a store
// leaves their memory unchanged.
inline Vec LoadFirst(const float* p, int64_t n) {
  return {_mm512_maskz_loadu_ps(FirstLanes(n), p)};
}
inline void StoreFirst(float* p, Vec a, int64_t n) { _mm512_mask_storeu_ps(p, FirstLanes(n), a.v); }
inline Vec Add(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Vec Sub(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Vec Mul(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Vec Div(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Vec Max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Vec Min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
inline Vec Fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }  // a * b + c
inline Vec Round(Vec a) { return {_mm512_roundscale_ps(a.v, 0)}; }
// Returns 2^n for integral n in [-126, 127].
inline Vec PowerOf2(Vec n) {
  const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
}
inline __m256 LowHalf(Vec a) { return _mm512_castps512_ps256(a.v); }
inline __m256 HighHalf(Vec a) {
  return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a.v), 1));
}

#elif defined(__AVX2__) && defined(__FMA__)

inline constexpr int kTileRows = 6;
inline constexpr int kTileVecs = 1;

struct Vec {
  __m256 lo, hi;
};
// Returns the mask of lanes [0, n) of eight, with n clamped to [0, 8].
inline __m256i FirstLanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline Vec Set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Vec Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void Store(float* p, Vec a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
inline Vec LoadFirst(const float* p, int64_t n) {
  return {_mm256_maskload_ps(p, FirstLanes(n)), _mm256_maskload_ps(p + 8, FirstLanes(n - 8))};
}
inline void StoreFirst(float* p, Vec a, int64_t n) {
  _mm256_maskstore_ps(p, FirstLanes(n), a.lo);
  _mm256_maskstore_ps(p + 8, FirstLanes(n - 8), a.hi);
}
inline Vec Add(Vec a, Vec b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
inline Vec Sub(Vec a, Vec b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
inline Vec Mul(Vec a, Vec b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
inline Vec Div(Vec a, Vec b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
inline Vec Max(Vec a, Vec b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
inline Vec Min(Vec a, Vec b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
inline Vec Fma(Vec a, Vec b, Vec c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline Vec Round(Vec a) { return {_mm256_round_ps(a.lo, 0), _mm256_round_ps(a.hi, 0)}; }
inline __m256 PowerOf2(__m256 n) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
inline Vec PowerOf2(Vec n) { return {PowerOf2(n.lo), PowerOf2(n.hi)}; }
inline __m256 LowHalf(Vec a) { return a.lo; }
inline __m256 HighHalf(Vec a) { return a.hi; }

#else  // SSE2, which every x86-64 processor has

inline constexpr int kTileRows = 2;
inline constexpr int kTileVecs = 1;

struct Vec {
  __m128 q[4];
};
#define TRITONRL_SSE_BINARY(Name, intrinsic)                                                  \
  inline Vec Name(Vec a, Vec b) {                                                             \
    return {{intrinsic(a.q[0], b.q[0]), intrinsic(a.q[1], b.q[1]), intrinsic(a.q[2], b.q[2]), \
             intrinsic(a.q[3], b.q[3])}};                                                     \
  }
TRITONRL_SSE_BINARY(Add, _mm_add_ps)
TRITONRL_SSE_BINARY(Sub, _mm_sub_ps)
TRITONRL_SSE_BINARY(Mul, _mm_mul_ps)
TRITONRL_SSE_BINARY(Div, _mm_div_ps)
TRITONRL_SSE_BINARY(Max, _mm_max_ps)
TRITONRL_SSE_BINARY(Min, _mm_min_ps)
#undef TRITONRL_SSE_BINARY
inline Vec Set1(float x) {
  const __m128 q = _mm_set1_ps(x);
  return {{q, q, q, q}};
}
inline Vec Load(const float* p) {
  return {{_mm_loadu_ps(p), _mm_loadu_ps(p + 4), _mm_loadu_ps(p + 8), _mm_loadu_ps(p + 12)}};
}
inline void Store(float* p, Vec a) {
  for (int i = 0; i < 4; ++i) _mm_storeu_ps(p + 4 * i, a.q[i]);
}
inline Vec LoadFirst(const float* p, int64_t n) {
  float lanes[16] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = p[i];
  return Load(lanes);
}
inline void StoreFirst(float* p, Vec a, int64_t n) {
  float lanes[16];
  Store(lanes, a);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}
inline Vec Fma(Vec a, Vec b, Vec c) { return Add(Mul(a, b), c); }
inline Vec Round(Vec a) {
  Vec r;
  for (int i = 0; i < 4; ++i) r.q[i] = _mm_cvtepi32_ps(_mm_cvtps_epi32(a.q[i]));
  return r;
}
inline Vec PowerOf2(Vec n) {
  Vec r;
  for (int i = 0; i < 4; ++i) {
    const __m128i biased = _mm_add_epi32(_mm_cvtps_epi32(n.q[i]), _mm_set1_epi32(127));
    r.q[i] = _mm_castsi128_ps(_mm_slli_epi32(biased, 23));
  }
  return r;
}

#endif

inline Vec Zero() { return Set1(0.0f); }

// Return the sum and the maximum of the 16 lanes, combined in the order (i, i + 8), (i, i + 4),
// (i, i + 2), (i, i + 1).
inline float HorizontalSum(Vec a) {
#if defined(__AVX2__)
  const __m256 eight = _mm256_add_ps(LowHalf(a), HighHalf(a));
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
#else
  __m128 four = _mm_add_ps(_mm_add_ps(a.q[0], a.q[2]), _mm_add_ps(a.q[1], a.q[3]));
#endif
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
}
inline float HorizontalMax(Vec a) {
#if defined(__AVX2__)
  const __m256 eight = _mm256_max_ps(LowHalf(a), HighHalf(a));
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
#else
  __m128 four = _mm_max_ps(_mm_max_ps(a.q[0], a.q[2]), _mm_max_ps(a.q[1], a.q[3]));
#endif
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
}

// Load or store the first min(n, 16) lanes; n >= 1 is the number of elements left in the row.
inline Vec LoadUpTo(const float* p, int64_t n) { return n >= kLanes ? Load(p) : LoadFirst(p, n); }
inline void StoreUpTo(float* p, Vec a, int64_t n) {
  if (n >= kLanes) {
    Store(p, a);
  } else {
    StoreFirst(p, a, n);
  }
}

// Returns e^x with a relative error below 2e-7, by the polynomial of Cephes' expf. x is clamped to
// [-87, 88]; x below -87 gives about 1e-38.
inline Vec Exp(Vec x) {
  x = Min(Max(x, Set1(-87.0f)), Set1(88.0f));
  const Vec n = Round(Mul(x, Set1(1.44269504088896341f)));
  Vec r = Fma(n, Set1(-0.693359375f), x);
  r = Fma(n, Set1(2.12194440e-4f), r);
  Vec p = Set1(1.9875691500e-4f);
  p = Fma(p, r, Set1(1.3981999507e-3f));
  p = Fma(p, r, Set1(8.3334519073e-3f));
  p = Fma(p, r, Set1(4.1665795894e-2f));
  p = Fma(p, r, Set1(1.6666665459e-1f));
  p = Fma(p, r, Set1(5.0000001201e-1f));
  const Vec y = Add(Fma(p, Mul(r, r), r), Set1(1.0f));
  return Mul(y, PowerOf2(n));
}

}  // namespace TRITONRL_SIMD_NAMESPACE
}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CPU_SIMD_H_
