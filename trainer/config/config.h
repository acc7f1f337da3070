// Reads and checks the configurations of config.proto.
#ifndef TRITONRL_TRAINER_CONFIG_CONFIG_H_
#define TRITONRL_TRAINER_CONFIG_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/config/config.pb.h"

namespace tritonrl {

// File (may be empty: defaults alone), overrides in order, then the checks below.
absl::StatusOr<SftConfig> LoadSftConfig(const std::string& path,
                                        const std::vector<std::string>& overrides);
absl::StatusOr<GrpoHrdConfig> LoadGrpoHrdConfig(const std::string& path,
                                                const std::vector<std::string>& overrides);

// One sentence that names the first field whose value can't work, and what would.
absl::Status ValidateSftConfig(const SftConfig& config);
absl::Status ValidateGrpoHrdConfig(const GrpoHrdConfig& config);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_CONFIG_CONFIG_H_
