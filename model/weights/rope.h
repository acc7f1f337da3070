// Frequencies of rotary position embedding (RoPE; Su et al., 2021) and their scaling to longer
// contexts, in the forms of Hugging Face `config.json`.

#ifndef TRITONRL_MODEL_WEIGHTS_ROPE_H_
#define TRITONRL_MODEL_WEIGHTS_ROPE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/weights/config_fields.h"

namespace tritonrl {

// Values of rope_type.
enum class RopeType {
  kDefault,  // no scaling
  kLinear,   // all frequencies divided by `factor`
  kLlama3,   // Llama 3.1: by wavelength
  kYarn,     // YaRN (Peng et al., 2023): by rotations within the original context
};

struct RopeScaling {
  RopeType type = RopeType::kDefault;
  double factor = 1.0;
  // Llama 3.1
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  // Llama 3.1 and YaRN: the context before scaling
  int64_t original_max_positions = 8192;
  // YaRN
  double beta_fast = 32.0;        // rotations above which a frequency stays
  double beta_slow = 1.0;         // rotations below which a frequency is divided by `factor`
  bool truncate = true;           // rounds the range between the two to whole dimensions
  double attention_factor = 1.0;  // cosines and sines are multiplied by it
};

// Reads rope_theta and the scaling from a config.json, as transformers 4 (rope_theta, rope_scaling
// with "type" or "rope_type") or transformers 5 (rope_parameters) writes them. `max_positions` is
// the original context if the file gives none. Errors go to *fields, the reader of `json`; `where`
// names the source.
void ReadRope(const nlohmann::json& json, const std::string& where, int64_t max_positions,
              ConfigFields* fields, double* theta, RopeScaling* scaling);

// Returns the value of rope_scaling; null for kDefault.
nlohmann::ordered_json RopeScalingJson(const RopeScaling& scaling);

// Returns the head_dim / 2 inverse frequencies in radians a position.
std::vector<double> RopeInverseFrequencies(double theta, int64_t head_dim,
                                           const RopeScaling& scaling);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHTS_ROPE_H_
