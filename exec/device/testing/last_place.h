// The precision of a type, for tests and benches that compare results.
#ifndef TRITONRL_EXEC_DEVICE_TESTING_LAST_PLACE_H_
#define TRITONRL_EXEC_DEVICE_TESTING_LAST_PLACE_H_

#include <c10/core/ScalarType.h>

namespace tritonrl::device {

// The unit of the last place of 1: the distance to the next larger number. 1 for integers.
double LastPlaceOf(at::ScalarType type);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_TESTING_LAST_PLACE_H_
