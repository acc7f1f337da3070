// Parameters of a transformer and their gradients under Hugging Face names. All parameters are
// views of one flat buffer, which the optimizer, the all-reduce of gradients and checkpoints
// handle as one tensor.

#ifndef TRITONRL_MODEL_WEIGHTS_WEIGHTS_H_
#define TRITONRL_MODEL_WEIGHTS_WEIGHTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/weights/gradient_ring_buffer.h"
#include "model/weights/model_config.h"
#include "parallel/shard_plan.h"

namespace tritonrl {

struct WeightShard;

struct ParameterInfo {
  std::string name;            // e.g. "model.layers.0.self_attn.q_proj.weight"
  std::vector<int64_t> shape;  // as in Hugging Face files: linear layers are [out, in]
  int64_t offset = 0;          // first element in the flat buffer
  int64_t size = 0;            // number of elements

  // Matrices are decayed by AdamW, norm weights (one dimension) are not.
  bool decay() const { return shape.size() > 1; }
};

// Contiguous parameters whose gradients are computed together.
struct ParameterPart {
  int64_t begin = 0, end = 0;       // elements of the flat buffer
  size_t first = 0, past_last = 0;  // indices of the parameters
  int64_t size() const { return end - begin; }
};

// The parameters of a model in the order of the flat buffer. Each starts at a multiple of 64
// elements; the gaps hold zeros. A tied head has no parameter of its own.
struct ParameterLayout {
  explicit ParameterLayout(const ModelConfig& config);

  std::vector<ParameterInfo> parameters;
  // The embedding, each layer, what follows them (the final norm and a head that is not tied). A
  // backward goes through them from the last to the first.
  std::vector<ParameterPart> parts;
  int64_t flat_size = 0;  // elements with gaps
};

// Views of one flat buffer by name; base of Weights and Gradients.
class ParameterBuffer {
 public:
  // Zeros.
  ParameterBuffer(const ModelConfig& config, at::Device device, at::ScalarType dtype);
  // Views of `flat` [layout().flat_size].
  ParameterBuffer(const ModelConfig& config, at::Tensor flat);
  ParameterBuffer(const ParameterBuffer&) = delete;
  ParameterBuffer& operator=(const ParameterBuffer&) = delete;

  const ModelConfig& config() const { return config_; }
  const ParameterLayout& layout() const { return layout_; }
  // [layout().flat_size]
  const at::Tensor& flat() const { return flat_; }
  at::Device device() const { return flat_.device(); }
  at::ScalarType dtype() const { return flat_.scalar_type(); }
  // View of the named parameter. An unknown name is a programming error (throws c10::Error).
  const at::Tensor& Get(const std::string& name) const;

 private:
  ModelConfig config_;
  ParameterLayout layout_;
  at::Tensor flat_;
  std::unordered_map<std::string, at::Tensor> views_;
};

class Weights : public ParameterBuffer {
 public:
  using ParameterBuffer::ParameterBuffer;

  // Matrices normal(0, 0.02), the two that write into the residual stream scaled by
  // 1/sqrt(2 * layers); norm weights one. Drawn by Philox keyed by (seed, parameter, element), by
  // as many threads as ATen's, so the values do not depend on device or dtype beyond rounding, nor
  // on threads. `parts`: draws only the elements in these ranges of flat(), at 60 ns each, and
  // leaves zeros in the other matrix elements; none: draws all.
  static std::shared_ptr<Weights> RandomInit(const ModelConfig& config, uint64_t seed,
                                             at::Device device = at::kCPU,
                                             at::ScalarType dtype = at::kFloat,
                                             absl::Span<const FlatRange> parts = {});

  // The same elements of one rank's part of that model. Errors: those of ShardConfig.
  static absl::StatusOr<std::shared_ptr<Weights>> RandomShard(const ModelConfig& config,
                                                              uint64_t seed, at::Device device,
                                                              at::ScalarType dtype,
                                                              const WeightShard& shard);

  // Writes `dir`/config.json and model.safetensors in `dtype` (kFloat or kBFloat16), in several
  // shards with an index when larger than `max_shard_bytes`. Files are replaced atomically.
  absl::Status Save(const std::string& dir, at::ScalarType dtype,
                    int64_t max_shard_bytes = int64_t{5} << 30) const;
  absl::Status Save(const std::string& dir) const { return Save(dir, dtype()); }

  // Copy of the values, on the same device and in the same type.
  std::shared_ptr<Weights> Clone() const;
};

// fp32 sums of dLoss/dParameter, laid out as the weights.
class Gradients : public ParameterBuffer {
 public:
  // Zeros on the device of `weights`.
  explicit Gradients(const Weights& weights)
      : Gradients(weights, GradientRingBuffer{.own = weights.layout().flat_size}) {}
  // In a ring buffer: a part is valid from when a backward writes it until a part that shares its
  // memory is written.
  Gradients(const Weights& weights, const GradientRingBuffer& ring_buffer);

  const GradientRingBuffer& ring_buffer() const { return ring_buffer_; }

  // Zeroes all gradients; not for a ring buffer.
  void Zero();
  // Zeroes what a backward always adds to: gradients of the part's norms and of an embedding that
  // is not tied; in a ring buffer also the gaps between parameters.
  void ZeroAccumulated(const ParameterPart& part);

 private:
  GradientRingBuffer ring_buffer_;
};

// The part of each parameter that rank `rank` of `ranks` holds (tensor parallelism; Shoeybi et al.,
// "Megatron-LM", 2019): heads and intermediate columns are divided, so that GEMMs which read a
// divided input give partial sums; embedding, norms and head are whole on every rank.
struct WeightShard {
  int rank = 0;
  int ranks = 1;
};

// The shape of one rank's shard as a model of its own: 1/ranks of the query heads, the key/value
// heads and the intermediate size. InvalidArgument naming a size that `ranks` does not divide.
absl::StatusOr<ModelConfig> ShardConfig(const ModelConfig& config, int ranks);

// Rows and columns of a whole parameter; one of a single dimension is one row.
struct ShardSlice {
  int64_t row = 0, rows = 1;
  int64_t column = 0, columns = 0;
  int64_t width = 0;  // columns of the whole parameter
};

// What a rank holds of `whole`, given its shape in the rank's own layout: rows of q, k, v, gate and
// up, columns of o and down, else everything.
ShardSlice ShardSliceOf(const ParameterInfo& whole, const ParameterInfo& part, int rank);

// A copy of a rank's part of whole weights, in the same type and on the same device; tests compare
// LoadWeightShard and RandomShard with it. Errors: those of ShardConfig.
absl::StatusOr<std::shared_ptr<Weights>> ExtractShard(const Weights& whole,
                                                      const WeightShard& shard);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHTS_WEIGHTS_H_
