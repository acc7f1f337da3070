#include "verify/linter/names.h"

#include <initializer_list>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace tritonrl::lint {
namespace {

// Traits and the names that have them, as words of a text.
constexpr std::pair<NameTrait, absl::string_view> kTraits[] = {
    {kForbiddenModule,
     "ctypes _ctypes cffi subprocess multiprocessing socket ssl http urllib requests ftplib "
     "smtplib xmlrpc pty runpy marshal code codeop imp posix webbrowser cupy jax tensorflow tvm "
     "pycuda cython Cython pyximport numba cuda nvidia mxnet paddle "
     "onnxruntime tensorrt cutlass tilelang forbiddenfruit"},
    {kForbiddenBuiltin, "exec eval __import__ __builtins__"},
    {kForbiddenFunction,
     "os.system os.popen os.fork os.forkpty os.kill os.killpg os.abort os._exit os.startfile "
     "builtins.exec builtins.eval builtins.__import__ torch.ops.load_library "
     "torch.classes.load_library"},
    {kLookUp,
     "getattr setattr delattr __getattr__ __setattr__ __getattribute__ globals locals vars "
     "__dict__ __globals__ modules import_module __import__ eval exec builtins __builtins__ "
     "inspect gc getmembers attrgetter methodcaller _getframe f_globals f_locals f_back "
     "__getitem__ __subclasses__ __init_subclass__ pickle dill cloudpickle"},
    {kOwnsCall,
     "__call__ __new__ __prepare__ __mro_entries__ __torch_function__ __torch_dispatch__ "
     "__class__ _call_impl _wrapped_call_impl _compiled_call_impl _slow_forward setattr "
     "__setattr__ __getattribute__ __getattr__ globals vars __dict__ modules builtins "
     "__builtins__ Library register_forward_hook register_forward_pre_hook "
     "register_module_forward_hook register_module_forward_pre_hook _modules add_module "
     "register_module set_submodule patch TorchFunctionMode TorchDispatchMode __bases__"},
    {kWork,
     "matmul mm bmm addmm baddbmm addbmm addmv mv einsum tensordot linear bilinear conv1d conv2d "
     "conv3d conv_transpose1d conv_transpose2d conv_transpose3d max_pool1d max_pool2d "
     "max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
     "adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d lp_pool1d "
     "lp_pool2d batch_norm layer_norm group_norm instance_norm rms_norm local_response_norm "
     "scaled_dot_product_attention cross_entropy binary_cross_entropy "
     "binary_cross_entropy_with_logits nll_loss mse_loss l1_loss smooth_l1_loss huber_loss "
     "kl_div hinge_embedding_loss triplet_margin_loss cosine_embedding_loss cosine_similarity"},
    {kElementwise,
     "softmax log_softmax logsumexp relu relu_ relu6 leaky_relu leaky_relu_ prelu gelu silu mish "
     "elu elu_ selu celu sigmoid sigmoid_ tanh tanh_ hardtanh hardswish hardsigmoid softplus "
     "softsign logsigmoid exp exp_ exp2 log log2 log1p expm1 sqrt sqrt_ rsqrt rsqrt_ erf sin cos "
     "tan"},
    {kWorkModule,
     "Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d "
     "MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d "
     "AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d BatchNorm1d "
     "BatchNorm2d BatchNorm3d LayerNorm GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d "
     "RMSNorm LocalResponseNorm MultiheadAttention TransformerEncoderLayer TransformerEncoder "
     "LSTM GRU RNN LSTMCell GRUCell CrossEntropyLoss MSELoss L1Loss SmoothL1Loss HuberLoss "
     "KLDivLoss NLLLoss BCELoss BCEWithLogitsLoss HingeEmbeddingLoss TripletMarginLoss"},
    {kElementwiseModule,
     "Softmax LogSoftmax ReLU ReLU6 LeakyReLU GELU SiLU Mish ELU SELU CELU Sigmoid Tanh Hardtanh "
     "Hardswish Hardsigmoid Softplus Softsign LogSigmoid"},
    {kSameSize,
     "contiguous view reshape flatten unflatten permute transpose t float half bfloat16 double "
     "to cuda detach clone squeeze unsqueeze swapaxes movedim view_as reshape_as"}};

using NameTable = absl::flat_hash_map<absl::string_view, uint32_t>;

const NameTable& Names() {
  static const auto* const names = [] {
    auto* all = new NameTable;
    for (const auto& [trait, words] : kTraits) {
      for (const absl::string_view word : absl::StrSplit(words, ' ')) (*all)[word] |= trait;
    }
    return all;
  }();
  return *names;
}

bool StartsWithAny(absl::string_view name, std::initializer_list<absl::string_view> prefixes) {
  return absl::c_any_of(prefixes, [&](auto prefix) { return absl::StartsWith(name, prefix); });
}

}  // namespace

uint32_t TraitsOf(absl::string_view name) {
  auto it = Names().find(name);
  return it == Names().end() ? 0 : it->second;
}

bool Is(NameTrait trait, absl::string_view name) { return (TraitsOf(name) & trait) != 0; }

bool IsForbiddenModule(absl::string_view module) {
  return Is(kForbiddenModule, module.substr(0, module.find('.'))) ||
         StartsWithAny(module, {"triton._C", "torch.utils.cpp_extension", "torch.multiprocessing",
                                "torch._inductor.codecache"});
}

bool IsForbiddenFunction(absl::string_view name) {
  return Is(kForbiddenFunction, name) || IsForbiddenModule(name) ||
         StartsWithAny(name, {"os.exec", "os.spawn", "os.posix_spawn"});
}

}  // namespace tritonrl::lint
