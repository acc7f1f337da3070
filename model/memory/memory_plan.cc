#include "model/memory/memory_plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tritonrl {
namespace {

// Rates measured on an H200 at Qwen3-8B's shapes with 16,384 tokens.
constexpr double kGemmFlops = 669e12;
constexpr double kAttentionFlops = 601e12;
constexpr double kBytesPerSecond = 3.2e12;  // of the kernels between GEMMs

struct Sizes {
  explicit Sizes(const ModelConfig& c)
      : hidden(static_cast<double>(c.hidden_size)),
        query(static_cast<double>(c.query_size())),
        key(static_cast<double>(c.kv_size())),
        intermediate(static_cast<double>(c.intermediate_size)) {}
  double qkv() const { return query + 2 * key; }

  double hidden, query, key, intermediate;
};

double SequenceLength(const StepShape& step) {
  return static_cast<double>(step.max_length > 0 ? std::min(step.max_length, step.tokens)
                                                 : step.tokens);
}

// Returns the seconds to recompute `tensor` for one token of one layer. For SwiGLU's output the
// only cost is the write, because the backward kernel writes it beside the gradient. The cost of
// qkv includes its norm, which is dropped before qkv; it is counted even where norms are restored.
double SecondsPerToken(const ModelConfig& config, const StepShape& step, LayerTensor tensor) {
  const Sizes n(config);
  const double element = static_cast<double>(step.element_bytes);
  switch (tensor) {
    case LayerTensor::kActivated:
      return n.intermediate * element / kBytesPerSecond;
    case LayerTensor::kNorms:
      return 4 * n.hidden * element / kBytesPerSecond;
    case LayerTensor::kRotatedHeads:
      return 2 * (n.query + n.key) * element / kBytesPerSecond;
    case LayerTensor::kGateUp:
      return 4 * n.intermediate * n.hidden / kGemmFlops;
    case LayerTensor::kPostAttention:
      return 2 * n.query * n.hidden / kGemmFlops;
    case LayerTensor::kQkv:
      return 2 * n.qkv() * n.hidden / kGemmFlops + 2 * n.hidden * element / kBytesPerSecond;
    case LayerTensor::kAttention:
      return 2 * SequenceLength(step) * n.query / kAttentionFlops;
  }
  return 0;
}

// Returns the tensors in the order of recomputation time per byte, the cheapest first.
std::array<LayerTensor, kLayerTensors.size()> ByCost(const ModelConfig& config,
                                                     const StepShape& step) {
  std::array<LayerTensor, kLayerTensors.size()> order = kLayerTensors;
  const auto cost = [&](LayerTensor tensor) {
    return SecondsPerToken(config, step, tensor) /
           static_cast<double>(TensorBytes(config, step, tensor));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](LayerTensor a, LayerTensor b) { return cost(a) < cost(b); });
  return order;
}

struct Choice {
  std::vector<RecomputeSet> layers;
  StepPeak peak;
};

// Drops tensors until the step takes at most `room` bytes. If the step never fits, returns the
// choice with the lowest peak.
Choice DropUntilFits(const ModelConfig& config, const StepShape& step, int64_t room) {
  Choice best;
  best.layers.resize(config.num_layers);
  best.peak = PeakStepMemory(config, step, best.layers);
  std::vector<RecomputeSet> layers = best.layers;
  std::vector<std::pair<size_t, LayerTensor>> dropped;
  for (const LayerTensor tensor : ByCost(config, step)) {
    for (size_t i = 0; i < layers.size() && best.peak.bytes > room; ++i) {
      layers[i] = layers[i].With(tensor);
      dropped.emplace_back(i, tensor);
      const StepPeak peak = PeakStepMemory(config, step, layers);
      if (peak.bytes <= best.peak.bytes) best = {layers, peak};
    }
  }
  if (best.peak.bytes > room) return best;
  // Restores tensors, the last and most expensive drop first: a drop often frees more than needed.
  for (auto drop = dropped.rbegin(); drop != dropped.rend(); ++drop) {
    layers[drop->first] = layers[drop->first].Without(drop->second);
    const StepPeak peak = PeakStepMemory(config, step, layers);
    if (peak.bytes <= room) {
      best = {layers, peak};
    } else {
      layers[drop->first] = layers[drop->first].With(drop->second);
    }
  }
  return best;
}

int64_t Room(const ResidentMemory& held, const MemoryLimit& limit) {
  if (limit.bytes <= 0) return std::numeric_limits<int64_t>::max();
  return limit.bytes - limit.reserve - held.total();
}

std::string Gib(int64_t bytes) {
  const double gib = static_cast<double>(bytes) / (int64_t{1} << 30);
  return gib != 0 && gib < 0.1 ? absl::StrFormat("%.2f MiB", gib * 1024)
                               : absl::StrFormat("%.2f GiB", gib);
}

const char* Name(LayerTensor tensor) {
  switch (tensor) {
    case LayerTensor::kActivated:
      return "SwiGLU";
    case LayerTensor::kNorms:
      return "norms";
    case LayerTensor::kRotatedHeads:
      return "queries and keys (norm, RoPE)";
    case LayerTensor::kGateUp:
      return "gate and up projections";
    case LayerTensor::kPostAttention:
      return "attention's output projection";
    case LayerTensor::kQkv:
      return "query, key and value projections";
    case LayerTensor::kAttention:
      return "attention";
  }
  return "";
}

absl::Status DoesNotFit(const ModelConfig& config, const StepShape& step,
                        const ResidentMemory& held, const MemoryLimit& limit,
                        const StepPeak& least) {
  const int64_t largest = LargestBatch(config, step, held, limit);
  return absl::ResourceExhaustedError(absl::StrCat(
      "a micro-batch of ", step.tokens, " tokens needs at least ",
      Gib(held.total() + least.bytes + limit.reserve), " of memory (weights ", Gib(held.weights),
      ", gradients ", Gib(held.gradients), ", optimizer ", Gib(held.optimizer), ", other ",
      Gib(held.other), ", the step with the most recompute ", Gib(least.bytes), ", reserve ",
      Gib(limit.reserve), "), and there are ", Gib(limit.bytes), "; ",
      largest > 0 ? absl::StrCat("at most ", largest, " tokens fit")
                  : std::string("not even one token fits: use more GPUs or a smaller model")));
}

}  // namespace

ResidentMemory ResidentMemoryForTraining(const ModelConfig& config, const StateSharding& sharding) {
  const int64_t parameters = config.NumParameters(), ranks = sharding.ranks;
  const auto share = [&](int64_t bytes, int stage) {
    return sharding.zero_stage >= stage ? (bytes + ranks - 1) / ranks : bytes;
  };
  return {.weights = parameters * sharding.element_bytes,
          .gradients = share(parameters * 4, 2) +
                       (sharding.zero_stage == 2 ? sharding.ring_buffer_bytes : 0),
          .optimizer = share(parameters * sharding.state_bytes, 1)};
}

absl::StatusOr<MemoryPlan> PlanMemory(const ModelConfig& config, const StepShape& step,
                                      const ResidentMemory& held, const MemoryLimit& limit) {
  const int64_t room = Room(held, limit);
  Choice choice = DropUntilFits(config, step, room);
  if (choice.peak.bytes > room) return DoesNotFit(config, step, held, limit, choice.peak);
  MemoryPlan plan;
  for (const RecomputeSet set : choice.layers)
    plan.kept_bytes += SavedActivationBytes(config, step, set);
  const double recompute_share = RecomputeSeconds(config, step, choice.layers);
  plan.recompute_share = recompute_share / (recompute_share + StepSeconds(config, step));
  plan.layers = std::move(choice.layers);
  plan.peak_bytes = held.total() + choice.peak.bytes;
  plan.step = std::move(choice.peak);
  return plan;
}

int64_t LargestBatch(const ModelConfig& config, const StepShape& step, const ResidentMemory& held,
                     const MemoryLimit& limit) {
  const int64_t room = Room(held, limit);
  const auto fits = [&](int64_t tokens) {
    StepShape other = step;
    other.tokens = tokens;
    other.max_length = step.max_length > 0 ? std::min(step.max_length, tokens) : 0;
    other.target_rows = step.target_rows > 0 ? std::min(step.target_rows, tokens) : 0;
    return DropUntilFits(config, other, room).peak.bytes <= room;
  };
  // The search ends at 2^30 tokens, more than any batch has.
  int64_t low = 0, high = int64_t{1} << 30;
  while (high - low > 1) {
    const int64_t post_attention = low + (high - low) / 2;
    (fits(post_attention) ? low : high) = post_attention;
  }
  return low;
}

double StepSeconds(const ModelConfig& config, const StepShape& step) {
  const Sizes n(config);
  const double element = static_cast<double>(step.element_bytes);
  const double tokens = static_cast<double>(step.tokens);
  const double rows = static_cast<double>(step.target_rows > 0 ? step.target_rows : step.tokens);
  const double matrices = n.hidden * (n.qkv() + n.query + 3 * n.intermediate);
  // Rows read and written, forward and backward: SwiGLU 3 and 5, both norms together 4 and 8, norm
  // and RoPE of heads 2 and 3.
  const double bytes = element * (8 * n.intermediate + 12 * n.hidden + 5 * (n.query + n.key));
  const double layer = 6 * matrices / kGemmFlops +
                       7 * SequenceLength(step) * n.query / kAttentionFlops +
                       bytes / kBytesPerSecond;
  const double head = 6 * rows * n.hidden * static_cast<double>(config.vocab_size) / kGemmFlops;
  return static_cast<double>(config.num_layers) * tokens * layer + head;
}

double RecomputeSeconds(const ModelConfig& config, const StepShape& step,
                        absl::Span<const RecomputeSet> layers) {
  double seconds = 0;
  for (const RecomputeSet set : layers) {
    for (const LayerTensor tensor : kLayerTensors) {
      if (set.Has(tensor)) seconds += SecondsPerToken(config, step, tensor);
    }
  }
  return static_cast<double>(step.tokens) * seconds;
}

std::string DescribePlan(const ModelConfig& config, const StepShape& step,
                         const ResidentMemory& held, const MemoryLimit& limit,
                         const MemoryPlan& plan) {
  const int64_t all = config.num_layers * SavedActivationBytes(config, step, RecomputeSet());
  std::string text = absl::StrCat(
      "memory for ", step.tokens, " tokens: predicted peak ", Gib(plan.peak_bytes), " in ",
      plan.step.where,
      limit.bytes > 0
          ? absl::StrCat(" of ", Gib(limit.bytes), " less a reserve of ", Gib(limit.reserve))
          : std::string(", no limit"),
      "\n  weights ", Gib(held.weights), ", gradients ", Gib(held.gradients), ", optimizer ",
      Gib(held.optimizer), ", other ", Gib(held.other), "\n  activations kept ",
      Gib(plan.kept_bytes), " of ", Gib(all), ", other memory of the step ",
      Gib(plan.step.bytes - plan.kept_bytes), "\n");
  bool any = false;
  for (const LayerTensor tensor : kLayerTensors) {
    const int64_t layers = std::count_if(plan.layers.begin(), plan.layers.end(),
                                         [&](RecomputeSet set) { return set.Has(tensor); });
    if (layers == 0) continue;
    absl::StrAppend(&text, "  recomputed in ", layers, " of ", config.num_layers,
                    " layers: ", Name(tensor), "\n");
    any = true;
  }
  absl::StrAppend(&text, any ? absl::StrFormat("  recomputation is %.1f%% of the step's time\n",
                                               100 * plan.recompute_share)
                             : "  nothing is recomputed\n");
  return text;
}

}  // namespace tritonrl
