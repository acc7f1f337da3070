#ifndef TRITONRL_THIRD_PARTY_LINK_TEST_SCALE_KERNEL_H_
#define TRITONRL_THIRD_PARTY_LINK_TEST_SCALE_KERNEL_H_

namespace tritonrl {

// Multiplies n floats on the device by `factor` in place. Returns the CUDA error code (0: success);
// without a driver or a device it returns that error and touches nothing.
int ScaleOnDevice(float* values, int n, float factor);

}  // namespace tritonrl

#endif  // TRITONRL_THIRD_PARTY_LINK_TEST_SCALE_KERNEL_H_
