#include "exec/device/testing/last_place.h"

namespace tritonrl::device {

double LastPlaceOf(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return 0x1p-52;
    case at::kFloat:
      return 0x1p-23;
    case at::kHalf:
      return 0x1p-10;
    case at::kBFloat16:
      return 0x1p-7;
    case at::kFloat8_e4m3fn:
      return 0x1p-3;
    case at::kFloat8_e5m2:
      return 0x1p-2;
    default:
      return 1;
  }
}

}  // namespace tritonrl::device
