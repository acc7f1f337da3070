#include "exec/device/recording.h"

#include <algorithm>

namespace tritonrl::device {

int64_t CountLaunches(const CommandList& commands) {
  return std::count_if(commands.begin(), commands.end(), [](const auto& command) {
    return std::holds_alternative<LaunchCommand>(*command);
  });
}

}  // namespace tritonrl::device
