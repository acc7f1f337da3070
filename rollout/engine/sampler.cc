#include "rollout/engine/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/random.h"

namespace tritonrl {
namespace {

// exp(x) for x <= 0 with an error of about 2 ulp; 0 below -87. Cephes' polynomial, without calls or
// branches, so that the compiler vectorizes a loop over it.
inline float FastExp(float x) {
  const float clamped = std::max(x, -87.0f);
  // Adding 1.5 * 2^23 rounds to an integer, whose bits are then the low bits of the sum.
  constexpr float kRound = 12582912.0f;
  const float shifted = clamped * 1.44269504088896341f + kRound;
  const float n = shifted - kRound;
  float r = clamped - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float y = p * (r * r) + r + 1.0f;
  const int32_t exponent = (std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound)) << 23;
  const float power = std::bit_cast<float>(exponent + (127 << 23));
  return x < -87.0f ? 0.0f : y * power;
}

int32_t IndexOfLargest(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

absl::Status ValidateSampling(const SamplingSettings& settings) {
  // A smaller temperature would overflow the fp32 factor of the logits.
  constexpr double kMinTemperature = 1e-6;
  if (!(settings.temperature >= 0) || !std::isfinite(settings.temperature) ||
      (settings.temperature > 0 && settings.temperature < kMinTemperature)) {
    return absl::InvalidArgumentError(absl::StrCat("temperature is ", settings.temperature,
                                                   ", must be 0 or at least ", kMinTemperature));
  }
  if (!(settings.top_p > 0 && settings.top_p <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_p is ", settings.top_p, ", must be above 0 and at most 1"));
  }
  if (settings.top_k < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_k is ", settings.top_k, ", must be 0 (all) or more"));
  }
  if (settings.max_tokens < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_tokens is ", settings.max_tokens, ", must be 1 or more"));
  }
  return absl::OkStatus();
}

uint64_t SampleStream(const SampleKey& key, int index) {
  return MixKeys({key.run_seed, key.step, key.task, static_cast<uint64_t>(index)});
}

double TokenUniform(uint64_t stream, int64_t position) {
  return Philox(stream, static_cast<uint64_t>(position)).Uniform();
}

double TokenUniform(const SampleKey& key, int index, int position) {
  return TokenUniform(SampleStream(key, index), position);
}

absl::StatusOr<TokenDraw> Sampler::Draw(std::span<const float> logits,
                                        const SamplingSettings& settings, double uniform) {
  const bool greedy = settings.temperature == 0;
  const int32_t best = IndexOfLargest(logits);
  const double scale = greedy ? 1.0 : 1.0 / settings.temperature;
  const double total = FillWeights(logits, logits[best], static_cast<float>(scale));
  if (!std::isfinite(logits[best]) || !std::isfinite(total)) {
    return absl::InternalError(kLogitsNotFinite);
  }
  TokenDraw draw;
  if (greedy) {
    draw.token = best;
  } else if (settings.top_p >= 1 && settings.top_k == 0) {
    draw.token = DrawFromAll(total, uniform);
  } else {
    draw.token = DrawFromLargest(settings, total, uniform);
  }
  const double difference = static_cast<double>(logits[draw.token]) - logits[best];
  draw.log_prob = static_cast<float>(difference * scale - std::log(total));
  return draw;
}

double Sampler::FillWeights(std::span<const float> logits, float largest, float scale) {
  weights_.resize(logits.size());
  const float* in = logits.data();
  float* out = weights_.data();
  const int64_t size = static_cast<int64_t>(logits.size());
  for (int64_t i = 0; i < size; ++i) out[i] = FastExp((in[i] - largest) * scale);
  // A NaN is lost in FastExp's maximum; x - x is NaN for it and 0 for every finite x.
  float not_finite = 0;
  for (int64_t i = 0; i < size; ++i) not_finite += in[i] - in[i];
  double total = not_finite;
  for (int64_t i = 0; i < size; ++i) total += out[i];
  return total;
}

int32_t Sampler::DrawFromAll(double total, double uniform) const {
  const double target = uniform * total;
  double cumulative = 0;
  int32_t last = 0;
  for (int32_t i = 0; i < static_cast<int32_t>(weights_.size()); ++i) {
    if (weights_[i] == 0) continue;
    cumulative += weights_[i];
    if (cumulative > target) return i;
    last = i;
  }
  return last;  // uniform * total was rounded up to `total`
}

int32_t Sampler::DrawFromLargest(const SamplingSettings& settings, double total, double uniform) {
  order_.resize(weights_.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto larger = [this](int32_t a, int32_t b) {
    return weights_[a] != weights_[b] ? weights_[a] > weights_[b] : a < b;
  };
  size_t kept = order_.size();
  if (settings.top_k > 0) kept = std::min<size_t>(kept, settings.top_k);
  std::partial_sort(order_.begin(), order_.begin() + kept, order_.end(), larger);
  double mass = total;
  if (settings.top_k > 0) {
    mass = 0;
    for (size_t i = 0; i < kept; ++i) mass += weights_[order_[i]];
  }
  if (settings.top_p < 1) {
    const double wanted = settings.top_p * mass;
    mass = 0;
    size_t count = 0;
    while (count < kept && (count == 0 || mass < wanted)) mass += weights_[order_[count++]];
    kept = count;
  }
  const double target = uniform * mass;
  double cumulative = 0;
  for (size_t i = 0; i + 1 < kept; ++i) {
    cumulative += weights_[order_[i]];
    if (cumulative > target) return order_[i];
  }
  return order_[kept - 1];
}

}  // namespace tritonrl
