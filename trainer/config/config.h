// Loads and validates the configurations of config.proto.
#ifndef TRITONRL_TRAINER_CONFIG_CONFIG_H_
#define TRITONRL_TRAINER_CONFIG_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/config/config.pb.h"

namespace tritonrl {

// Reads the file `path` (empty: defaults only) and the files that it names by `base`, applies
// `overrides` (see ApplyOverride) in order and validates the result. Returns the error of the first
// of these that fails.
absl::StatusOr<SftConfig> LoadSftConfig(const std::string& path,
                                        const std::vector<std::string>& overrides);
absl::StatusOr<GrpoHrdConfig> LoadGrpoHrdConfig(const std::string& path,
                                                const std::vector<std::string>& overrides);

// InvalidArgument names the first invalid field and its valid values in one sentence.
absl::Status ValidateSftConfig(const SftConfig& config);
absl::Status ValidateGrpoHrdConfig(const GrpoHrdConfig& config);

// InvalidArgument if a judge is required but has no endpoint, or has one although there must be no
// judge; the sentence names both fields.
absl::Status CheckJudgeMode(const JudgeConfig& judge);
// Whether candidates are judged, if CheckJudgeMode passes.
bool HasJudge(const JudgeConfig& judge);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_CONFIG_CONFIG_H_
