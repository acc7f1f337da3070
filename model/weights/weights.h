// Parameters of a transformer and their gradients under Hugging Face names. All parameters are
// views of one flat buffer, which the optimizer, the all-reduce of gradients and checkpoints treat
// as one tensor.

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
#include "parallel/zero_shard_plan.h"

namespace tritonrl {

struct WeightShard;

struct ParameterInfo {
  std::string name;            // e.g. "model.layers.0.self_attn.q_proj.weight"
  std::vector<int64_t> shape;  // as in Hugging Face files: linear layers are [out, in]
  int64_t offset = 0;          // first element in the flat buffer
  int64_t size = 0;            // number of elements

  // AdamW decays matrices, but not norm weights and biases (one dimension).
  bool decay() const { return shape.size() > 1; }
};

// Contiguous parameters whose gradients the backward pass computes together.
struct ParameterPart {
  int64_t begin = 0, end = 0;       // elements of the flat buffer
  size_t first = 0, past_last = 0;  // indices of the parameters
  int64_t size() const { return end - begin; }
};

// The parameters of a model in the order of the flat buffer. Each parameter starts at a multiple of
// 64 elements; the gaps hold zeros. A tied head has no parameter of its own.
struct ParameterLayout {
  explicit ParameterLayout(const ModelConfig& config);

  std::vector<ParameterInfo> parameters;
  // The embedding, each layer, then the final norm with an untied head. A backward pass goes from
  // the last part to the first.
  std::vector<ParameterPart> parts;
  int64_t flat_size = 0;  // elements, including the gaps
};

// Named views of one flat buffer; base of Weights and Gradients.
class ParameterBuffer {
 public:
  // Allocates a buffer of zeros.
  ParameterBuffer(const ModelConfig& config, at::Device device, at::ScalarType dtype);
  // Makes views of `flat` [layout().flat_size].
  ParameterBuffer(const ModelConfig& config, at::Tensor flat);
  ParameterBuffer(const ParameterBuffer&) = delete;
  ParameterBuffer& operator=(const ParameterBuffer&) = delete;

  const ModelConfig& config() const { return config_; }
  const ParameterLayout& layout() const { return layout_; }
  // [layout().flat_size]
  const at::Tensor& flat() const { return flat_; }
  at::Device device() const { return flat_.device(); }
  at::ScalarType dtype() const { return flat_.scalar_type(); }
  // Returns the view of the named parameter. Throws c10::Error for an unknown name, which is a
  // programming error.
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

  // Draws matrices from normal(0, 0.02), and scales the two that write into the residual stream by
  // 1/sqrt(2 * layers); norm weights are one, biases zero. Each value is drawn by Philox with the
  // key (seed, parameter, element), so the values do not depend on the number of threads (that of
  // ATen), nor, beyond rounding, on device or dtype. `parts`: draws only the matrix elements in
  // these ranges of flat(), at 60 ns each, and leaves the other matrix elements zero; if empty,
  // draws all.
  static std::shared_ptr<Weights> RandomInit(const ModelConfig& config, uint64_t seed,
                                             at::Device device = at::kCPU,
                                             at::ScalarType dtype = at::kFloat,
                                             absl::Span<const FlatRange> parts = {});

  // Draws one rank's shard of the model that RandomInit draws for `seed`. Errors: those of
  // ShardConfig.
  static absl::StatusOr<std::shared_ptr<Weights>> RandomShard(const ModelConfig& config,
                                                              uint64_t seed, at::Device device,
                                                              at::ScalarType dtype,
                                                              const WeightShard& shard);

  // Writes `dir`/config.json and model.safetensors in `dtype` (kFloat or kBFloat16; else
  // InvalidArgument), as several files with an index if larger than `max_shard_bytes`. Replaces
  // each file atomically.
  absl::Status Save(const std::string& dir, at::ScalarType dtype,
                    int64_t max_shard_bytes = int64_t{5} << 30) const;
  absl::Status Save(const std::string& dir) const { return Save(dir, dtype()); }

  // Returns a copy on the same device and of the same type.
  std::shared_ptr<Weights> Clone() const;
};

// fp32 sums of dLoss/dParameter in the layout of the weights.
class Gradients : public ParameterBuffer {
 public:
  // Allocates zeros on the device of `weights`.
  explicit Gradients(const Weights& weights)
      : Gradients(weights, GradientRingBuffer{.own = weights.layout().flat_size}) {}
  // Allocates a ring buffer: a part is valid from the backward's write to it until the backward
  // writes a part that shares its memory.
  Gradients(const Weights& weights, const GradientRingBuffer& ring_buffer);

  const GradientRingBuffer& ring_buffer() const { return ring_buffer_; }

  // Zeroes all gradients. Throws c10::Error for a ring buffer.
  void Zero();
  // Zeroes the gradients of `part` that a backward pass always adds to: those of norms and of an
  // untied embedding; in a ring buffer also the gaps between parameters.
  void ZeroAccumulated(const ParameterPart& part);

 private:
  GradientRingBuffer ring_buffer_;
};

// Selects the part of each parameter that rank `rank` of `ranks` holds (tensor parallelism; Shoeybi
// et al., "Megatron-LM", 2019). Heads and intermediate columns are divided, so that GEMMs which
// read a divided input give partial sums; every rank holds the whole embedding, norms and head.
struct WeightShard {
  int rank = 0;
  int ranks = 1;
};

// The shape of one rank's shard, expressed as the config of a smaller model: 1/ranks of the query
// heads, the key/value heads and the intermediate size. InvalidArgument naming a size that `ranks`
// does not divide.
absl::StatusOr<ModelConfig> ShardConfig(const ModelConfig& config, int ranks);

// A rectangle of a whole parameter; a parameter of one dimension counts as one row.
struct ShardSlice {
  int64_t row = 0, rows = 1;
  int64_t column = 0, columns = 0;
  int64_t width = 0;  // columns of the whole parameter
};

// The rectangle of `whole` that `rank` holds: rows of q, k, v, gate and up, columns of o and down,
// everything of the other parameters. `part` is the same parameter in the layout of the rank's
// shard.
ShardSlice ShardSliceOf(const ParameterInfo& whole, const ParameterInfo& part, int rank);

// Copies a rank's shard out of whole weights, in the same type and on the same device; tests
// compare LoadWeightShard and RandomShard with it. Errors: those of ShardConfig.
absl::StatusOr<std::shared_ptr<Weights>> ExtractShard(const Weights& whole,
                                                      const WeightShard& shard);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHTS_WEIGHTS_H_
