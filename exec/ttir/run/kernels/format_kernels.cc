// Loops over f16, bf16, fp8 and tf32 numbers: rounding of floats to them, and their bits in memory.
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "exec/ttir/run/kernels/loops.h"
#include "exec/ttir/run/kernels/number_formats.h"
#include "exec/ttir/run/kernels/sets.h"

namespace tritonrl::ttir::TRITONRL_TTIR_SET {
namespace {

constexpr ScalarKind kHalf = ScalarKind::kF16;

void DecodeHalf(void* out, const void* a, int64_t count) {
  float* const r = static_cast<float*>(out);
  const uint16_t* const x = static_cast<const uint16_t*>(a);
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(r + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  }
#endif
  for (; i < count; ++i) r[i] = DecodeSmallFloat(x[i], SmallFormatOf(kHalf));
}

void EncodeHalf(void* out, const void* a, int64_t count) {
  uint16_t* const r = static_cast<uint16_t*>(out);
  const float* const x = static_cast<const float*>(a);
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(r + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  for (; i < count; ++i) {
    r[i] = static_cast<uint16_t>(EncodeSmallFloat(x[i], SmallFormatOf(kHalf), false));
  }
}

template <bool kTowardZero>
void RoundHalf(void* out, const void* a, int64_t count) {
  float* const r = static_cast<float*>(out);
  const float* const x = static_cast<const float*>(a);
  int64_t i = 0;
#ifdef __F16C__
  constexpr int kMode = kTowardZero ? _MM_FROUND_TO_ZERO : _MM_FROUND_TO_NEAREST_INT;
  for (; i + 8 <= count; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), kMode);
    _mm256_storeu_ps(r + i, _mm256_cvtph_ps(half));
  }
#endif
  constexpr SmallFormat kFormat = SmallFormatOf(kHalf);
  for (; i < count; ++i) {
    r[i] = DecodeSmallFloat(EncodeSmallFloat(x[i], kFormat, kTowardZero), kFormat);
  }
}

struct RoundBfloat {
  static float Of(float x) { return RoundToBfloat(x); }
};
struct TruncateBfloat {
  static float Of(float x) { return TruncateToBfloat(x); }
};
struct DecodeBfloat {
  static float Of(uint16_t x) { return std::bit_cast<float>(uint32_t{x} << 16); }
};
struct EncodeBfloat {
  static uint16_t Of(float x) {
    return static_cast<uint16_t>(std::bit_cast<uint32_t>(RoundToBfloat(x)) >> 16);
  }
};
struct TruncateToTf32 {
  static float Of(float x) {
    return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xFFFFE000u);
  }
};

// A byte is a boolean by being 0 or not.
struct DecodeBool {
  static uint8_t Of(uint8_t x) { return x != 0; }
};

template <ScalarKind kKind>
void DecodeByte(void* out, const void* a, int64_t count) {
  static const std::array<float, 256> kValues = [] {
    std::array<float, 256> values = {};
    for (uint32_t i = 0; i < 256; ++i) values[i] = DecodeSmallFloat(i, SmallFormatOf(kKind));
    return values;
  }();
  float* const r = static_cast<float*>(out);
  const uint8_t* const x = static_cast<const uint8_t*>(a);
  for (int64_t i = 0; i < count; ++i) r[i] = kValues[x[i]];
}

template <ScalarKind kKind>
struct EncodeByte {
  static uint8_t Of(float x) {
    return static_cast<uint8_t>(EncodeSmallFloat(x, SmallFormatOf(kKind), false));
  }
};
template <ScalarKind kKind, bool kTowardZero>
struct RoundByte {
  static float Of(float x) {
    constexpr SmallFormat kFormat = SmallFormatOf(kKind);
    return DecodeSmallFloat(EncodeSmallFloat(x, kFormat, kTowardZero), kFormat);
  }
};

template <ScalarKind kKind>
Unary RoundByteOf(bool toward_zero) {
  return toward_zero ? UnaryLoop<float, float, RoundByte<kKind, true>>
                     : UnaryLoop<float, float, RoundByte<kKind, false>>;
}

}  // namespace

Unary FindRound(ScalarKind kind, bool toward_zero) {
  switch (kind) {
    case ScalarKind::kF16:
      return toward_zero ? RoundHalf<true> : RoundHalf<false>;
    case ScalarKind::kBF16:
      return toward_zero ? UnaryLoop<float, float, TruncateBfloat>
                         : UnaryLoop<float, float, RoundBfloat>;
    case ScalarKind::kF8E4M3FN:
      return RoundByteOf<ScalarKind::kF8E4M3FN>(toward_zero);
    case ScalarKind::kF8E5M2:
      return RoundByteOf<ScalarKind::kF8E5M2>(toward_zero);
    case ScalarKind::kF8E4M3FNUZ:
      return RoundByteOf<ScalarKind::kF8E4M3FNUZ>(toward_zero);
    case ScalarKind::kF8E5M2FNUZ:
      return RoundByteOf<ScalarKind::kF8E5M2FNUZ>(toward_zero);
    case ScalarKind::kF8E4M3B11FNUZ:
      return RoundByteOf<ScalarKind::kF8E4M3B11FNUZ>(toward_zero);
    default:
      return nullptr;
  }
}

Unary FindDecode(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::kI1:
      return UnaryLoop<uint8_t, uint8_t, DecodeBool>;
    case ScalarKind::kF16:
      return DecodeHalf;
    case ScalarKind::kBF16:
      return UnaryLoop<float, uint16_t, DecodeBfloat>;
    case ScalarKind::kF8E4M3FN:
      return DecodeByte<ScalarKind::kF8E4M3FN>;
    case ScalarKind::kF8E5M2:
      return DecodeByte<ScalarKind::kF8E5M2>;
    case ScalarKind::kF8E4M3FNUZ:
      return DecodeByte<ScalarKind::kF8E4M3FNUZ>;
    case ScalarKind::kF8E5M2FNUZ:
      return DecodeByte<ScalarKind::kF8E5M2FNUZ>;
    case ScalarKind::kF8E4M3B11FNUZ:
      return DecodeByte<ScalarKind::kF8E4M3B11FNUZ>;
    default:
      return nullptr;
  }
}

Unary FindEncode(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::kF16:
      return EncodeHalf;
    case ScalarKind::kBF16:
      return UnaryLoop<uint16_t, float, EncodeBfloat>;
    case ScalarKind::kF8E4M3FN:
      return UnaryLoop<uint8_t, float, EncodeByte<ScalarKind::kF8E4M3FN>>;
    case ScalarKind::kF8E5M2:
      return UnaryLoop<uint8_t, float, EncodeByte<ScalarKind::kF8E5M2>>;
    case ScalarKind::kF8E4M3FNUZ:
      return UnaryLoop<uint8_t, float, EncodeByte<ScalarKind::kF8E4M3FNUZ>>;
    case ScalarKind::kF8E5M2FNUZ:
      return UnaryLoop<uint8_t, float, EncodeByte<ScalarKind::kF8E5M2FNUZ>>;
    case ScalarKind::kF8E4M3B11FNUZ:
      return UnaryLoop<uint8_t, float, EncodeByte<ScalarKind::kF8E4M3B11FNUZ>>;
    default:
      return nullptr;
  }
}

void TruncateTf32(float* out, const float* a, int64_t count) {
  UnaryLoop<float, float, TruncateToTf32>(out, a, count);
}

}  // namespace tritonrl::ttir::TRITONRL_TTIR_SET
