#include "model/weights/rope.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

// YaRN's factor of the attention logits' temperature for contexts `scale` times as long.
double YarnMscale(double scale, double mscale) {
  return scale <= 1 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0;
}

void ReadYarn(int64_t max_positions, ConfigFields* fields, RopeScaling* scaling) {
  scaling->original_max_positions = max_positions;
  fields->Number("factor", true, &scaling->factor);
  fields->Integer("original_max_position_embeddings", false, &scaling->original_max_positions);
  fields->Number("beta_fast", false, &scaling->beta_fast);
  fields->Number("beta_slow", false, &scaling->beta_slow);
  fields->Bool("truncate", &scaling->truncate);
  double mscale = 0, mscale_all_dim = 0;
  fields->Number("mscale", false, &mscale);
  fields->Number("mscale_all_dim", false, &mscale_all_dim);
  scaling->attention_factor = YarnMscale(scaling->factor, 1);
  if (mscale != 0 && mscale_all_dim != 0) {
    scaling->attention_factor =
        YarnMscale(scaling->factor, mscale) / YarnMscale(scaling->factor, mscale_all_dim);
  }
  fields->Number("attention_factor", false, &scaling->attention_factor);
  if (!(scaling->beta_fast > 0)) fields->Fail("beta_fast", "must be positive");
  if (!(scaling->beta_slow > 0)) fields->Fail("beta_slow", "must be positive");
  if (!(scaling->attention_factor > 0)) fields->Fail("attention_factor", "must be positive");
}

void ReadScaling(const Json& rope, int64_t max_positions, ConfigFields* fields,
                 RopeScaling* scaling) {
  std::string type = "default";
  for (const char* key : {"rope_type", "type"}) {  // the old name counts if both are given
    if (rope.contains(key) && rope.at(key).is_string()) type = rope.at(key).get<std::string>();
  }
  if (type == "default") return;
  if (type == "linear") {
    scaling->type = RopeType::kLinear;
    fields->Number("factor", true, &scaling->factor);
  } else if (type == "llama3") {
    scaling->type = RopeType::kLlama3;
    fields->Number("factor", true, &scaling->factor);
    fields->Number("low_freq_factor", true, &scaling->low_freq_factor);
    fields->Number("high_freq_factor", true, &scaling->high_freq_factor);
    fields->Integer("original_max_position_embeddings", true, &scaling->original_max_positions);
  } else if (type == "yarn") {
    scaling->type = RopeType::kYarn;
    ReadYarn(max_positions, fields, scaling);
  } else {
    fields->Fail("rope_type",
                 absl::StrCat("is \"", type,
                              "\"; \"default\", \"linear\", \"llama3\" and \"yarn\" are "
                              "supported"));
  }
  if (!(scaling->factor > 0)) fields->Fail("factor", "must be positive");
  if (scaling->original_max_positions < 1) {
    fields->Fail("original_max_position_embeddings", "must be positive");
  }
}

// YaRN's ramp: 0 for the dimensions whose frequency stays, 1 for those that are divided by
// `factor`.
double YarnRamp(double theta, int64_t head_dim, const RopeScaling& scaling, size_t i) {
  // The dimension whose wave rotates `rotations` times within the original context.
  const auto dimension = [&](double rotations) {
    return static_cast<double>(head_dim) *
           std::log(static_cast<double>(scaling.original_max_positions) / (rotations * 2 * M_PI)) /
           (2 * std::log(theta));
  };
  double low = dimension(scaling.beta_fast), high = dimension(scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(head_dim - 1));
  if (low == high) high += 0.001;
  return std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
}

// The share of frequency `i`, `f` radians a position, that is not divided by `factor`.
double KeptShare(double f, double theta, int64_t head_dim, const RopeScaling& scaling, size_t i) {
  switch (scaling.type) {
    case RopeType::kDefault:
      return 1;
    case RopeType::kLinear:
      return 0;
    case RopeType::kLlama3: {
      // Llama 3.1 divides the frequencies of long waves by `factor` and keeps those of short waves,
      // with a transition, linear in the frequency, between the wavelengths original /
      // low_freq_factor and original / high_freq_factor.
      const double turns = static_cast<double>(scaling.original_max_positions) * f / (2 * M_PI);
      const double smooth =
          (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
      return std::min(1.0, std::max(0.0, smooth));
    }
    case RopeType::kYarn:
      return 1 - YarnRamp(theta, head_dim, scaling, i);
  }
  return 1;
}

}  // namespace

void ReadRope(const Json& json, const std::string& where, int64_t max_positions,
              ConfigFields* fields, double* theta, RopeScaling* scaling) {
  fields->Number("rope_theta", false, theta);
  const char* name = fields->Has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  double rotated_share = 1;
  fields->Number("partial_rotary_factor", false, &rotated_share);
  if (fields->Has(name)) {
    const Json& rope = json.at(name);
    if (!rope.is_object()) return fields->Fail(name, "must be an object");
    for (const auto& [key, value] : rope.items()) {
      if (value.is_object()) {
        return fields->Fail(name, absl::StrCat("has values of its own for \"", key,
                                               "\"; one RoPE for all layers is supported"));
      }
    }
    ConfigFields nested(rope, absl::StrCat(where, ": ", name));
    nested.Number("rope_theta", false, theta);
    nested.Number("partial_rotary_factor", false, &rotated_share);
    ReadScaling(rope, max_positions, &nested, scaling);
    fields->Adopt(nested.status());
  }
  if (rotated_share != 1) {
    fields->Fail("partial_rotary_factor",
                 absl::StrCat("is ", rotated_share, "; only 1 is supported"));
  }
}

nlohmann::ordered_json RopeScalingJson(const RopeScaling& scaling) {
  switch (scaling.type) {
    case RopeType::kDefault:
      break;
    case RopeType::kLinear:
      return {{"rope_type", "linear"}, {"factor", scaling.factor}};
    case RopeType::kLlama3:
      return {{"rope_type", "llama3"},
              {"factor", scaling.factor},
              {"low_freq_factor", scaling.low_freq_factor},
              {"high_freq_factor", scaling.high_freq_factor},
              {"original_max_position_embeddings", scaling.original_max_positions}};
    case RopeType::kYarn:
      return {{"rope_type", "yarn"},
              {"factor", scaling.factor},
              {"original_max_position_embeddings", scaling.original_max_positions},
              {"beta_fast", scaling.beta_fast},
              {"beta_slow", scaling.beta_slow},
              {"truncate", scaling.truncate},
              {"attention_factor", scaling.attention_factor}};
  }
  return nullptr;
}

std::vector<double> RopeInverseFrequencies(double theta, int64_t head_dim,
                                           const RopeScaling& scaling) {
  std::vector<double> frequencies(head_dim / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double f = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    const double keep = KeptShare(f, theta, head_dim, scaling, i);
    frequencies[i] = scaling.factor == 1.0 ? f : keep * f + (1 - keep) * f / scaling.factor;
  }
  return frequencies;
}

}  // namespace tritonrl
