// Which of a layer's activations the forward pass drops, to be computed again in the backward pass.

#ifndef TRITONRL_MODEL_RECOMPUTE_H_
#define TRITONRL_MODEL_RECOMPUTE_H_

#include <array>
#include <cstdint>

namespace tritonrl {

// What may be dropped, each by itself, whatever else is: computing it again takes the one operation
// that made it, once, and what that operation reads is computed again first where it was dropped
// too (a norm for qkv alone, and once more for its own use). C hidden, H query heads, K key/value
// heads, D head dimension, F intermediate size, L tokens of a sequence, e bytes an element. (A
// layer's input is always kept, as are the inverse root mean squares of its norms.)
//
//   tensor         freed a token   done again for it, a token                 8B in bf16 frees
//   kActivated     F e             F elements written (beside its gradient)   24,576 B
//   kNorms         2 C e           2 C elements read and written              16,384 B
//   kRotatedHeads  (H + K)(D e+4)  (H + K) D elements read and written        10,400 B
//   kGateUp        2 F e           4 F C FLOP                                 49,152 B
//   kMiddle        C e             2 C H D FLOP                                8,192 B
//   kQkv           (H + 2K) D e    2 (H + 2K) D C FLOP, a norm                12,288 B
//   kAttention     H (D e + 4)     2 L H D FLOP (causal)                       8,320 B
//
// So SwiGLU's output, norms and the heads' norm and RoPE are nearly free; a product costs C FLOP
// (H D for kMiddle) for each byte of bf16, whichever it is, and attention L of them, at a lower
// rate.
enum class LayerTensor : uint8_t {
  kActivated,     // activated: again from gate_up
  kNorms,         // normed1 and normed2: again from input and middle
  kRotatedHeads,  // qk and qk_rstd of LayerActivations: again by norm and RoPE from qkv
  kGateUp,        // gate_up: again from middle or its norm, by a product
  kMiddle,        // middle: again from attention and input, by a product
  kQkv,           // qkv: again from input or its norm, by a product
  kAttention,     // attention and lse: again from qk and qkv
};

inline constexpr std::array<LayerTensor, 7> kLayerTensors = {
    LayerTensor::kActivated, LayerTensor::kNorms, LayerTensor::kRotatedHeads, LayerTensor::kGateUp,
    LayerTensor::kMiddle,    LayerTensor::kQkv,   LayerTensor::kAttention};

// What one layer drops; by default nothing.
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

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_RECOMPUTE_H_
