#include "model/cuda/attention/attention_graph.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cudnn_frontend.h>

#include <cmath>
#include <utility>
#include <vector>

#include "model/cuda/fused/kernels.h"

namespace tritonrl {

namespace {

namespace fe = cudnn_frontend;
using Attributes = std::shared_ptr<fe::graph::Tensor_attributes>;

// Stride between sequences in elements. cuDNN uses the offsets instead and only checks that the
// stride is aligned, so the value is arbitrary.
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

  // Returns the tensor of the sequences' offsets in elements, for rows of this stride.
  Attributes Offsets(int64_t stride) {
    const auto [found, fresh] =
        plan_.offsets.emplace(stride, kOffsets + static_cast<int64_t>(plan_.offsets.size()));
    if (fresh) offsets_[stride] = Integers("offsets", found->second, shape_.sequences + 1);
    return offsets_[stride];
  }

  // Sets id, shape [sequences, heads, rows, D] and strides of an input or a result.
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
  // Sets the layout that cuDNN requires for the fp32 log-sum-exps: [T, H] for packed sequences,
  // [H, T] for a single one.
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

  // Sets the options that forward and backward share: scale, causality and lengths.
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

std::string RefusalOf(const AttentionPlan& plan) {
  fe::error_t error = plan.graph->validate();
  return error.is_good() ? "" : error.get_message();
}

int64_t WorkspaceBytes(const AttentionPlan& plan) { return plan.graph->get_workspace_size(); }

void Execute(const AttentionPlan& plan, cudnnHandle_t handle,
             std::unordered_map<int64_t, void*>* places, void* workspace) {
  fe::error_t error = plan.graph->execute(handle, *places, workspace);
  TORCH_CHECK(error.is_good(), "cuDNN attention: ", error.get_message());
}

namespace {

// Allocates q, k and v as [rows, heads, D] each, side by side in one buffer like the output of the
// fused QKV projection.
AttentionHeads EmptyHeads(const AttentionHeads& like, int64_t rows) {
  const int64_t heads = like.q.size(1), keys = like.k.size(1), dim = like.q.size(2);
  const at::Tensor all = at::empty({rows, heads + 2 * keys, dim}, like.q.options());
  return {all.narrow(1, 0, heads), all.narrow(1, heads, keys), all.narrow(1, heads + keys, keys)};
}

at::Tensor EmptyRows(const at::Tensor& like, int64_t rows) {
  return at::empty({rows, like.size(1), like.size(2)}, like.options());
}

RowCopy Copy(const at::Tensor& from, const at::Tensor& to) {
  const auto size = static_cast<int64_t>(from.element_size());
  return {.from = from.const_data_ptr(),
          .to = to.data_ptr(),
          .from_stride = from.stride(0) * size,
          .to_stride = to.stride(0) * size,
          .row = from.size(1) * from.size(2) * size};
}

void Add(const AttentionHeads& from, const AttentionHeads& to, RowCopies* copies) {
  copies->Add(Copy(from.q, to.q));
  copies->Add(Copy(from.k, to.k));
  copies->Add(Copy(from.v, to.v));
}

void Launch(const RowCopies& copies, int64_t present, int64_t rows) {
  LaunchCopyRows(copies, present, rows, c10::cuda::getCurrentCUDAStream().stream());
}

}  // namespace

AttentionOperands AttentionOperands::Part(int64_t begin, int64_t length, int64_t share,
                                          int64_t shares) const {
  const auto part = [&](const at::Tensor& x) {
    if (!x.defined()) return at::Tensor();
    const int64_t heads = x.size(1) / shares;
    return x.narrow(0, begin, length).narrow(1, share * heads, heads);
  };
  const auto all = [&](const AttentionHeads& x) {
    return AttentionHeads{part(x.q), part(x.k), part(x.v)};
  };
  const int64_t heads = in.q.size(1), each = heads / shares * length;
  return {all(in), part(out), lse.narrow(0, begin * heads + share * each, each), part(d_out),
          all(d_in)};
}

AttentionShape AttentionOperands::Shape() const {
  AttentionShape shape = {
      .backward = backward(), .heads = in.q.size(1), .keys = in.k.size(1), .dim = in.q.size(2)};
  size_t next = 0;
  for (const at::Tensor* x : {&in.q, &in.k, &in.v, &out, &d_out, &d_in.q, &d_in.k, &d_in.v}) {
    shape.strides[next++] = x->defined() ? x->stride(0) : 0;
  }
  return shape;
}

std::unordered_map<int64_t, void*> AttentionOperands::Where() const {
  std::unordered_map<int64_t, void*> places = {{kQ, in.q.data_ptr()},
                                               {kK, in.k.data_ptr()},
                                               {kV, in.v.data_ptr()},
                                               {kOut, out.data_ptr()},
                                               {kLse, lse.data_ptr()}};
  if (backward()) {
    places[kDOut] = d_out.data_ptr();
    places[kDQ] = d_in.q.data_ptr();
    places[kDK] = d_in.k.data_ptr();
    places[kDV] = d_in.v.data_ptr();
  }
  return places;
}

PaddedOperands::PaddedOperands(const AttentionOperands& sequence, int64_t rows)
    : sequence_(sequence), length_(sequence.out.size(0)), rows_(rows) {
  const int64_t heads = sequence.in.q.size(1);
  RowCopies copies;
  padded_.in = EmptyHeads(sequence.in, rows);
  Add(sequence.in, padded_.in, &copies);
  padded_.out = EmptyRows(sequence.out, rows);
  if (sequence.backward()) {
    copies.Add(Copy(sequence.out, padded_.out));
    padded_.d_out = EmptyRows(sequence.d_out, rows);
    copies.Add(Copy(sequence.d_out, padded_.d_out));
    padded_.d_in = EmptyHeads(sequence.d_in, rows);
    padded_.lse = at::zeros({heads * rows}, sequence.lse.options());
    SequenceLse().copy_(sequence.lse.view({heads, length_}));
  } else {
    padded_.lse = at::empty({heads * rows}, sequence.lse.options());
  }
  Launch(copies, length_, rows);
}

at::Tensor PaddedOperands::SequenceLse() const {
  return padded_.lse.view({-1, rows_}).narrow(1, 0, length_);
}

void PaddedOperands::TakeResults() {
  RowCopies copies;
  if (sequence_.backward()) {
    Add(padded_.d_in, sequence_.d_in, &copies);
  } else {
    copies.Add(Copy(padded_.out, sequence_.out));
    sequence_.lse.view({-1, length_}).copy_(SequenceLse());
  }
  Launch(copies, length_, length_);
}

}  // namespace tritonrl
