#include "verify/linter/tables.h"

#include "absl/strings/strip.h"
#include "verify/linter/name_table.h"

namespace tritonrl::lint {
namespace {

const NameTable<TensorUse>& TensorUses() {
  static const NameTable<TensorUse> table{
      {TensorUse::kView,
       "view reshape flatten unflatten ravel permute transpose swapaxes swapdims t T mT H mH "
       "squeeze unsqueeze expand expand_as view_as reshape_as broadcast_to narrow select unbind "
       "split split_with_sizes chunk tensor_split hsplit vsplit dsplit movedim moveaxis "
       "as_strided diagonal unfold detach real imag view_as_real view_as_complex squeeze_ "
       "unsqueeze_ t_ transpose_ as_strided_ detach_ requires_grad_ retain_grad data grad _base "
       "contiguous to float half bfloat16 double int long short char bool byte type type_as cuda "
       "cpu pin_memory resolve_conj resolve_neg coalesce rename refine_names align_to "
       "_reinterpret_tensor"},
      {TensorUse::kCopy, "clone repeat tile __copy__ __deepcopy__"},
      {TensorUse::kAllocate,
       "new_empty new_zeros new_ones new_full new_tensor new_empty_strided new"},
      {TensorUse::kHost,
       "size stride dim ndim ndimension nelement numel element_size is_contiguous is_cuda "
       "storage_offset get_device device dtype shape layout requires_grad is_floating_point "
       "is_complex is_leaf itemsize nbytes names is_sparse is_pinned dim_order is_same_size "
       "record_stream is_inference is_meta is_cpu __len__ __class__ grad_fn is_quantized "
       "_version is_signed is_conj is_neg is_set_to is_shared storage_type has_names "
       "__dlpack_device__ "
       "__hash__"},
      {TensorUse::kAddress, "data_ptr"},
      {TensorUse::kFill,
       "copy_ fill_ zero_ uniform_ normal_ random_ bernoulli_ resize_ set_ resize_as_"},
      {TensorUse::kItem, "item __int__ __float__ __bool__ __index__"},
      {TensorUse::kToPython,
       "tolist numpy __array__ untyped_storage storage __dlpack__ __repr__ __str__ __format__"},
      {TensorUse::kHook, "register_hook register_post_accumulate_grad_hook"}};
  return table;
}

const NameTable<TorchUse>& TorchUses() {
  static const NameTable<TorchUse> table{
      {TorchUse::kAllocate,
       "empty empty_like empty_strided zeros zeros_like empty_permuted "
       "_C._dynamo.guards._empty_strided_cuda _C._dynamo.guards._empty_strided_cpu"},
      {TorchUse::kConstant,
       "ones ones_like full full_like arange range linspace logspace eye tensor as_tensor asarray "
       "scalar_tensor Tensor FloatTensor HalfTensor IntTensor LongTensor BoolTensor DoubleTensor "
       "cuda.FloatTensor cuda.HalfTensor cuda.IntTensor cuda.LongTensor from_numpy"},
      {TorchUse::kRandom, "rand randn rand_like randn_like randint randint_like randperm"},
      {TorchUse::kView, "_C._dynamo.guards._reinterpret_tensor"},
      {TorchUse::kCopy,
       "clone cat concat concatenate stack hstack vstack dstack column_stack row_stack tile "
       "atleast_1d "
       "atleast_2d "
       "atleast_3d"},
      {TorchUse::kHost,
       "finfo iinfo dtype Size Generator promote_types result_type broadcast_shapes "
       "get_default_dtype set_default_dtype set_default_device get_default_device manual_seed "
       "seed initial_seed is_grad_enabled is_inference_mode_enabled set_float32_matmul_precision "
       "get_float32_matmul_precision use_deterministic_algorithms set_printoptions "
       "get_num_threads set_num_threads can_cast get_rng_state set_rng_state memory_format "
       "get_device_module __version__ Event library.register_fake library.opcheck library "
       "_C._dynamo _C._dynamo.guards _inductor _inductor.runtime "
       "_inductor.runtime.triton_heuristics"},
      {TorchUse::kCheck,
       "jit.is_scripting jit.is_tracing compiler.is_compiling compiler.is_dynamo_compiling "
       "_dynamo.is_compiling is_tensor is_floating_point is_complex numel typename is_storage "
       "_assert "
       "cuda.get_device_capability cuda.get_device_properties cuda.get_device_name "
       "cuda.current_device cuda.synchronize _C._cuda_getCurrentRawStream "
       "_C._dynamo.guards.assert_size_stride _C._dynamo.guards.assert_alignment "
       "_inductor.runtime.triton_heuristics.grid "
       "_inductor.runtime.triton_heuristics.split_scan_grid "
       "_inductor.runtime.hints.DeviceProperties _inductor.runtime.hints.ReductionHint "
       "_inductor.runtime.hints.TileHint _inductor.runtime.hints.HeuristicType "
       "_inductor.runtime.hints.AttrsDescriptor _inductor.runtime.hints.instance_descriptor"},
      {TorchUse::kWrapper,
       "no_grad inference_mode enable_grad set_grad_enabled autocast device is_autocast_enabled "
       "autograd.function.once_differentiable _dynamo.disable compiler.disable "
       "_dynamo.allow_in_graph profiler.record_function autograd.profiler.record_function "
       "cuda._DeviceGuard cuda.device_of jit.ignore jit.unused jit.export"},
      {TorchUse::kParameter, "nn.Parameter nn.parameter.Parameter nn.Buffer nn.parameter.Buffer"},
      {TorchUse::kCustomOp, "library.custom_op library.triton_op"},
      {TorchUse::kWrapKernel, "library.wrap_triton _library.triton.wrap_triton"},
      {TorchUse::kForbidden,
       "compile cuda.CUDAGraph cuda.graph cuda.make_graphed_callables cuda.graphs.CUDAGraph load "
       "save package hub set_default_tensor_type cuda.set_sync_debug_mode frombuffer from_file "
       "from_dlpack autograd.grad autograd.backward cuda.MemPool cuda.use_mem_pool "
       "cuda.CUDAPluggableAllocator cuda.change_current_allocator"},
      {TorchUse::kCompute, "cuda.jiterator cuda.comm cuda.nccl"}};
  return table;
}

// The function after "torch." by the namespace it is in.
TorchUse ByPrefix(absl::string_view rest) {
  if (StartsWithAny(rest, {"library.",
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
                           "cuda.graphs.",
                           "cuda.memory.CUDAPluggable",
                           "cuda.memory.MemPool",
                           "cuda.memory.change_",
                           "cuda.memory.use_",
                           "autograd.functional.",
                           "autograd.forward_ad",
                           "UntypedStorage",
                           "TypedStorage",
                           "storage.",
                           "hub.",
                           "onnx.",
                           "export",
                           "_export",
                           "_functorch",
                           "_higher_order_ops",
                           "_prims",
                           "_refs",
                           "nn.utils.parametri",
                           "nn.utils.weight_norm",
                           "nn.utils.spectral_norm",
                           "nn.utils.prune"})) {
    return TorchUse::kForbidden;
  }
  if (StartsWithAny(rest, {"nn.functional.", "nn.utils."})) return TorchUse::kCompute;
  if (absl::StartsWith(rest, "nn.init.")) return TorchUse::kInit;
  if (absl::StartsWith(rest, "nn.")) {
    absl::string_view last = rest.substr(rest.rfind('.') + 1);
    const bool is_class = !last.empty() && last[0] >= 'A' && last[0] <= 'Z';
    return is_class ? TorchUse::kModuleClass : TorchUse::kCompute;
  }
  if (StartsWithAny(rest, {"amp.", "cuda.amp.", "cuda.nvtx."}) || rest == "cuda.stream" ||
      rest == "cuda.device") {
    return TorchUse::kWrapper;
  }
  if (StartsWithAny(rest, {"cuda.", "backends.", "version.", "random.", "Size.",
                           "autograd.Function", "mps.", "xpu.", "hip.", "device.", "types.",
                           "compiler.is_", "Generator.", "accelerator.", "cpu."})) {
    return TorchUse::kHost;
  }
  if (absl::StartsWith(rest, "Tensor.")) return TorchUse::kTensorMethod;
  return TorchUse::kCompute;
}

}  // namespace

TensorUse TensorUseOf(absl::string_view name) {
  return TensorUses().Find(name).value_or(TensorUse::kCompute);
}

bool IsComputingFunction(absl::string_view name) {
  const absl::string_view last = name.substr(name.rfind('.') + 1);
  const bool torch = absl::StartsWith(name, "torch.");
  const bool numpy = absl::StartsWith(name, "numpy.") || absl::StartsWith(name, "scipy.");
  if ((!torch && !numpy) || absl::EndsWith(name, "()")) return false;
  if (last.empty() || last[0] < 'a' || last[0] > 'z') return false;  // a class, or private
  static const NameTable<bool> others{
      {true,
       "float float16 float32 float64 half double bfloat16 float8_e4m3fn float8_e5m2 "
       "float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu int int8 int16 int32 int64 short long uint8 "
       "uint16 uint32 uint64 bool bool_ complex32 complex64 complex128 cfloat cdouble chalf qint8 "
       "quint8 qint32 quint4x2 bits8 strided sparse_coo sparse_csr sparse_csc sparse_bsr "
       "sparse_bsc "
       "jagged contiguous_format channels_last channels_last_3d preserve_format inf nan pi e "
       "newaxis "
       "ndarray dtype generic number integer floating torch numpy nn functional cuda linalg fft "
       "special backends version autograd testing utils ops library random distributions"}};
  if (others.Find(last).has_value()) return false;
  if (numpy) return true;
  switch (TorchUseOf(name)) {
    case TorchUse::kCompute:
    case TorchUse::kForbidden:
      return true;
    case TorchUse::kTensorMethod:
      return TensorUseOf(last) == TensorUse::kCompute || TensorUseOf(last) == TensorUse::kToPython;
    default:
      return false;
  }
}

TorchUse TorchUseOf(absl::string_view name) {
  absl::string_view rest = name;
  if (!absl::ConsumePrefix(&rest, "torch.")) return TorchUse::kCompute;
  if (std::optional<TorchUse> use = TorchUses().Find(rest)) return *use;
  if (StartsWithAny(rest, {"_inductor.runtime.triton_helpers", "_inductor.runtime.hints"}))
    return TorchUse::kHost;
  if (rest.find('.') == absl::string_view::npos && TensorUseOf(rest) == TensorUse::kView)
    return TorchUse::kView;
  return ByPrefix(rest);
}

}  // namespace tritonrl::lint
