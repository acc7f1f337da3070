#include "rollout/engine/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"

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

namespace {

// Of the settings that change logits, and min_p.
absl::Status ValidateChanges(const SamplingSettings& settings) {
  const auto in_range = [](const char* name, double value, double low, double high) {
    if (value >= low && value <= high) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", value, ", must be from ", low, " to ", high));
  };
  RETURN_IF_ERROR(in_range("min_p", settings.min_p, 0, 1));
  RETURN_IF_ERROR(in_range("presence_penalty", settings.presence_penalty, -2, 2));
  RETURN_IF_ERROR(in_range("frequency_penalty", settings.frequency_penalty, -2, 2));
  RETURN_IF_ERROR(in_range("repetition_penalty", settings.repetition_penalty, 0.01, 100));
  if (settings.logit_bias.size() > SamplingSettings::kMaxLogitBias) {
    return absl::InvalidArgumentError(absl::StrCat("logit_bias has ", settings.logit_bias.size(),
                                                   " tokens, at most ",
                                                   SamplingSettings::kMaxLogitBias));
  }
  absl::flat_hash_set<int32_t> tokens;
  for (const auto& [token, bias] : settings.logit_bias) {
    RETURN_IF_ERROR(in_range("a number of logit_bias", bias, -100, 100));
    if (!tokens.insert(token).second) {
      return absl::InvalidArgumentError(absl::StrCat("logit_bias has token ", token, " twice"));
    }
  }
  return absl::OkStatus();
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
  return ValidateChanges(settings);
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

float Sampler::Softmax::LogProb(float logit) const {
  const double difference = static_cast<double>(logit) - largest;
  return static_cast<float>(difference * scale - std::log(total));
}

absl::StatusOr<Sampler::Softmax> Sampler::FillSoftmax(std::span<const float> logits, double scale) {
  Softmax softmax;
  softmax.best = IndexOfLargest(logits);
  softmax.largest = logits[softmax.best];
  softmax.scale = scale;
  softmax.total = FillWeights(logits, softmax.largest, static_cast<float>(scale));
  if (!std::isfinite(softmax.largest) || !std::isfinite(softmax.total)) {
    return absl::InternalError(kLogitsNotFinite);
  }
  return softmax;
}

absl::StatusOr<TokenDraw> Sampler::Draw(std::span<const float> logits,
                                        const SamplingSettings& settings, double uniform,
                                        const TokenHistory& history) {
  const bool greedy = settings.temperature == 0;
  const double scale = greedy ? 1.0 : 1.0 / settings.temperature;
  ASSIGN_OR_RETURN(const Softmax whole, FillSoftmax(logits, scale));
  Softmax drawn = whole;
  if (settings.changes_logits()) {
    ChangeLogits(logits, settings, history);
    ASSIGN_OR_RETURN(drawn, FillSoftmax(changed_, scale));
  }
  if (settings.min_p > 0) drawn.total = CutSmallWeights(settings.min_p);
  TokenDraw draw;
  if (greedy) {
    draw.token = drawn.best;
  } else if (settings.top_p >= 1 && settings.top_k == 0) {
    draw.token = DrawFromAll(drawn.total, uniform);
  } else {
    draw.token = DrawFromLargest(settings, drawn.total, uniform);
  }
  draw.log_prob = whole.LogProb(logits[draw.token]);
  return draw;
}

absl::StatusOr<TokenLogProbs> Sampler::LogProbs(std::span<const float> logits, int32_t token,
                                                int top) {
  ASSIGN_OR_RETURN(const Softmax softmax, FillSoftmax(logits, /*scale=*/1.0));
  TokenLogProbs result;
  const float own = logits[token];
  result.token = {token, softmax.LogProb(own)};
  result.rank = 1 + static_cast<int32_t>(std::count_if(logits.begin(), logits.end(),
                                                       [own](float logit) { return logit > own; }));
  if (top == 0) return result;
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  const size_t kept = std::min<size_t>(top, order_.size());
  std::partial_sort(order_.begin(), order_.begin() + kept, order_.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  for (size_t i = 0; i < kept; ++i) {
    result.top.push_back({order_[i], softmax.LogProb(logits[order_[i]])});
  }
  return result;
}

void Sampler::ChangeLogits(std::span<const float> logits, const SamplingSettings& settings,
                           const TokenHistory& history) {
  changed_.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : settings.logit_bias) changed_[token] += bias;
  const auto repetition = static_cast<float>(settings.repetition_penalty);
  const auto frequency = static_cast<float>(settings.frequency_penalty);
  const auto presence = static_cast<float>(settings.presence_penalty);
  counts_.resize(logits.size());
  // Each token once: a count of -1 marks those whose logit has its repetition penalty.
  const auto repeat = [&](int32_t token) {
    if (counts_[token] == -1) return;
    counts_[token] = -1;
    float& logit = changed_[token];
    logit = logit > 0 ? logit / repetition : logit * repetition;
  };
  if (repetition != 1) {
    for (const int32_t token : history.prompt) repeat(token);
    for (const int32_t token : history.generated) repeat(token);
    for (const int32_t token : history.prompt) counts_[token] = 0;
    for (const int32_t token : history.generated) counts_[token] = 0;
  }
  for (const int32_t token : history.generated) ++counts_[token];
  for (const int32_t token : history.generated) {
    const int32_t count = std::exchange(counts_[token], 0);
    if (count == 0) continue;  // an earlier occurrence had the penalties
    changed_[token] -= frequency * static_cast<float>(count);
    changed_[token] -= presence;
  }
}

double Sampler::CutSmallWeights(double min_p) {
  const auto least = static_cast<float>(min_p);
  double total = 0;
  for (float& weight : weights_) {
    if (weight < least) weight = 0;
    total += weight;
  }
  return total;
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
  // A weight that min_p set to 0 must not be the last one kept.
  while (settings.min_p > 0 && kept > 1 && weights_[order_[kept - 1]] == 0) --kept;
  const double target = uniform * mass;
  double cumulative = 0;
  for (size_t i = 0; i + 1 < kept; ++i) {
    cumulative += weights_[order_[i]];
    if (cumulative > target) return order_[i];
  }
  return order_[kept - 1];
}

}  // namespace tritonrl
