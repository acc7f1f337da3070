// GEMM on one thread (CpuKernels::gemm in kernels.h). Each element of C is a sum over k in
// ascending order, in blocks of kDepth that are added in turn; the order depends neither on m nor
// on n.

#ifndef TRITONRL_MODEL_CPU_GEMM_KERNEL_H_
#define TRITONRL_MODEL_CPU_GEMM_KERNEL_H_

#include "model/cpu/simd.h"

namespace tritonrl {
namespace TRITONRL_SIMD_NAMESPACE {

inline constexpr int64_t kDepth = 256;                       // size of a block in k
inline constexpr int64_t kTileColumns = kTileVecs * kLanes;  // columns of a tile
inline constexpr int64_t kRowBlock = 96;                     // rows of a packed block of A
static_assert(kRowBlock % kTileRows == 0);

// Computes one tile: C[kRows, kVecs * 16] (+)= A B over one block of k. With kPartial (and kVecs 1)
// it computes only the first `columns` < 16 columns, at the end of a matrix's rows.
template <int kRows, int kVecs, bool kPartial>
inline void GemmTile(int64_t k, const float* a, int64_t a_row, int64_t a_col, const float* b,
                     int64_t b_row, float* c, int64_t c_row, bool accumulate, int64_t columns) {
  Vec sum[kRows][kVecs];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVecs; ++j) sum[i][j] = Zero();
  }
  for (int64_t p = 0; p < k; ++p) {
    Vec bv[kVecs];
#pragma GCC unroll 2
    for (int j = 0; j < kVecs; ++j) {
      bv[j] = kPartial ? LoadFirst(b, columns) : Load(b + j * kLanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Vec av = Set1(a[i * a_row]);
#pragma GCC unroll 2
      for (int j = 0; j < kVecs; ++j) sum[i][j] = Fma(av, bv[j], sum[i][j]);
    }
    a += a_col;
    b += b_row;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVecs; ++j) {
      float* out = c + i * c_row + j * kLanes;
      if (kPartial) {
        StoreFirst(out, accumulate ? Add(LoadFirst(out, columns), sum[i][j]) : sum[i][j], columns);
      } else {
        Store(out, accumulate ? Add(Load(out), sum[i][j]) : sum[i][j]);
      }
    }
  }
}

// GemmTile for `rows` <= kRows rows.
template <int kRows, int kVecs, bool kPartial>
inline void GemmTileRows(int64_t rows, int64_t k, const float* a, int64_t a_row, int64_t a_col,
                         const float* b, int64_t b_row, float* c, int64_t c_row, bool accumulate,
                         int64_t columns) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      GemmTileRows<kRows - 1, kVecs, kPartial>(rows, k, a, a_row, a_col, b, b_row, c, c_row,
                                               accumulate, columns);
      return;
    }
  }
  GemmTile<kRows, kVecs, kPartial>(k, a, a_row, a_col, b, b_row, c, c_row, accumulate, columns);
}

// Copies A[rows, k] to tiles [k][kTileRows], so that GemmTile reads contiguous memory.
inline void PackA(int64_t rows, int64_t k, const float* a, int64_t a_row, int64_t a_col,
                  float* packed) {
  for (int64_t i0 = 0; i0 < rows; i0 += kTileRows) {
    const int64_t tile = rows - i0 < kTileRows ? rows - i0 : kTileRows;
    if (tile == kTileRows && a_row == 1) {
      for (int64_t p = 0; p < k; ++p) {
        __builtin_memcpy(packed, a + i0 + p * a_col, kTileRows * sizeof(float));
        packed += kTileRows;
      }
      continue;
    }
    for (int64_t p = 0; p < k; ++p) {
      const float* from = a + i0 * a_row + p * a_col;
      for (int64_t i = 0; i < tile; ++i) packed[i] = from[i * a_row];
      packed += kTileRows;
    }
  }
}

// Multiplies all rows of a block of A by columns [0, columns) of a block of B.
template <int kVecs, bool kPartial>
inline void GemmPanel(int64_t rows, int64_t k, const float* a, int64_t a_row, int64_t a_col,
                      bool packed_a, const float* b, int64_t b_row, float* c, int64_t c_row,
                      bool accumulate, int64_t columns) {
  for (int64_t i0 = 0; i0 < rows; i0 += kTileRows) {
    const int64_t tile = rows - i0 < kTileRows ? rows - i0 : kTileRows;
    const float* tile_a = packed_a ? a + i0 * k : a + i0 * a_row;
    GemmTileRows<kTileRows, kVecs, kPartial>(tile, k, tile_a, packed_a ? 1 : a_row,
                                             packed_a ? kTileRows : a_col, b, b_row, c + i0 * c_row,
                                             c_row, accumulate, columns);
  }
}

// Multiplies one block of A (at most kRowBlock rows and k at most kDepth) by all columns of B.
inline void GemmBlock(int64_t rows, int64_t n, int64_t k, const float* a, int64_t a_row,
                      int64_t a_col, const float* b, int64_t b_row, float* c, int64_t c_row,
                      bool accumulate) {
  alignas(64) float a_buffer[kRowBlock * kDepth];
  alignas(64) float b_buffer[kDepth * kTileColumns];
  // Copying A pays if a tile would touch a new cache line for each k, or is read often.
  const bool pack_a = a_col != 1 || n > 4 * kTileColumns;
  if (pack_a) {
    PackA(rows, k, a, a_row, a_col, a_buffer);
    a = a_buffer;
  }
  // Copying B pays if its rows are far apart in memory and enough rows of A read it.
  const bool pack_b = b_row > kTileColumns && k > 64 && rows > 2 * kTileRows;
  int64_t j = 0;
  for (; j + kTileColumns <= n; j += kTileColumns) {
    const float* panel = b + j;
    int64_t panel_row = b_row;
    if (pack_b) {
      for (int64_t p = 0; p < k; ++p) {
        for (int v = 0; v < kTileVecs; ++v) {
          Store(b_buffer + p * kTileColumns + v * kLanes, Load(panel + p * b_row + v * kLanes));
        }
      }
      panel = b_buffer;
      panel_row = kTileColumns;
    }
    GemmPanel<kTileVecs, false>(rows, k, a, a_row, a_col, pack_a, panel, panel_row, c + j, c_row,
                                accumulate, kTileColumns);
  }
  for (; j + kLanes <= n; j += kLanes) {
    GemmPanel<1, false>(rows, k, a, a_row, a_col, pack_a, b + j, b_row, c + j, c_row, accumulate,
                        kLanes);
  }
  if (j < n) {
    GemmPanel<1, true>(rows, k, a, a_row, a_col, pack_a, b + j, b_row, c + j, c_row, accumulate,
                       n - j);
  }
}

inline void Gemm(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_col,
                 const float* b, int64_t b_row, float* c, int64_t c_row, bool accumulate) {
  for (int64_t i = 0; i < m; i += kRowBlock) {
    const int64_t rows = m - i < kRowBlock ? m - i : kRowBlock;
    for (int64_t p = 0; p < k; p += kDepth) {
      const int64_t depth = k - p < kDepth ? k - p : kDepth;
      GemmBlock(rows, n, depth, a + i * a_row + p * a_col, a_row, a_col, b + p * b_row, b_row,
                c + i * c_row, c_row, accumulate || p > 0);
    }
  }
}

inline void Transpose(int64_t rows, int64_t cols, const float* from, int64_t from_row, float* to,
                      int64_t to_row) {
  constexpr int64_t kBlock = 16;
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    const int64_t r1 = rows - r0 < kBlock ? rows : r0 + kBlock;
    for (int64_t c = 0; c < cols; ++c) {
      for (int64_t r = r0; r < r1; ++r) to[c * to_row + r] = from[r * from_row + c];
    }
  }
}

}  // namespace TRITONRL_SIMD_NAMESPACE
}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CPU_GEMM_KERNEL_H_
