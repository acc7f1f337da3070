// The activations that a forward pass keeps for the backward pass, and the set of those that it
// drops and the backward pass recomputes.

#ifndef TRITONRL_MODEL_LAYERS_ACTIVATIONS_H_
#define TRITONRL_MODEL_LAYERS_ACTIVATIONS_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "model/layers/attention.h"
#include "model/layers/packed_batch.h"

namespace tritonrl {

// The tensors of a layer that can be dropped independently of each other. To recompute a tensor,
// the backward pass first recomputes its dropped inputs, then repeats its operation (a dropped
// normed1 is computed twice if qkv is dropped too). C hidden, H query heads, K key/value heads, D
// head dimension, F intermediate size, L tokens of a sequence, e bytes an element. A layer keeps
// its input and 1 / rms of its norms in any case.
//
//   tensor          freed a token   recomputed per token                       8B in bf16 frees
//   kActivated      F e             F elements written (with its gradient)     24,576 B
//   kNorms          2 C e           2 C elements read and written              16,384 B
//   kRotatedHeads   (H + K)(D e+4)  (H + K) D elements read and written        10,400 B
//   kGateUp         2 F e           4 F C FLOP                                 49,152 B
//   kPostAttention  C e             2 C H D FLOP                                8,192 B
//   kQkv            (H + 2K) D e    2 (H + 2K) D C FLOP, a norm                12,288 B
//   kAttention      H (D e + 4)     2 L H D FLOP (causal)                       8,320 B
//
// SwiGLU's output, norms and the heads' norm and RoPE are nearly free. A GEMM costs C FLOP (H D for
// kPostAttention) per byte of bf16 that it frees, attention L FLOP at a lower rate.
enum class LayerTensor : uint8_t {
  kActivated,      // activated: recomputed from gate_up
  kNorms,          // normed1 and normed2: from input and post_attention
  kRotatedHeads,   // qk and qk_rstd of LayerActivations: by norm and RoPE from qkv
  kGateUp,         // gate_up: from post_attention or its norm, by a GEMM
  kPostAttention,  // post_attention: from attention and input, by a GEMM
  kQkv,            // qkv: from input or its norm, by a GEMM
  kAttention,      // attention and lse: from qk and qkv
};

inline constexpr std::array<LayerTensor, 7> kLayerTensors = {
    LayerTensor::kActivated, LayerTensor::kNorms,         LayerTensor::kRotatedHeads,
    LayerTensor::kGateUp,    LayerTensor::kPostAttention, LayerTensor::kQkv,
    LayerTensor::kAttention};

// The tensors that one layer drops and recomputes; empty by default.
class RecomputeSet {
 public:
  constexpr RecomputeSet() = default;
  static constexpr RecomputeSet All() { return RecomputeSet((1 << kLayerTensors.size()) - 1); }

  constexpr bool Has(LayerTensor tensor) const { return (bits_ & Bit(tensor)) != 0; }
  constexpr RecomputeSet With(LayerTensor tensor) const {
    return RecomputeSet(bits_ | Bit(tensor));
  }
  constexpr RecomputeSet Without(LayerTensor tensor) const {
    return RecomputeSet(bits_ & ~Bit(tensor));
  }
  constexpr bool empty() const { return bits_ == 0; }
  friend constexpr bool operator==(RecomputeSet, RecomputeSet) = default;

 private:
  constexpr explicit RecomputeSet(unsigned bits) : bits_(bits) {}
  static constexpr unsigned Bit(LayerTensor tensor) { return 1U << static_cast<unsigned>(tensor); }

  unsigned bits_ = 0;
};

// An input of GEMMs with its largest |x| for Quantize (fp8.h); amax is undefined if not computed.
struct GemmInput {
  at::Tensor value, amax;
};

// The activations of one layer. The tensors in `recompute` are undefined after its forward pass. T
// tokens, C hidden, H query heads, K key/value heads, D head dimension, F intermediate size.
struct LayerActivations {
  RecomputeSet recompute;  // set before the forward pass

  at::Tensor input;      // [T, C] residual stream before the layer
  at::Tensor rstd1;      // [T] 1 / rms of input
  GemmInput normed1;     // [T, C] norm of input
  at::Tensor qkv;        // [T, (H + 2K) D] projections before query/key norm
  at::Tensor qk;         // [T, (H + K) D] queries and keys after norm and RoPE
  at::Tensor qk_rstd;    // [T, H + K] 1 / rms of each query and key head; undefined without norm
  at::Tensor attention;  // [T, H D] attention's output before o_proj
  at::Tensor lse;        // log-sum-exp of each softmax row, see attention.h
  at::Tensor post_attention;  // [T, C] residual stream between attention and MLP
  at::Tensor rstd2;           // [T]
  GemmInput normed2;          // [T, C] norm of post_attention
  at::Tensor gate_up;         // [T, 2F] gate, then up projection
  GemmInput activated;        // [T, F] silu(gate) * up
};

// The activations of the head, which processes only the R rows that have a target.
struct HeadActivations {
  at::Tensor rows;     // [R] int64: row of the batch
  at::Tensor targets;  // [R] int64
  at::Tensor input;    // [R, C] residual stream after the last layer
  at::Tensor rstd;     // [R] of the final norm
  at::Tensor lse;      // [R] fp32 log-sum-exp of logits / temperature
  double temperature = 1.0;
};

struct Activations {
  PackedBatch batch;
  SequenceLayout layout;
  std::vector<LayerActivations> layers;
  HeadActivations head;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_ACTIVATIONS_H_
