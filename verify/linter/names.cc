#include "verify/linter/names.h"

#include <unicode/normalizer2.h>
#include <unicode/unistr.h>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "verify/linter/name_table.h"

namespace tritonrl::lint {
namespace {

const NameTable<uint32_t>& Names() {
  static const NameTable<uint32_t> table{
      {kForbiddenModule,
       "ctypes _ctypes cffi subprocess multiprocessing _thread concurrent asyncio "
       "socket ssl http urllib requests ftplib smtplib xmlrpc builtins imp pkgutil "
       "runpy code codeop marshal pickle dill cloudpickle joblib shelve gc inspect ast dis base64 "
       "binascii codecs zlib gzip bz2 lzma signal atexit pty mmap tempfile shutil pathlib glob io "
       "fcntl select selectors resource faulthandler tracemalloc unittest mock site sysconfig "
       "zipimport sched numba cupy jax tensorflow tvm pycuda cython pyximport setuptools "
       "distutils posix webbrowser pdb bdb trace profile cProfile timeit opcode symtable tokenize "
       "sqlite3 readline rlcompleter zipfile tarfile cuda nvidia pynvml forbiddenfruit wrapt "
       "mxnet paddle onnxruntime tensorrt cutlass tilelang __main__ main conftest"},
      {kForbiddenBuiltin,
       "exec eval compile __import__ globals locals vars open input breakpoint __builtins__ "
       "__loader__ __spec__ delattr exit quit memoryview help"},
      {kForbiddenAttribute,
       "__dict__ __globals__ __builtins__ __subclasses__ __bases__ __base__ __mro__ mro __code__ "
       "__closure__ __getattribute__ __import__ __loader__ __spec__ __reduce__ __reduce_ex__ "
       "__setattr__ __delattr__ __self__ __func__ __wrapped__ __torch_function__ "
       "__torch_dispatch__ __defaults__ __kwdefaults__ f_globals f_locals f_back f_builtins "
       "f_code gi_frame gi_code cr_frame tb_frame tb_next __traceback__ __array_interface__ "
       "__cuda_array_interface__ __array_function__ __array_ufunc__ _getframe __weakref__ "
       "__slots__ __objclass__ __set_name__ __annotations__ __module__ func_globals co_code "
       "co_consts _call_impl _wrapped_call_impl _slow_forward _forward_hooks _forward_pre_hooks "
       "_backward_hooks _compiled_call_impl _modules _parameters _buffers __weakrefoffset__ "
       "gi_yieldfrom ag_frame"},
      {kForbiddenMethod,
       "__torch_function__ __torch_dispatch__ __del__ __getattribute__ __setattr__ __delattr__ "
       "__init_subclass__ __set_name__ __instancecheck__ __subclasscheck__ __prepare__ "
       "__class_getitem__ __array_function__ __array_ufunc__ __reduce__ __reduce_ex__ "
       "__getstate__ __setstate__ __deepcopy__ __copy__ _call_impl _wrapped_call_impl "
       "_slow_forward _compiled_call_impl _apply __match_args__"},
      {kForbiddenFunction,
       "types.FunctionType types.CodeType types.ModuleType types.LambdaType operator.attrgetter "
       "operator.methodcaller functools.singledispatch typing.get_type_hints typing.ForwardRef "
       "typing_extensions.get_type_hints types.new_class types.resolve_bases types.coroutine"},
      {kPermittedFunction,
       "os.environ os.getenv os.path os.cpu_count os.getpid os.sep os.linesep os.name os.getcwd "
       "sys.version sys.version_info sys.platform sys.maxsize sys.argv sys.byteorder sys.stderr "
       "sys.stdout sys.path sys.float_info sys.executable sys.implementation importlib.util "
       "importlib.metadata importlib.util.find_spec importlib.metadata.version "
       "importlib.metadata.PackageNotFoundError threading.Lock threading.RLock"},
      {kPythonBuiltin,
       "abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex "
       "dict dir divmod enumerate filter float format frozenset getattr hasattr hash hex id int "
       "isinstance issubclass iter len list map max min next object oct ord pow print property "
       "range repr reversed round set setattr slice sorted staticmethod str sum super tuple type "
       "zip Ellipsis NotImplemented __name__ __file__ __debug__ __doc__"},
      {kTensorProperty,
       "T mT H mH data grad real imag shape dtype device layout ndim requires_grad is_cuda is_cpu "
       "_version _base is_meta is_leaf itemsize nbytes names is_sparse is_quantized grad_fn "
       "__class__"},
      {kParameterName,
       "weight bias running_mean running_var num_batches_tracked in_proj_weight in_proj_bias "
       "q_proj_weight k_proj_weight v_proj_weight bias_k bias_v weight_g weight_v"},
      {kNeutralModule,
       "torch.nn.Identity torch.nn.Flatten torch.nn.Unflatten torch.nn.ZeroPad1d "
       "torch.nn.ZeroPad2d "
       "torch.nn.ZeroPad3d torch.nn.ConstantPad1d torch.nn.ConstantPad2d torch.nn.ConstantPad3d"},
      {kContainerModule,
       "torch.nn.Sequential torch.nn.ModuleList torch.nn.ModuleDict torch.nn.ParameterList "
       "torch.nn.ParameterDict torch.nn.Module"},
      {kJit,
       "triton.jit triton.runtime.jit triton.runtime.jit.jit triton.JITFunction "
       "triton.runtime.JITFunction triton.runtime.jit.JITFunction triton.experimental.gluon.jit"},
      {kModuleSetting,
       "groups eps momentum stride padding dilation normalized_shape p dim output_padding affine "
       "negative_slope alpha bias inplace batch_first beta threshold min_val max_val lambd "
       "reduction margin transposed approximate elementwise_affine track_running_stats ceil_mode "
       "return_indices count_include_pad divisor_override mode scale_factor align_corners "
       "padding_idx max_norm norm_type sparse bidirectional dropout upscale_factor "
       "downscale_factor nonlinearity ignore_index label_smoothing delta swap size"},
      {kModuleMethod,
       "train eval to cuda cpu float half double bfloat16 type apply extra_repr state_dict "
       "load_state_dict parameters named_parameters buffers named_buffers children modules "
       "named_modules named_children zero_grad share_memory requires_grad_ get_submodule "
       "get_parameter get_buffer add_module register_module register_buffer register_parameter "
       "_get_name _save_to_state_dict _load_from_state_dict _named_members to_empty ipu xpu "
       "set_submodule compile get_extra_state set_extra_state _replicate_for_data_parallel "
       "_maybe_warn_non_full_backward_hook _register_load_state_dict_pre_hook"},
      {kReexported,
       "np numpy torch os sys builtins bltns subprocess importlib inspect ctypes threading gc io "
       "pickle tempfile shutil socket signal runpy code marshal codecs mmap types weakref "
       "contextvars platform pathlib glob _os _sys _thread _io _weakref thread atexit linecache "
       "tokenize ast dis"},
      {kProcessSetting,
       "torch.manual_seed torch.seed torch.set_rng_state torch.set_default_dtype "
       "torch.set_default_device torch.use_deterministic_algorithms torch.set_num_threads "
       "torch.set_num_interop_threads torch.set_flush_denormal torch.cuda.manual_seed "
       "torch.cuda.manual_seed_all torch.cuda.seed torch.cuda.seed_all torch.cuda.set_rng_state "
       "torch.random.manual_seed torch.random.seed "
       "torch.random.set_rng_state random.seed numpy.random.seed torch.cuda.init "
       "torch.cuda.set_per_process_memory_fraction torch.set_default_tensor_type"},
      {kStreamFunction,
       "torch.cuda.Stream torch.cuda.ExternalStream torch.cuda.set_stream torch.Stream "
       "torch.cuda.streams.Stream torch.cuda.streams.ExternalStream"}};
  return table;
}

// Modules in which a name above means a part of their own.
bool OwnsName(absl::string_view module, absl::string_view name) {
  if (module == "os" || module == "sys" || module == name) return true;
  const bool torch = module == "torch" || absl::StartsWith(module, "torch.");
  if (!torch) return name == "types" && absl::StartsWith(module, "triton.language");
  return name == "numpy" || name == "types" || name == "signal" || name == "code" ||
         name == "platform";
}

// "os.path" of "os.path.join".
absl::string_view FirstTwo(absl::string_view name) {
  return name.substr(0, name.find('.', name.find('.') + 1));
}

}  // namespace

bool Is(NameTrait trait, absl::string_view name) {
  const std::optional<uint32_t> traits = Names().Find(name);
  return traits.has_value() && (*traits & trait) != 0;
}

bool IsForbiddenModule(absl::string_view module) {
  return Is(kForbiddenModule, module.substr(0, module.find('.'))) ||
         StartsWithAny(
             module, {"triton._C", "triton.runtime.interpreter", "torch.utils.cpp_extension",
                      "torch.utils.dlpack", "torch._inductor.codecache", "torch.jit",
                      "torch.utils._python_dispatch", "torch.overrides", "torch.multiprocessing"});
}

bool IsForbiddenFunction(absl::string_view name) {
  if (name == kImportModule) return false;  // its calls are looked at one by one
  if (Is(kForbiddenFunction, name) || Is(kStreamFunction, name)) return true;
  if (StartsWithAny(name, {"importlib.", "threading."})) return !Is(kPermittedFunction, name);
  return StartsWithAny(name, {"os.", "sys."}) && !Is(kPermittedFunction, FirstTwo(name));
}

bool FoldsIntoAnother(absl::string_view name) {
  bool ascii = true;
  for (const char c : name) ascii = ascii && static_cast<unsigned char>(c) < 0x80;
  if (ascii) return false;
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfkc = icu::Normalizer2::getNFKCInstance(status);
  if (U_FAILURE(status)) return true;
  const auto text = icu::UnicodeString::fromUTF8(
      icu::StringPiece(name.data(), static_cast<int32_t>(name.size())));
  const bool stable = nfkc->isNormalized(text, status) && text.indexOf(char16_t{0xFFFD}) < 0;
  return U_FAILURE(status) || !stable;
}

std::string ReexportedModule(absl::string_view module, absl::string_view name) {
  if (!Is(kReexported, name) || OwnsName(module, name)) return "";
  if (name == "np") return "numpy";
  if (name == "bltns") return "builtins";
  absl::ConsumePrefix(&name, "_");
  return std::string(name);
}

std::string WhyForbidden(absl::string_view name) {
  return Is(kStreamFunction, name) ? "moves work away from the stream whose time is taken"
                                   : "reaches into the interpreter or the operating system";
}

bool IsClock(absl::string_view name) {
  return StartsWithAny(name, {"time.", "timeit.", "datetime.datetime.", "datetime.date.today",
                              "torch.utils.benchmark"}) ||
         name == "torch.cuda.Event" || name == "torch.Event" || name == "torch.cuda.streams.Event";
}

bool ChangesProcess(absl::string_view name) { return Is(kProcessSetting, name); }

bool IsChance(absl::string_view name) {
  return StartsWithAny(name, {"random.", "numpy.random.", "secrets.", "uuid."}) &&
         !Is(kProcessSetting, name);
}

bool IsDriverChange(absl::string_view name) {
  return absl::StartsWith(name, "triton.") &&
         (absl::EndsWith(name, ".set_active") || absl::EndsWith(name, ".reset_active"));
}

bool IsPermittedSetting(absl::string_view name) {
  return absl::StartsWith(name, "torch.backends.") && !absl::StrContains(name, "._");
}

bool IsPermittedVariable(absl::string_view name) {
  return StartsWithAny(name, {"CUDA_", "TORCH_", "PYTORCH_", "OMP_"}) ||
         name == "TRITON_PRINT_AUTOTUNING";
}

bool IsParameterName(absl::string_view name) {
  return Is(kParameterName, name) || StartsWithAny(name, {"weight_", "bias_"});
}

}  // namespace tritonrl::lint
