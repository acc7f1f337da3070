#ifndef TRITONRL_PARALLEL_FLAT_RANGE_H_
#define TRITONRL_PARALLEL_FLAT_RANGE_H_

#include <cstdint>

namespace tritonrl {

// Elements [begin, end) of a flat buffer.
struct FlatRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_FLAT_RANGE_H_
