// Command-line flags of the programs that start an engine: one flag for each field of EngineConfig
// that the command line may set, with the field's name.
#ifndef TRITONRL_ROLLOUT_FACTORY_ENGINE_FLAGS_H_
#define TRITONRL_ROLLOUT_FACTORY_ENGINE_FLAGS_H_

#include "absl/status/statusor.h"
#include "rollout/engine/engine_config.h"

namespace tritonrl {

// Sets the flags to the fields of `defaults`, for a program whose defaults are not EngineConfig's.
// Call it before the command line is parsed.
void SetEngineFlagDefaults(const EngineConfig& defaults);

// The configuration that the flags set. InvalidArgument: that of ValidateEngineConfig, which names
// a flag.
absl::StatusOr<EngineConfig> EngineConfigFromFlags();

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_FACTORY_ENGINE_FLAGS_H_
