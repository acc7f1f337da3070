// Rows of several matrices copied in one launch, to where others lie behind them or nothing does.
#ifndef TRITONRL_MODEL_CUDA_COPY_ROWS_H_
#define TRITONRL_MODEL_CUDA_COPY_ROWS_H_

#include <cstdint>

namespace tritonrl {

// Both matrices begin at multiples of 16 bytes, of which all three numbers are multiples too.
struct RowCopy {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t from_stride = 0, to_stride = 0;  // bytes from one row to the next
  int64_t row = 0;                         // bytes of a row
};

struct RowCopies {
  static constexpr int kMost = 8;
  RowCopy copies[kMost];
  int count = 0;

  // At most kMost.
  void Add(const RowCopy& copy) { copies[count++] = copy; }
};

// Rows of each `to` up to `rows` become those of `from` as far as there are any (`present`, at most
// `rows`), zeros from there on. On `stream` (a cudaStream_t); throws c10::Error if it is refused.
void LaunchCopyRows(const RowCopies& copies, int64_t present, int64_t rows, void* stream);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_COPY_ROWS_H_
