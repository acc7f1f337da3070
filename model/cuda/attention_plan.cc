#include "model/cuda/attention_plan.h"

#include <c10/util/Exception.h>

#include <cmath>
#include <utility>
#include <vector>

namespace tritonrl {
namespace {

namespace fe = cudnn_frontend;
using Attributes = std::shared_ptr<fe::graph::Tensor_attributes>;

// Elements from one sequence to the next, which the offsets say: any number will do that cuDNN
// accepts for the alignment.
constexpr int64_t kApart = int64_t{1} << 30;

class Builder {
 public:
  Builder(const AttentionShape& shape, int capability) : shape_(shape) {
    plan_.graph = std::make_shared<fe::graph::Graph>();
    plan_.graph->set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    if (capability > 0) plan_.graph->set_sm_version(capability);
    if (!shape.dense) lengths_ = Integers("lengths", kLengths, shape.sequences);
  }

  AttentionPlan Build() {
    const Attributes q = Rows("q", kQ, shape_.heads, shape_.strides[0]);
    const Attributes k = Rows("k", kK, shape_.keys, shape_.strides[1]);
    const Attributes v = Rows("v", kV, shape_.keys, shape_.strides[2]);
    if (shape_.backward) {
      AddBackward(q, k, v);
    } else {
      AddForward(q, k, v);
    }
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

  // [sequences, heads, rows, D] at its place; for inputs and results.
  void Place(const Attributes& x, int64_t uid, int64_t heads, int64_t row) {
    const int64_t apart = shape_.dense ? shape_.max_length * row : kApart;
    x->set_uid(uid)
        .set_dim({shape_.sequences, heads, shape_.max_length, shape_.dim})
        .set_stride({apart, shape_.dim, row, 1});
    if (!shape_.dense) x->set_ragged_offset(Offsets(row));
  }
  Attributes Rows(const char* name, int64_t uid, int64_t heads, int64_t row) {
    const Attributes rows = plan_.graph->tensor(fe::graph::Tensor_attributes().set_name(name));
    Place(rows, uid, heads, row);
    return rows;
  }
  void Result(const Attributes& result, int64_t uid, int64_t heads, int64_t row) {
    result->set_output(true);
    Place(result, uid, heads, row);
  }
  // fp32, [T, H] of packed sequences, [H, T] of one, as cuDNN wants them.
  void PlaceLse(const Attributes& lse) {
    const int64_t heads = shape_.heads, length = shape_.max_length;
    lse->set_uid(kLse)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({shape_.sequences, heads, length, 1});
    if (shape_.dense) {
      lse->set_stride({heads * length, length, 1, 1});
    } else {
      lse->set_stride({kApart, 1, heads, 1}).set_ragged_offset(Offsets(heads));
    }
  }

  // What forward and backward are told alike: scale, causality and lengths.
  template <typename Options>
  void Common(Options* options) {
    options->set_attn_scale(1.0f / std::sqrt(static_cast<float>(shape_.dim)))
        .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
    if (!shape_.dense) {
      options->set_padding_mask(true).set_seq_len_q(lengths_).set_seq_len_kv(lengths_);
    }
  }

  void AddForward(const Attributes& q, const Attributes& k, const Attributes& v) {
    auto options = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true);
    Common(&options);
    auto [out, lse] = plan_.graph->sdpa(q, k, v, options);
    Result(out, kOut, shape_.heads, shape_.strides[3]);
    lse->set_output(true);
    PlaceLse(lse);
  }

  void AddBackward(const Attributes& q, const Attributes& k, const Attributes& v) {
    const Attributes out = Rows("out", kOut, shape_.heads, shape_.strides[3]);
    const Attributes d_out = Rows("d_out", kDOut, shape_.heads, shape_.strides[4]);
    const Attributes lse = plan_.graph->tensor(fe::graph::Tensor_attributes().set_name("lse"));
    PlaceLse(lse);
    auto options = fe::graph::SDPA_backward_attributes()
                       .set_name("attention_backward")
                       .set_deterministic_algorithm(shape_.deterministic);
    Common(&options);
    auto [d_q, d_k, d_v] = plan_.graph->sdpa_backward(q, k, v, out, d_out, lse, options);
    Result(d_q, kDQ, shape_.heads, shape_.strides[5]);
    Result(d_k, kDK, shape_.keys, shape_.strides[6]);
    Result(d_v, kDV, shape_.keys, shape_.strides[7]);
  }

  const AttentionShape shape_;
  AttentionPlan plan_;
  Attributes lengths_;
  std::map<int64_t, Attributes> offsets_;
};

}  // namespace

AttentionPlan MakeAttentionGraph(const AttentionShape& shape, int capability) {
  return Builder(shape, capability).Build();
}

AttentionPlan BuildAttentionPlan(const AttentionShape& shape, cudnnHandle_t handle) {
  AttentionPlan plan = MakeAttentionGraph(shape);
  fe::error_t error = plan.graph->build(handle, {fe::HeurMode_t::A});
  TORCH_CHECK(error.is_good(), "cuDNN attention: no plan for ", shape.sequences,
              " sequences of up to ", shape.max_length, " tokens with ", shape.heads, " and ",
              shape.keys, " heads of ", shape.dim, ": ", error.get_message());
  return plan;
}

}  // namespace tritonrl
