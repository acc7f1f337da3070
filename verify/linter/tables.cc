#include "verify/linter/tables.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace tritonrl::lint {
namespace {

using Names = absl::flat_hash_set<absl::string_view>;

// The words of a text, which must be a literal: the set keeps views.
Names Words(absl::string_view text) { return absl::StrSplit(text, ' ', absl::SkipEmpty()); }

absl::flat_hash_map<absl::string_view, TensorUse> MakeTensorUses() {
  absl::flat_hash_map<absl::string_view, TensorUse> uses;
  auto add = [&uses](TensorUse use, absl::string_view names) {
    for (absl::string_view name : Words(names)) uses[name] = use;
  };
  add(TensorUse::kView,
      "view reshape flatten unflatten ravel permute transpose swapaxes swapdims t T mT H mH "
      "squeeze "
      "unsqueeze expand expand_as view_as reshape_as broadcast_to narrow select unbind split "
      "split_with_sizes chunk tensor_split hsplit vsplit dsplit movedim moveaxis as_strided "
      "diagonal "
      "unfold detach real imag view_as_real view_as_complex squeeze_ unsqueeze_ t_ transpose_ "
      "as_strided_ detach_ requires_grad_ retain_grad data grad contiguous to float half bfloat16 "
      "double int long short char bool byte type type_as cuda cpu pin_memory resolve_conj "
      "resolve_neg "
      "coalesce rename refine_names align_to");
  add(TensorUse::kCopy, "clone repeat tile __copy__ __deepcopy__");
  add(TensorUse::kAllocate,
      "new_empty new_zeros new_ones new_full new_tensor new_empty_strided new");
  add(TensorUse::kHost,
      "size stride dim ndim ndimension nelement numel element_size is_contiguous is_cuda "
      "storage_offset get_device device dtype shape layout requires_grad is_floating_point "
      "is_complex "
      "is_leaf itemsize nbytes names is_sparse is_pinned dim_order is_same_size record_stream "
      "is_inference is_meta is_cpu __len__ __class__ grad_fn is_quantized is_signed is_conj is_neg "
      "is_set_to is_shared storage_type has_names __dlpack_device__ __repr__ __hash__ __format__");
  add(TensorUse::kAddress, "data_ptr");
  add(TensorUse::kFill,
      "copy_ fill_ zero_ uniform_ normal_ random_ bernoulli_ resize_ set_ resize_as_");
  add(TensorUse::kItem, "item __int__ __float__ __bool__ __index__");
  add(TensorUse::kToPython, "tolist numpy __array__ untyped_storage storage __dlpack__");
  add(TensorUse::kHook, "register_hook register_post_accumulate_grad_hook");
  return uses;
}

absl::flat_hash_map<absl::string_view, TorchUse> MakeTorchUses() {
  absl::flat_hash_map<absl::string_view, TorchUse> uses;
  auto add = [&uses](TorchUse use, absl::string_view names) {
    for (absl::string_view name : Words(names)) uses[name] = use;
  };
  add(TorchUse::kAllocate, "empty empty_like empty_strided zeros zeros_like empty_permuted");
  add(TorchUse::kConstant,
      "ones ones_like full full_like arange range linspace logspace eye tensor as_tensor asarray "
      "scalar_tensor Tensor FloatTensor HalfTensor IntTensor LongTensor BoolTensor DoubleTensor "
      "cuda.FloatTensor cuda.HalfTensor cuda.IntTensor cuda.LongTensor from_numpy");
  add(TorchUse::kRandom, "rand randn rand_like randn_like randint randint_like randperm");
  add(TorchUse::kCopy,
      "clone cat concat concatenate stack hstack vstack dstack tile atleast_1d "
      "atleast_2d atleast_3d");
  add(TorchUse::kHost,
      "is_tensor is_floating_point is_complex numel finfo iinfo dtype Size Generator promote_types "
      "result_type broadcast_shapes get_default_dtype set_default_dtype set_default_device "
      "get_default_device manual_seed seed initial_seed is_grad_enabled is_inference_mode_enabled "
      "set_float32_matmul_precision get_float32_matmul_precision use_deterministic_algorithms "
      "set_printoptions get_num_threads set_num_threads can_cast is_storage typename "
      "get_rng_state set_rng_state memory_format get_device_module __version__ Stream Event");
  add(TorchUse::kWrapper,
      "no_grad inference_mode enable_grad set_grad_enabled autocast device is_autocast_enabled "
      "autograd.function.once_differentiable _dynamo.disable compiler.disable "
      "_dynamo.allow_in_graph "
      "profiler.record_function autograd.profiler.record_function");
  add(TorchUse::kParameter, "nn.Parameter nn.parameter.Parameter nn.Buffer nn.parameter.Buffer");
  add(TorchUse::kCustomOp, "library.custom_op library.triton_op");
  add(TorchUse::kHost, "library.register_fake library.opcheck library");
  add(TorchUse::kWrapKernel, "library.wrap_triton _library.triton.wrap_triton");
  add(TorchUse::kForbidden,
      "compile cuda.CUDAGraph cuda.graph cuda.make_graphed_callables cuda.graphs.CUDAGraph load "
      "save "
      "package hub set_default_tensor_type cuda.set_sync_debug_mode frombuffer from_file "
      "from_dlpack");
  add(TorchUse::kCompute, "cuda.jiterator cuda.comm cuda.nccl");
  return uses;
}

// The function after "torch.", by table, then by prefix.
TorchUse ByPrefix(absl::string_view rest) {
  if (absl::StartsWith(rest, "nn.functional.")) return TorchUse::kCompute;
  if (absl::StartsWith(rest, "nn.init.")) return TorchUse::kInit;
  if (absl::StartsWith(rest, "nn.utils.")) return TorchUse::kCompute;
  if (absl::StartsWith(rest, "nn.")) {
    absl::string_view last = rest.substr(rest.rfind('.') + 1);
    const bool is_class = !last.empty() && last[0] >= 'A' && last[0] <= 'Z';
    return is_class ? TorchUse::kModuleClass : TorchUse::kCompute;
  }
  for (absl::string_view prefix : {"library.",
                                   "jit.",
                                   "fx.",
                                   "_inductor",
                                   "_C.",
                                   "_dynamo.",
                                   "ops.",
                                   "utils.cpp_extension",
                                   "utils.dlpack",
                                   "multiprocessing",
                                   "distributed",
                                   "overrides.",
                                   "package.",
                                   "utils._python_dispatch",
                                   "_ops",
                                   "classes.",
                                   "cuda._",
                                   "hub.",
                                   "onnx.",
                                   "export",
                                   "_export",
                                   "_functorch",
                                   "_higher_order_ops",
                                   "_prims",
                                   "_refs"}) {
    if (absl::StartsWith(rest, prefix)) return TorchUse::kForbidden;
  }
  if (absl::StartsWith(rest, "amp.") || absl::StartsWith(rest, "cuda.amp.") ||
      absl::StartsWith(rest, "cuda.nvtx.") || rest == "cuda.stream" || rest == "cuda.device") {
    return TorchUse::kWrapper;
  }
  for (absl::string_view prefix :
       {"cuda.", "backends.", "version.", "random.", "Size.", "autograd.Function", "mps.", "xpu.",
        "hip.", "device.", "types.", "compiler.is_", "Generator.", "accelerator.", "cpu."}) {
    if (absl::StartsWith(rest, prefix)) return TorchUse::kHost;
  }
  if (absl::StartsWith(rest, "Tensor.")) return TorchUse::kTensorMethod;
  return TorchUse::kCompute;
}

}  // namespace

TensorUse TensorUseOf(absl::string_view name) {
  static const auto uses = MakeTensorUses();
  auto it = uses.find(name);
  return it == uses.end() ? TensorUse::kCompute : it->second;
}

bool IsTensorProperty(absl::string_view name) {
  static const Names names = Words(
      "T mT H mH data grad real imag shape dtype device layout ndim requires_grad is_cuda is_cpu "
      "is_meta "
      "is_leaf itemsize nbytes names is_sparse is_quantized grad_fn __class__");
  return names.contains(name);
}

TorchUse TorchUseOf(absl::string_view name) {
  static const auto uses = MakeTorchUses();
  absl::string_view rest = name;
  if (!absl::ConsumePrefix(&rest, "torch.")) return TorchUse::kCompute;
  auto it = uses.find(rest);
  if (it != uses.end()) return it->second;
  if (rest.find('.') == absl::string_view::npos) {
    const TensorUse use = TensorUseOf(rest);
    if (use == TensorUse::kView) return TorchUse::kView;
  }
  if (rest == "broadcast_tensors") return TorchUse::kView;
  return ByPrefix(rest);
}

bool IsJitSymbol(absl::string_view name) {
  return name == "triton.jit" || name == "triton.runtime.jit" || name == "triton.runtime.jit.jit" ||
         name == "triton.JITFunction" || name == "triton.runtime.JITFunction" ||
         name == "triton.runtime.jit.JITFunction" || name == "triton.experimental.gluon.jit";
}

bool IsForbiddenModule(absl::string_view module) {
  static const Names names = Words(
      "ctypes _ctypes cffi subprocess multiprocessing threading _thread concurrent asyncio socket "
      "ssl "
      "http urllib requests ftplib smtplib xmlrpc importlib builtins imp pkgutil runpy code codeop "
      "marshal pickle dill cloudpickle joblib shelve gc inspect ast dis base64 binascii codecs "
      "zlib "
      "gzip bz2 lzma signal atexit pty mmap tempfile shutil pathlib glob io fcntl select selectors "
      "resource faulthandler tracemalloc unittest mock site sysconfig zipimport sched numba cupy "
      "jax "
      "tensorflow tvm pycuda cython pyximport setuptools distutils posix webbrowser pdb bdb trace "
      "profile cProfile timeit opcode symtable tokenize sqlite3 readline rlcompleter zipfile "
      "tarfile "
      "cuda nvidia pynvml forbiddenfruit wrapt mxnet paddle onnxruntime tensorrt cutlass tilelang "
      "__main__ main conftest");
  absl::string_view top = module.substr(0, module.find('.'));
  if (names.contains(top)) return true;
  return absl::StartsWith(module, "torch.utils.cpp_extension") ||
         absl::StartsWith(module, "torch._inductor.codecache") ||
         absl::StartsWith(module, "torch.jit") ||
         absl::StartsWith(module, "torch.utils._python_dispatch") ||
         absl::StartsWith(module, "torch.overrides") ||
         absl::StartsWith(module, "torch.multiprocessing");
}

bool IsForbiddenBuiltin(absl::string_view name) {
  static const Names names = Words(
      "exec eval compile __import__ globals locals vars open input breakpoint __builtins__ "
      "__loader__ "
      "__spec__ delattr exit quit memoryview help");
  return names.contains(name);
}

bool IsForbiddenAttribute(absl::string_view name) {
  static const Names names = Words(
      "__dict__ __globals__ __builtins__ __subclasses__ __bases__ __base__ __mro__ mro __code__ "
      "__closure__ __getattribute__ __import__ __loader__ __spec__ __reduce__ __reduce_ex__ "
      "__setattr__ "
      "__delattr__ __self__ __func__ __wrapped__ __torch_function__ __torch_dispatch__ "
      "__defaults__ "
      "__kwdefaults__ f_globals f_locals f_back f_builtins f_code gi_frame gi_code cr_frame "
      "tb_frame "
      "tb_next __traceback__ __array_interface__ __cuda_array_interface__ __array_function__ "
      "__array_ufunc__ _getframe __weakref__ __slots__ __objclass__ __set_name__ __annotations__ "
      "__module__ func_globals co_code co_consts _call_impl _wrapped_call_impl _slow_forward "
      "_forward_hooks _forward_pre_hooks _backward_hooks _compiled_call_impl _modules _parameters "
      "_buffers __weakrefoffset__ gi_yieldfrom ag_frame");
  return names.contains(name);
}

bool IsForbiddenMethod(absl::string_view name) {
  static const Names names = Words(
      "__torch_function__ __torch_dispatch__ __del__ __getattribute__ __setattr__ __delattr__ "
      "__init_subclass__ __set_name__ __instancecheck__ __subclasscheck__ __prepare__ "
      "__class_getitem__ __array_function__ __array_ufunc__ __reduce__ __reduce_ex__ __getstate__ "
      "__setstate__ __deepcopy__ __copy__ _call_impl _wrapped_call_impl _slow_forward "
      "_compiled_call_impl _apply __match_args__");
  return names.contains(name);
}

bool IsForbiddenFunction(absl::string_view name) {
  static const Names exact = Words(
      "types.FunctionType types.CodeType types.ModuleType types.LambdaType operator.attrgetter "
      "operator.methodcaller functools.singledispatch");
  if (exact.contains(name)) return true;
  if (absl::StartsWith(name, "os.")) {
    static const Names fine = Words(
        "os.environ os.getenv os.path os.cpu_count os.getpid os.sep os.linesep os.name os.getcwd");
    absl::string_view top = name.substr(0, name.find('.', 3));
    return !fine.contains(top);
  }
  if (absl::StartsWith(name, "sys.")) {
    static const Names fine = Words(
        "sys.version sys.version_info sys.platform sys.maxsize sys.argv sys.byteorder sys.stderr "
        "sys.stdout sys.float_info sys.executable sys.implementation");
    absl::string_view top = name.substr(0, name.find('.', 4));
    return !fine.contains(top);
  }
  return false;
}

bool IsPermittedSetting(absl::string_view name) {
  return absl::StartsWith(name, "torch.backends.") && name.find("._") == absl::string_view::npos;
}

bool IsPermittedVariable(absl::string_view name) {
  return absl::StartsWith(name, "CUDA_") || absl::StartsWith(name, "TORCH_") ||
         absl::StartsWith(name, "PYTORCH_") || absl::StartsWith(name, "OMP_") ||
         name == "TRITON_PRINT_AUTOTUNING";
}

bool IsPythonBuiltin(absl::string_view name) {
  static const Names names = Words(
      "abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex "
      "dict dir "
      "divmod enumerate filter float format frozenset getattr hasattr hash hex id int isinstance "
      "issubclass iter len list map max min next object oct ord pow print property range repr "
      "reversed "
      "round set setattr slice sorted staticmethod str sum super tuple type zip Ellipsis "
      "NotImplemented "
      "__name__ __file__ __debug__ __doc__");
  return names.contains(name);
}

bool IsParameterName(absl::string_view name) {
  static const Names names = Words(
      "weight bias running_mean running_var num_batches_tracked in_proj_weight in_proj_bias "
      "q_proj_weight k_proj_weight v_proj_weight bias_k bias_v weight_g weight_v");
  return names.contains(name) || absl::StartsWith(name, "weight_") ||
         absl::StartsWith(name, "bias_");
}

bool IsNeutralModule(absl::string_view name) {
  return name == "torch.nn.Identity" || name == "torch.nn.Flatten" || name == "torch.nn.Unflatten";
}

bool IsContainerModule(absl::string_view name) {
  return name == "torch.nn.Sequential" || name == "torch.nn.ModuleList" ||
         name == "torch.nn.ModuleDict" || name == "torch.nn.ParameterList" ||
         name == "torch.nn.ParameterDict" || name == "torch.nn.Module";
}

}  // namespace tritonrl::lint
