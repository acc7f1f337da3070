#include "exec/device/compute_operators.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "exec/device/init_operators.h"
#include "exec/device/neutral_operators.h"

namespace tritonrl::device {
namespace {

// A name stands for its in-place form too.
constexpr absl::string_view kNames =
    // Layers.
    "convolution batch_norm native_batch_norm _native_batch_norm_legit native_layer_norm "
    "layer_norm "
    "native_group_norm group_norm rms_norm scaled_dot_product_attention "
    "max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d "
    "_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d "
    "max_unpool2d max_unpool3d upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "_upsample_nearest_exact1d _upsample_nearest_exact2d upsample_linear1d upsample_bilinear2d "
    "upsample_bicubic2d upsample_trilinear3d grid_sampler_2d grid_sampler_3d reflection_pad1d "
    "reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d "
    "im2col "
    "col2im pixel_unshuffle channel_shuffle embedding_bag lstm gru rnn_tanh rnn_relu lstm_cell "
    "gru_cell _trilinear "
    // Activations and losses.
    "mish hardshrink softshrink threshold _prelu_kernel selu celu glu log_sigmoid_forward mse_loss "
    "smooth_l1_loss huber_loss binary_cross_entropy nll_loss_forward nll_loss2d_forward "
    "multi_margin_loss multilabel_margin_loss_forward soft_margin_loss ctc_loss rrelu_with_noise "
    // Elements.
    "exponential addbmm logaddexp logaddexp2 xlogy special_xlog1py special_entr special_ndtri "
    "special_erfcx special_i0e special_i1 special_i1e special_log_ndtr special_zeta i0 igamma "
    "igammac "
    "polygamma copysign ldexp nextafter heaviside float_power true_divide deg2rad rad2deg signbit "
    "frexp __and__ __or__ __xor__ __iand__ __ior__ __ixor__ gcd lcm "
    // Reductions, scans, orders.
    "cummax cummin logcumsumexp median nanmedian nansum mode kthvalue count_nonzero bincount histc "
    "unique2 "
    "_unique2 unique_consecutive argsort repeat_interleave scatter_reduce index_reduce take put "
    "renorm trace linalg_cross _cdist_forward _pdist_forward equal is_nonzero "
    // Linear algebra and transforms.
    "linear matmul vdot _int_mm _addmm_activation linalg_inv_ex linalg_solve_ex _linalg_solve_ex "
    "linalg_cholesky_ex cholesky linalg_eigh linalg_svd _linalg_eigh _linalg_svd _linalg_det "
    "_linalg_slogdet "
    "linalg_lu_factor_ex triangular_solve linalg_solve_triangular linalg_matrix_exp "
    "cholesky_solve cholesky_inverse _fft_r2c _fft_c2r _fft_c2c";

bool IsIn(const absl::flat_hash_set<std::string>& names, absl::string_view name) {
  if (names.contains(name)) return true;
  if (name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_') name.remove_suffix(1);
  return names.contains(name);
}

bool IsComputeOperator(absl::string_view name) {
  static const auto* const names =
      new absl::flat_hash_set<std::string>(absl::StrSplit(kNames, ' ', absl::SkipEmpty()));
  return IsIn(*names, name);
}

double Elements(const std::vector<TensorRef>& tensors) {
  double sum = 0;
  for (const TensorRef& tensor : tensors) sum += static_cast<double>(tensor.elements());
  return sum;
}

// The last size of the i-th tensor argument; 1 if there is none.
double LastSize(const BoundCall& bound, size_t i) {
  if (i >= bound.tensors.size() || bound.tensors[i]->shape.empty()) return 1;
  return static_cast<double>(bound.tensors[i]->shape.back());
}

}  // namespace

absl::Status CheckCompute(const BoundCall& bound, StorageTable& memory, int64_t bytes_left) {
  const std::string& name = bound.call->name;
  const bool of_init = TreatmentOf(*bound.call) != Treatment::kOther || IsInitOperator(name);
  if (of_init) return CheckInit(bound, memory, bytes_left);
  if (!IsComputeOperator(name)) {
    RETURN_IF_ERROR(CheckNeverRun(bound));
    return absl::PermissionDeniedError(absl::StrCat("aten::", name, " is not executed here"));
  }
  RETURN_IF_ERROR(CheckTraps(bound, memory));
  return CheckSize(bound, bytes_left);
}

double OperatorFlops(const BoundCall& bound, const std::vector<TensorRef>& results) {
  const std::string& name = bound.call->name;
  const double out = Elements(results);
  if (name == "mm" || name == "bmm" || name == "mv" || name == "dot" || name == "vdot" ||
      name == "linear" || name == "matmul") {
    return 2 * std::max(out, 1.0) * LastSize(bound, 0);
  }
  if (name == "addmm" || name == "baddbmm" || name == "addmv" || name == "addbmm") {
    return 2 * out * LastSize(bound, 1) + out;
  }
  if (name == "convolution" && bound.tensors.size() > 1) {
    // An output element needs a product for each weight of its channel; of a transposed
    // convolution, an input element does.
    const std::vector<int64_t>& weight = bound.tensors[1]->shape;
    double of_channel = 2;
    for (size_t i = 1; i < weight.size(); ++i) of_channel *= static_cast<double>(weight[i]);
    const Value* const transposed = bound.Find("transposed");
    const bool spreads = transposed != nullptr && transposed->integer != 0;
    return of_channel * (spreads ? static_cast<double>(bound.tensors[0]->elements()) : out);
  }
  if (name == "scaled_dot_product_attention" && bound.tensors.size() > 2 &&
      bound.tensors[1]->shape.size() > 1) {
    const std::vector<int64_t>& keys = bound.tensors[1]->shape;
    return 4 * static_cast<double>(bound.tensors[0]->elements()) *
           static_cast<double>(keys[keys.size() - 2]);
  }
  return std::max(out, static_cast<double>(bound.most_elements()));
}

bool DrawsByDefault(absl::string_view name) {
  static const auto* const names = new absl::flat_hash_set<std::string>(
      {"native_dropout", "scaled_dot_product_attention", "lstm", "gru", "rnn_tanh", "rnn_relu",
       "rrelu_with_noise"});
  return IsIn(*names, name);
}

}  // namespace tritonrl::device
