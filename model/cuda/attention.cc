#include "model/cuda/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cudnn_frontend.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tritonrl {
namespace {

namespace fe = cudnn_frontend;
using Attributes = std::shared_ptr<fe::graph::Tensor_attributes>;

// Names of what a graph reads and writes.
enum Uid : int64_t { kQ = 1, kK, kV, kOut, kLse, kDOut, kDQ, kDK, kDV, kLengths, kOffsets = 100 };

// Elements from one sequence to the next, which the offsets say: any number will do that cuDNN
// accepts for the alignment.
constexpr int64_t kApart = int64_t{1} << 30;

void Check(fe::error_t error, const char* what) {
  TORCH_CHECK(error.is_good(), "cuDNN attention: ", what, ": ", error.get_message());
}

// What a plan depends on: shapes and strides. One for each of forward and backward.
struct Shape {
  bool backward = false, deterministic = false;
  int64_t sequences = 0, max_length = 0, heads = 0, keys = 0, dim = 0;
  // Elements from one row to the next: q, k, v, out, d_out, d_q, d_k, d_v.
  std::array<int64_t, 8> strides = {};

  auto operator<=>(const Shape&) const = default;
};

// A graph, and the strides for which it reads offsets: each is multiplied by its own.
struct Plan {
  std::shared_ptr<fe::graph::Graph> graph;
  std::map<int64_t, int64_t> offsets;  // stride -> uid
};

class PlanBuilder {
 public:
  explicit PlanBuilder(const Shape& shape) : shape_(shape) {
    plan_.graph = std::make_shared<fe::graph::Graph>();
    plan_.graph->set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    lengths_ = Integers("lengths", kLengths, shape.sequences);
  }

  Plan Build(cudnnHandle_t handle) {
    const Attributes q = Rows("q", kQ, shape_.heads, shape_.strides[0]);
    const Attributes k = Rows("k", kK, shape_.keys, shape_.strides[1]);
    const Attributes v = Rows("v", kV, shape_.keys, shape_.strides[2]);
    if (shape_.backward) {
      AddBackward(q, k, v);
    } else {
      AddForward(q, k, v);
    }
    Check(plan_.graph->build(handle, {fe::HeurMode_t::A}), "no plan for these shapes");
    return std::move(plan_);
  }

 private:
  Attributes Integers(const char* name, int64_t uid, int64_t count) {
    return plan_.graph->tensor(fe::graph::Tensor_attributes()
                                   .set_name(name)
                                   .set_uid(uid)
                                   .set_dim({count, 1, 1, 1})
                                   .set_stride({1, 1, 1, 1})
                                   .set_data_type(fe::DataType_t::INT32));
  }

  // Offsets of the sequences in elements, for rows of that stride.
  Attributes Offsets(int64_t stride) {
    const auto [found, fresh] =
        plan_.offsets.emplace(stride, kOffsets + static_cast<int64_t>(plan_.offsets.size()));
    if (fresh) offsets_[stride] = Integers("offsets", found->second, shape_.sequences + 1);
    return offsets_[stride];
  }

  std::vector<int64_t> Dim(int64_t heads) const {
    return {shape_.sequences, heads, shape_.max_length, shape_.dim};
  }
  std::vector<int64_t> Stride(int64_t row) const { return {kApart, shape_.dim, row, 1}; }

  Attributes Rows(const char* name, int64_t uid, int64_t heads, int64_t row) {
    const Attributes rows = plan_.graph->tensor(
        fe::graph::Tensor_attributes().set_name(name).set_uid(uid).set_dim(Dim(heads)).set_stride(
            Stride(row)));
    rows->set_ragged_offset(Offsets(row));
    return rows;
  }
  void Result(const Attributes& result, int64_t uid, int64_t heads, int64_t row) {
    result->set_output(true).set_uid(uid).set_dim(Dim(heads)).set_stride(Stride(row));
    result->set_ragged_offset(Offsets(row));
  }
  // [T, H] fp32.
  void MakeLse(const Attributes& lse) {
    lse->set_uid(kLse)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({shape_.sequences, shape_.heads, shape_.max_length, 1})
        .set_stride({kApart, 1, shape_.heads, 1});
    lse->set_ragged_offset(Offsets(shape_.heads));
  }

  float Scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.dim)); }

  void AddForward(const Attributes& q, const Attributes& k, const Attributes& v) {
    auto options = fe::graph::SDPA_attributes()
                       .set_name("attention")
                       .set_generate_stats(true)
                       .set_attn_scale(Scale())
                       .set_padding_mask(true)
                       .set_seq_len_q(lengths_)
                       .set_seq_len_kv(lengths_)
                       .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
                       .set_diagonal_band_right_bound(0);
    auto [out, lse] = plan_.graph->sdpa(q, k, v, options);
    Result(out, kOut, shape_.heads, shape_.strides[3]);
    lse->set_output(true);
    MakeLse(lse);
  }

  void AddBackward(const Attributes& q, const Attributes& k, const Attributes& v) {
    const Attributes out = Rows("out", kOut, shape_.heads, shape_.strides[3]);
    const Attributes d_out = Rows("d_out", kDOut, shape_.heads, shape_.strides[4]);
    const Attributes lse = plan_.graph->tensor(fe::graph::Tensor_attributes().set_name("lse"));
    MakeLse(lse);
    auto options = fe::graph::SDPA_backward_attributes()
                       .set_name("attention_backward")
                       .set_attn_scale(Scale())
                       .set_padding_mask(true)
                       .set_seq_len_q(lengths_)
                       .set_seq_len_kv(lengths_)
                       .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
                       .set_diagonal_band_right_bound(0)
                       .set_deterministic_algorithm(shape_.deterministic);
    auto [d_q, d_k, d_v] = plan_.graph->sdpa_backward(q, k, v, out, d_out, lse, options);
    Result(d_q, kDQ, shape_.heads, shape_.strides[5]);
    Result(d_k, kDK, shape_.keys, shape_.strides[6]);
    Result(d_v, kDV, shape_.keys, shape_.strides[7]);
  }

  const Shape shape_;
  Plan plan_;
  Attributes lengths_;
  std::map<int64_t, Attributes> offsets_;
};

}  // namespace

struct CudnnAttention::Impl {
  Impl(at::Device device, bool deterministic) : device(device), deterministic(deterministic) {
    const c10::cuda::CUDAGuard guard(device);
    TORCH_CHECK(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS, "cuDNN does not start");
  }
  ~Impl() { cudnnDestroy(handle); }

  const Plan& PlanFor(const Shape& shape) {
    auto found = plans.find(shape);
    if (found == plans.end()) {
      found = plans.emplace(shape, PlanBuilder(shape).Build(handle)).first;
    }
    return found->second;
  }

  void Run(const Shape& shape, const PackedLengths& lengths,
           std::unordered_map<int64_t, void*> places) {
    const std::lock_guard<std::mutex> lock(mutex);
    const c10::cuda::CUDAGuard guard(device);
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device.index()).stream();
    TORCH_CHECK(cudnnSetStream(handle, stream) == CUDNN_STATUS_SUCCESS, "cuDNN: no stream");
    const Plan& plan = PlanFor(shape);
    std::vector<at::Tensor> offsets;
    for (const auto& [stride, uid] : plan.offsets) {
      offsets.push_back(lengths.offsets * stride);
      places[uid] = offsets.back().data_ptr();
    }
    places[kLengths] = lengths.lengths.data_ptr();
    const auto room = c10::cuda::CUDACachingAllocator::get()->allocate(
        std::max<int64_t>(1, plan.graph->get_workspace_size()));
    Check(plan.graph->execute(handle, places, room.get()), "a call");
  }

  const at::Device device;
  const bool deterministic;
  cudnnHandle_t handle = nullptr;
  std::mutex mutex;
  std::map<Shape, Plan> plans;
};

PackedLengths PackLengths(const std::vector<int64_t>& offsets, at::Device device) {
  const int64_t count = static_cast<int64_t>(offsets.size()) - 1;
  const int64_t padded =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, count))));
  at::Tensor host = at::empty({2 * padded + 1}, at::kInt);
  int32_t* places = host.data_ptr<int32_t>();
  int32_t* lengths = places + padded + 1;
  int64_t longest = 1;
  for (int64_t i = 0; i <= padded; ++i) {
    places[i] = static_cast<int32_t>(offsets[std::min(i, count)]);
    if (i == 0) continue;
    lengths[i - 1] = places[i] - places[i - 1];
    longest = std::max<int64_t>(longest, lengths[i - 1]);
  }
  const at::Tensor moved = host.to(device);
  // Steps of an eighth of the next power of two, at least 128.
  const int64_t power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(longest)));
  const int64_t step = std::max<int64_t>(128, power / 8);
  return {moved.narrow(0, 0, padded + 1), moved.narrow(0, padded + 1, padded),
          (longest + step - 1) / step * step};
}

CudnnAttention::CudnnAttention(at::Device device, bool deterministic)
    : impl_(std::make_unique<Impl>(device, deterministic)) {}
CudnnAttention::~CudnnAttention() = default;

bool CudnnAttention::Takes(const at::Tensor& x, int64_t head_dim) {
  return x.is_cuda() && x.scalar_type() == at::kBFloat16 && (head_dim == 64 || head_dim == 128);
}

void CudnnAttention::Forward(const PackedLengths& lengths, const AttentionHeads& in, at::Tensor out,
                             at::Tensor lse) {
  if (out.numel() == 0) return;
  const Shape shape = {
      .sequences = lengths.lengths.size(0),
      .max_length = lengths.max_length,
      .heads = in.q.size(1),
      .keys = in.k.size(1),
      .dim = in.q.size(2),
      .strides = {in.q.stride(0), in.k.stride(0), in.v.stride(0), out.stride(0)}};
  impl_->Run(shape, lengths,
             {{kQ, in.q.data_ptr()},
              {kK, in.k.data_ptr()},
              {kV, in.v.data_ptr()},
              {kOut, out.data_ptr()},
              {kLse, lse.data_ptr()}});
}

void CudnnAttention::Backward(const PackedLengths& lengths, const AttentionHeads& in,
                              const at::Tensor& out, const at::Tensor& lse,
                              const at::Tensor& d_out, const AttentionHeads& d_in) {
  if (out.numel() == 0) return;
  const Shape shape = {
      .backward = true,
      .deterministic = impl_->deterministic,
      .sequences = lengths.lengths.size(0),
      .max_length = lengths.max_length,
      .heads = in.q.size(1),
      .keys = in.k.size(1),
      .dim = in.q.size(2),
      .strides = {in.q.stride(0), in.k.stride(0), in.v.stride(0), out.stride(0), d_out.stride(0),
                  d_in.q.stride(0), d_in.k.stride(0), d_in.v.stride(0)}};
  impl_->Run(shape, lengths,
             {{kQ, in.q.data_ptr()},
              {kK, in.k.data_ptr()},
              {kV, in.v.data_ptr()},
              {kOut, out.data_ptr()},
              {kLse, lse.data_ptr()},
              {kDOut, d_out.data_ptr()},
              {kDQ, d_in.q.data_ptr()},
              {kDK, d_in.k.data_ptr()},
              {kDV, d_in.v.data_ptr()}});
}

}  // namespace tritonrl
