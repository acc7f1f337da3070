#include "model/cuda/attention_operands.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAStream.h>

#include "model/cuda/copy_rows.h"

namespace tritonrl {
namespace {

// [rows, heads, D] each, side by side in one memory as queries, keys and values are.
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
