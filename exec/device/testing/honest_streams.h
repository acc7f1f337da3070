// What honest candidates send, as scripts. Input: one tensor of four floats, storage number 2.
#ifndef TRITONRL_EXEC_DEVICE_TESTING_HONEST_STREAMS_H_
#define TRITONRL_EXEC_DEVICE_TESTING_HONEST_STREAMS_H_

#include <vector>

#include "exec/device/frame.h"

namespace tritonrl::device {

// Each script ends with its output, after one call of forward.
std::vector<std::vector<Frame>> HonestStreams();

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_TESTING_HONEST_STREAMS_H_
