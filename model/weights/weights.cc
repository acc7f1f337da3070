#include "model/weights/weights.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/random.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/weights/safetensors.h"

namespace tritonrl {

namespace {

constexpr int64_t kAlignment = 64;  // elements

// Removes weight files of an earlier save that are not in `written`: a reader would load them
// instead of or beside the new files.
absl::Status RemoveStaleFiles(const std::string& dir, const std::vector<std::string>& written) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(dir));
  for (const std::string& name : names) {
    const bool ours = name == "model.safetensors" || name == "model.safetensors.index.json" ||
                      (absl::StartsWith(name, "model-") && absl::EndsWith(name, ".safetensors"));
    if (ours && std::find(written.begin(), written.end(), name) == written.end()) {
      RETURN_IF_ERROR(RemoveTree(JoinPath(dir, name)));
    }
  }
  return absl::OkStatus();
}

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Splits parameters into files of at most `limit` bytes; a larger tensor gets its own file.
std::vector<NamedTensors> SplitShards(const Weights& weights, at::ScalarType dtype, int64_t limit) {
  std::vector<NamedTensors> shards(1);
  int64_t bytes = 0;
  for (const ParameterInfo& info : weights.layout().parameters) {
    const int64_t size = info.size * static_cast<int64_t>(c10::elementSize(dtype));
    if (bytes > 0 && bytes + size > limit) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += size;
    shards.back().emplace_back(info.name, weights.Get(info.name).to(dtype));
  }
  return shards;
}

}  // namespace

ParameterLayout::ParameterLayout(const ModelConfig& c) {
  const auto begin_part = [this] {
    if (!parts.empty()) {
      parts.back().end = flat_size;
      parts.back().past_last = parameters.size();
    }
    parts.push_back({.begin = flat_size, .first = parameters.size()});
  };
  auto add = [this](std::string name, std::vector<int64_t> shape) {
    ParameterInfo info;
    info.name = std::move(name);
    info.size = 1;
    for (int64_t extent : shape) info.size *= extent;
    info.shape = std::move(shape);
    info.offset = flat_size;
    flat_size += (info.size + kAlignment - 1) / kAlignment * kAlignment;
    parameters.push_back(std::move(info));
  };
  begin_part();
  add("model.embed_tokens.weight", {c.vocab_size, c.hidden_size});
  for (int64_t i = 0; i < c.num_layers; ++i) {
    const std::string layer = absl::StrCat("model.layers.", i, ".");
    begin_part();
    add(layer + "input_layernorm.weight", {c.hidden_size});
    add(layer + "self_attn.q_proj.weight", {c.query_size(), c.hidden_size});
    add(layer + "self_attn.k_proj.weight", {c.kv_size(), c.hidden_size});
    add(layer + "self_attn.v_proj.weight", {c.kv_size(), c.hidden_size});
    if (c.qkv_bias()) {
      add(layer + "self_attn.q_proj.bias", {c.query_size()});
      add(layer + "self_attn.k_proj.bias", {c.kv_size()});
      add(layer + "self_attn.v_proj.bias", {c.kv_size()});
    }
    if (c.qk_norm()) {
      add(layer + "self_attn.q_norm.weight", {c.head_dim});
      add(layer + "self_attn.k_norm.weight", {c.head_dim});
    }
    add(layer + "self_attn.o_proj.weight", {c.hidden_size, c.query_size()});
    if (c.o_bias()) add(layer + "self_attn.o_proj.bias", {c.hidden_size});
    add(layer + "post_attention_layernorm.weight", {c.hidden_size});
    add(layer + "mlp.gate_proj.weight", {c.intermediate_size, c.hidden_size});
    add(layer + "mlp.up_proj.weight", {c.intermediate_size, c.hidden_size});
    add(layer + "mlp.down_proj.weight", {c.hidden_size, c.intermediate_size});
    if (c.mlp_bias) {
      add(layer + "mlp.gate_proj.bias", {c.intermediate_size});
      add(layer + "mlp.up_proj.bias", {c.intermediate_size});
      add(layer + "mlp.down_proj.bias", {c.hidden_size});
    }
  }
  begin_part();
  add("model.norm.weight", {c.hidden_size});
  if (!c.tie_word_embeddings) add("lm_head.weight", {c.vocab_size, c.hidden_size});
  parts.back().end = flat_size;
  parts.back().past_last = parameters.size();
}

ParameterBuffer::ParameterBuffer(const ModelConfig& config, at::Device device, at::ScalarType dtype)
    : ParameterBuffer(config, at::zeros({ParameterLayout(config).flat_size},
                                        at::TensorOptions(dtype).device(device))) {}

ParameterBuffer::ParameterBuffer(const ModelConfig& config, at::Tensor flat)
    : config_(config), layout_(config), flat_(std::move(flat)) {
  for (const ParameterInfo& info : layout_.parameters) {
    views_[info.name] = flat_.narrow(0, info.offset, info.size).view(info.shape);
  }
}

const at::Tensor& ParameterBuffer::Get(const std::string& name) const {
  const auto found = views_.find(name);
  TORCH_CHECK(found != views_.end(), "no parameter named ", name);
  return found->second;
}

absl::Status Weights::Save(const std::string& dir, at::ScalarType dtype,
                           int64_t max_shard_bytes) const {
  if (dtype != at::kFloat && dtype != at::kBFloat16) {
    return absl::InvalidArgumentError("weights are saved as float32 or bfloat16");
  }
  RETURN_IF_ERROR(CreateDirectories(dir));
  const std::vector<NamedTensors> shards = SplitShards(*this, dtype, max_shard_bytes);
  std::vector<std::string> written;
  nlohmann::ordered_json index;
  int64_t total = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shards.size() == 1 ? "model.safetensors"
                                                : absl::StrFormat("model-%05d-of-%05d.safetensors",
                                                                  i + 1, shards.size());
    RETURN_IF_ERROR(WriteSafetensors(JoinPath(dir, name), shards[i]));
    written.push_back(name);
    for (const auto& [tensor_name, tensor] : shards[i]) {
      index["weight_map"][tensor_name] = name;
      total += tensor.numel() * static_cast<int64_t>(tensor.element_size());
    }
  }
  if (shards.size() > 1) {
    index["metadata"]["total_size"] = total;
    written.push_back("model.safetensors.index.json");
    RETURN_IF_ERROR(WriteFileAtomic(JoinPath(dir, written.back()), index.dump(2) + "\n"));
  }
  // At once: a reader prefers an old model.safetensors to the new shards.
  RETURN_IF_ERROR(RemoveStaleFiles(dir, written));
  return WriteModelConfig(config(), dir, dtype == at::kFloat ? "float32" : "bfloat16");
}

std::shared_ptr<Weights> Weights::Clone() const {
  auto copy = std::make_shared<Weights>(config(), device(), dtype());
  copy->flat().copy_(flat());
  return copy;
}

Gradients::Gradients(const Weights& weights, const GradientRingBuffer& ring_buffer)
    : ParameterBuffer(
          weights.config(),
          MapGradientRingBuffer(ring_buffer, weights.layout().flat_size, weights.device())),
      ring_buffer_(ring_buffer) {}

void Gradients::Zero() {
  TORCH_CHECK(!ring_buffer_.is_ring(), "gradients in a ring buffer are zeroed part by part");
  flat().zero_();
}

void Gradients::ZeroAccumulated(const ParameterPart& part) {
  for (size_t i = part.first; i < part.past_last; ++i) {
    const ParameterInfo& info = layout().parameters[i];
    const bool looked_up = info.offset == 0 && !config().tie_word_embeddings;
    if (!info.decay() || looked_up) Get(info.name).zero_();
    const int64_t end = info.offset + info.size;
    const int64_t next = i + 1 < part.past_last ? layout().parameters[i + 1].offset : part.end;
    if (ring_buffer_.is_ring() && end < next) flat().narrow(0, end, next - end).zero_();
  }
}

namespace {

constexpr double kInitStd = 0.02;
constexpr int64_t kDrawnAtOnce = int64_t{16} << 20;

// Of a parameter of one dimension.
double InitialValue(const ParameterInfo& info) {
  return absl::EndsWith(info.name, ".bias") ? 0.0 : 1.0;
}

// Draws random elements of one model's matrices with several threads.
class Drawing {
 public:
  Drawing(const ModelConfig& config, uint64_t seed)
      : seed_(seed),
        residual_std_(kInitStd / std::sqrt(2.0 * config.num_layers)),
        threads_(at::get_num_threads()) {}

  // Draws `count` elements of matrix `p` of the whole model from element `first` on; fp32 on the
  // CPU.
  at::Tensor Draw(size_t p, const ParameterInfo& info, int64_t first, int64_t count) {
    constexpr int64_t kPiece = 1 << 16;
    const bool residual =
        absl::EndsWith(info.name, "o_proj.weight") || absl::EndsWith(info.name, "down_proj.weight");
    const double std = residual ? residual_std_ : kInitStd;
    const uint64_t key = MixKeys({seed_, p});
    at::Tensor values = at::empty({count}, at::kFloat);
    float* data = values.data_ptr<float>();
    for (int64_t begin = 0; begin < count; begin += kPiece) {
      threads_.Schedule([=] {
        Philox random(key);
        random.SkipBlocks(first + begin);
        for (int64_t i = begin; i < std::min(count, begin + kPiece); ++i) {
          data[i] = static_cast<float>(random.Normal() * std);
        }
      });
    }
    threads_.Wait();
    return values;
  }

 private:
  const uint64_t seed_;
  const double residual_std_;
  ThreadPool threads_;
};

}  // namespace

std::shared_ptr<Weights> Weights::RandomInit(const ModelConfig& config, uint64_t seed,
                                             at::Device device, at::ScalarType dtype,
                                             absl::Span<const FlatRange> parts) {
  auto weights = std::make_shared<Weights>(config, device, dtype);
  const std::vector<ParameterInfo>& parameters = weights->layout().parameters;
  const FlatRange whole = {0, weights->layout().flat_size};
  if (parts.empty()) parts = absl::MakeConstSpan(&whole, 1);
  Drawing drawing(config, seed);
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (parameters[p].shape.size() == 1) {
      weights->Get(parameters[p].name).fill_(InitialValue(parameters[p]));
      continue;
    }
    const int64_t offset = parameters[p].offset;
    for (const FlatRange& part : parts) {
      const int64_t end = std::min(part.end, offset + parameters[p].size);
      for (int64_t begin = std::max(part.begin, offset); begin < end; begin += kDrawnAtOnce) {
        const int64_t count = std::min(kDrawnAtOnce, end - begin);
        weights->flat()
            .narrow(0, begin, count)
            .copy_(drawing.Draw(p, parameters[p], begin - offset, count));
      }
    }
  }
  return weights;
}

absl::StatusOr<std::shared_ptr<Weights>> Weights::RandomShard(const ModelConfig& config,
                                                              uint64_t seed, at::Device device,
                                                              at::ScalarType dtype,
                                                              const WeightShard& shard) {
  ASSIGN_OR_RETURN(const ModelConfig part, ShardConfig(config, shard.ranks));
  auto weights = std::make_shared<Weights>(part, device, dtype);
  const ParameterLayout whole(config);
  Drawing drawing(config, seed);
  for (size_t p = 0; p < whole.parameters.size(); ++p) {
    const ParameterInfo& info = whole.parameters[p];
    const at::Tensor& own = weights->Get(info.name);
    if (info.shape.size() == 1) {
      own.fill_(InitialValue(info));
      continue;
    }
    // Draw is contiguous: it draws whole rows even if the rank holds only a few of their columns.
    const ShardSlice slice = ShardSliceOf(info, weights->layout().parameters[p], shard.rank);
    const int64_t most = std::max<int64_t>(1, kDrawnAtOnce / slice.width);
    for (int64_t row = 0; row < slice.rows; row += most) {
      const int64_t rows = std::min(most, slice.rows - row);
      own.narrow(0, row, rows)
          .copy_(drawing.Draw(p, info, (slice.row + row) * slice.width, rows * slice.width)
                     .view({rows, slice.width})
                     .narrow(1, slice.column, slice.columns));
    }
  }
  return weights;
}

absl::StatusOr<ModelConfig> ShardConfig(const ModelConfig& config, int ranks) {
  if (ranks < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model cannot be sharded over ", ranks, " ranks"));
  }
  ModelConfig part = config;
  const std::pair<const char*, int64_t*> divided[] = {
      {"num_attention_heads", &part.num_heads},
      {"num_key_value_heads", &part.num_kv_heads},
      {"intermediate_size", &part.intermediate_size}};
  for (const auto& [field, size] : divided) {
    if (*size % ranks != 0) {
      return absl::InvalidArgumentError(absl::StrCat("the model cannot be sharded over ", ranks,
                                                     " ranks: its ", field, " is ", *size,
                                                     ", which ", ranks, " does not divide"));
    }
    *size /= ranks;
  }
  return part;
}

ShardSlice ShardSliceOf(const ParameterInfo& whole, const ParameterInfo& part, int rank) {
  ShardSlice slice;
  slice.width = whole.shape.back();
  slice.columns = part.shape.back();
  slice.column = slice.columns < slice.width ? rank * slice.columns : 0;
  if (whole.shape.size() > 1) {
    slice.rows = part.shape[0];
    slice.row = slice.rows < whole.shape[0] ? rank * slice.rows : 0;
  }
  return slice;
}

absl::StatusOr<std::shared_ptr<Weights>> ExtractShard(const Weights& whole,
                                                      const WeightShard& shard) {
  ASSIGN_OR_RETURN(const ModelConfig config, ShardConfig(whole.config(), shard.ranks));
  auto weights = std::make_shared<Weights>(config, whole.device(), whole.dtype());
  const std::vector<ParameterInfo>& parameters = weights->layout().parameters;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const ParameterInfo& from = whole.layout().parameters[p];
    const ShardSlice slice = ShardSliceOf(from, parameters[p], shard.rank);
    weights->Get(from.name)
        .view({slice.rows, slice.columns})
        .copy_(whole.Get(from.name)
                   .view({-1, slice.width})
                   .narrow(0, slice.row, slice.rows)
                   .narrow(1, slice.column, slice.columns));
  }
  return weights;
}

}  // namespace tritonrl
