// torch, triton and other libraries.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
namespace {

bool IsJit(absl::string_view name) {
  return name == "triton.jit" || name == "triton.runtime.jit" || name == "triton.runtime.jit.jit" ||
         name == "triton.JITFunction" || name == "triton.runtime.JITFunction" ||
         name == "triton.runtime.jit.JITFunction" || name == "triton.experimental.gluon.jit";
}

// Decorators that take a kernel and give a kernel.
bool IsKernelWrapper(absl::string_view name) {
  return name == "triton.autotune" || name == "triton.heuristics" ||
         name == "triton.runtime.autotune" || name == "triton.runtime.heuristics" ||
         name == "triton.runtime.autotuner.autotune" ||
         name == "triton.runtime.autotuner.heuristics" || name == "triton.runtime.Autotuner" ||
         name == "triton.testing.perf_report";
}

bool IsHarmlessTriton(absl::string_view name) {
  for (absl::string_view prefix :
       {"triton.cdiv", "triton.next_power_of_2", "triton.Config", "triton.language.",
        "triton.runtime.", "triton.testing.", "triton.set_allocator", "triton.knobs.",
        "triton.tools.", "triton.__version__", "triton.backends.", "triton.TensorWrapper",
        "triton.reinterpret", "triton.constexpr_function", "triton.compiler."}) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return false;
}

}  // namespace

Value Interpreter::MakeKernel(Value function) {
  if (AsKernel(function) != nullptr) return function;
  FunctionObject* inner = AsFunction(function);
  if (inner == nullptr || inner->node->kind != Kind::kFunctionDef) return arena_.Unknown();
  auto* kernel = arena_.New<KernelObject>();
  kernel->function = inner;
  kernels_.push_back(kernel);
  return kernel;
}

Value Interpreter::CallSymbol(const std::string& name, const Args& args) {
  if (IsForbiddenFunction(name)) {
    Forbid(args.line, name, "reaches into the interpreter or the operating system");
    return arena_.Unknown(SourcesOf(args));
  }
  if (absl::EndsWith(name, "()")) return CallDecoratorResult(name, args);
  if (absl::StartsWith(name, "builtins."))
    return CallBuiltin(absl::string_view(name).substr(9), args);
  if (absl::StartsWith(name, "torch.")) return CallTorch(name, args);
  if (absl::StartsWith(name, "triton.")) return CallTriton(name, args);
  for (absl::string_view module :
       {"functools.", "operator.", "math.", "itertools.", "collections.", "contextlib.",
        "dataclasses.", "copy.", "typing.", "types.", "abc.", "enum.", "warnings.", "logging.",
        "os.", "sys.", "time.", "typing_extensions."}) {
    if (absl::StartsWith(name, module)) return CallStandardLibrary(name, args);
  }
  return CallOtherLibrary(name, args);
}

Value Interpreter::CallDecoratorResult(const std::string& name, const Args& args) {
  const std::string base = name.substr(0, name.size() - 2);
  Value first = args.Get(0, "");
  if (IsJit(base)) return MakeKernel(first);
  if (first == nullptr) return arena_.Host();
  return first;  // no_grad(), wraps(f), autotune(...): the function itself
}

Value Interpreter::CallTriton(const std::string& name, const Args& args) {
  Value first = args.Get(0, "fn");
  if (IsJit(name)) {
    if (AsFunction(first) != nullptr) return MakeKernel(first);
    return arena_.Symbol("triton.jit()");
  }
  if (IsKernelWrapper(name)) {
    if (AsKernel(first) != nullptr) return first;
    return arena_.Symbol(absl::StrCat(name, "()"));
  }
  if (name == "triton.cdiv" || name == "triton.next_power_of_2") {
    const std::optional<int64_t> a = ConstantInt(first), b = ConstantInt(args.Get(1, "y"));
    if (name == "triton.cdiv" && a.has_value() && b.has_value() && *a >= 0 && *b > 0) {
      return arena_.Constant((*a + *b - 1) / *b);
    }
    return arena_.Int(SourcesOf(args));
  }
  if (absl::StrContains(name, "ensor_descriptor.TensorDescriptor") ||
      absl::StartsWith(name, "triton.TensorWrapper") ||
      absl::StartsWith(name, "triton.reinterpret") || absl::StartsWith(name, "triton.tools.")) {
    Value base = args.Get(0, "base");
    if (auto* tensor = AsTensor(base)) return arena_.Tensor(tensor->storages);
    return arena_.Unknown(SourcesOf(args));
  }
  if (name == "triton.testing.do_bench" || name == "triton.testing.do_bench_cudagraph") {
    CallCallbacks(args);
    return arena_.Host();
  }
  if (IsHarmlessTriton(name)) return arena_.Host(SourcesOf(args));
  return CallOtherLibrary(name, args);
}

Value Interpreter::CallOtherLibrary(const std::string& name, const Args& args) {
  CallCallbacks(args);
  bool tensors = false;
  for (Value value : args.All()) tensors = tensors || HoldsTensor(value);
  if (!tensors) return arena_.Unknown(SourcesOf(args));
  const bool numpy = absl::StartsWith(name, "numpy.") || absl::StartsWith(name, "scipy.");
  if (numpy && phase_ == Phase::kForward) {
    Find(LintRule::kPythonCompute, args.line, name,
         absl::StrCat(name, " computes outside the Triton kernels"));
    return NewTensor(SourcesOf(args));
  }
  return Compute(name, args.line, SourcesOf(args));
}

Shape Interpreter::ShapeFromArgs(const Args& args, int first_size) {
  std::vector<Value> sizes;
  if (Value size = args.Get(-1, "size"); size != nullptr && size != args.rest) {
    sizes.push_back(size);
  } else {
    if (static_cast<int>(args.positional.size()) <= first_size || args.rest != nullptr)
      return std::nullopt;
    sizes.assign(args.positional.begin() + first_size, args.positional.end());
  }
  if (auto* list = AsList(sizes[0])) {
    if (!list->exact) return std::nullopt;
    sizes = list->items;
  }
  std::vector<int64_t> shape;
  for (Value size : sizes) {
    const HostObject* host = AsHost(size);
    if (host == nullptr || host->is_shape || !host->is_int) return std::nullopt;
    shape.push_back(ConstantInt(size).value_or(-1));
  }
  return shape;
}

Value Interpreter::Allocate(const Args& args, int first_size, bool constant, bool like) {
  Shape shape;
  if (like) {
    if (auto* tensor = AsTensor(args.Get(0, "input"))) shape = tensor->shape;
  } else {
    shape = ShapeFromArgs(args, first_size);
  }
  StorageSet addresses;
  StorageSet sources;
  if (!like) {
    for (Value value : args.All()) {
      if (AsHost(value) != nullptr) AddTo(&sources, AsHost(value)->sources);
      if (auto* list = AsList(value)) {
        for (Value item : list->items) {
          if (AsHost(item) != nullptr) AddTo(&addresses, AsHost(item)->addresses);
          if (AsHost(item) != nullptr) AddTo(&sources, AsHost(item)->sources);
          if (AsTensor(item) != nullptr) AddTo(&sources, AsTensor(item)->storages);
        }
      }
    }
  }
  Value tensor = NewTensor(sources, shape);
  storages_.back().constant = constant && sources.empty();
  storages_.back().addresses = addresses;
  return tensor;
}

Value Interpreter::CallTorch(const std::string& name, const Args& args) {
  const absl::string_view last = absl::string_view(name).substr(name.rfind('.') + 1);
  Value first = args.Get(0, "input");
  if (name == "torch.cuda.is_available") return arena_.Constant(true);
  if (name == "torch.device") return arena_.Symbol("torch.device()");
  switch (TorchUseOf(name)) {
    case TorchUse::kAllocate:
    case TorchUse::kRandom: {
      const bool like = absl::EndsWith(last, "_like");
      return Allocate(args, last == "randint" ? 2 : 0, absl::StartsWith(last, "zeros"), like);
    }
    case TorchUse::kConstant: {
      if (last == "tensor" || last == "as_tensor" || last == "asarray" || last == "scalar_tensor") {
        if (auto* tensor = AsTensor(first)) return arena_.Tensor(tensor->storages, tensor->shape);
        Value made = Allocate(args, 99, true, false);
        if (AsHost(first) != nullptr && !AsHost(first)->is_shape)
          AsTensor(made)->shape = std::vector<int64_t>{};
        if (auto* list = AsList(first); list != nullptr && list->exact) {
          bool flat = true;
          for (Value item : list->items) flat = flat && AsHost(item) != nullptr;
          if (flat)
            AsTensor(made)->shape = std::vector<int64_t>{static_cast<int64_t>(list->items.size())};
        }
        return made;
      }
      if (last == "full") {
        Args size_only = args;
        if (size_only.positional.size() > 1) size_only.positional.resize(1);
        return Allocate(size_only, 0, true, false);
      }
      return Allocate(args, last == "arange" || last == "linspace" ? 99 : 0, true,
                      absl::EndsWith(last, "_like"));
    }
    case TorchUse::kView: {
      if (first == nullptr) return arena_.Unknown();
      if (AsTensor(first) == nullptr)
        return AsHost(first) != nullptr ? first : arena_.Unknown(Reachable(first));
      Args rest = args;
      if (!rest.positional.empty()) rest.positional.erase(rest.positional.begin());
      return CallTensorMethod(AsTensor(first), last, rest);
    }
    case TorchUse::kCopy:
      return NewTensor(SourcesOf(args),
                       OnlySmall(args) ? Shape(std::vector<int64_t>{-1}) : Shape());
    case TorchUse::kHost:
      return last == "numel" ? arena_.Int() : arena_.Host();
    case TorchUse::kWrapper:
      if (AsFunction(first) != nullptr || AsBoundFunction(first)) return first;
      return arena_.Symbol(absl::StrCat(name, "()"));
    case TorchUse::kModuleClass: {
      auto* module = arena_.New<ModuleObject>();
      module->name = name;
      std::vector<Value> parts = args.All();
      for (Value part : parts) {
        bool exact = true;
        if (auto* dict = AsDict(part)) {
          for (const auto& [key, value] : dict->items) module->children.push_back(value);
        } else if (AsList(part) != nullptr) {
          AddItems(part, &module->children, &exact);
        } else if (AsHost(part) == nullptr) {
          module->children.push_back(part);
        }
      }
      return module;
    }
    case TorchUse::kParameter: {
      Value data = args.Get(0, "data");
      Value parameter =
          InputTensor(AsTensor(data) != nullptr ? AsTensor(data)->shape : std::nullopt);
      return parameter;
    }
    case TorchUse::kInit:
      if (phase_ == Phase::kForward) return Compute(name, args.line, SourcesOf(args));
      return first == nullptr ? None() : first;
    case TorchUse::kTensorMethod: {
      Value self = args.Get(0, "self");
      if (AsTensor(self) == nullptr) return Elementwise(name, args.All(), args.line);
      Args rest = args;
      if (!rest.positional.empty()) rest.positional.erase(rest.positional.begin());
      return CallTensorMethod(AsTensor(self), last, rest);
    }
    case TorchUse::kCustomOp:
      return arena_.Symbol(absl::StrCat(name, "()"));
    case TorchUse::kWrapKernel:
      return first == nullptr ? arena_.Unknown() : first;
    case TorchUse::kForbidden:
      Find(phase_ == Phase::kForward ? LintRule::kTorchCompute : LintRule::kForbidden, args.line,
           name, absl::StrCat(name, " does work outside the program's own kernels"));
      CallCallbacks(args);
      return first != nullptr && AsFunction(first) != nullptr ? first
                                                              : arena_.Unknown(SourcesOf(args));
    case TorchUse::kCompute:
      break;
  }
  if (phase_ != Phase::kForward) {
    // Preparing parameters: nn.utils wrappers give back the module, the rest gives tensors.
    if (absl::StartsWith(name, "torch.nn.utils.")) return first == nullptr ? None() : first;
    CallCallbacks(args);
    return NewTensor(SourcesOf(args), OnlySmall(args) ? Shape(std::vector<int64_t>{1}) : Shape());
  }
  CallCallbacks(args);
  const bool functional = absl::StartsWith(name, "torch.nn.");
  bool any_tensor = false;
  for (Value value : args.All()) any_tensor = any_tensor || HoldsTensor(value);
  if (!functional && any_tensor && OnlySmall(args))
    return NewTensor(SourcesOf(args), std::vector<int64_t>{1});
  return Compute(name, args.line, SourcesOf(args));
}

Value Interpreter::CallTensorMethod(TensorObject* tensor, absl::string_view name,
                                    const Args& args) {
  StorageSet sources = tensor->storages;
  AddTo(&sources, SourcesOf(args));
  switch (TensorUseOf(name)) {
    case TensorUse::kView: {
      const bool same_shape =
          name == "contiguous" || name == "to" || name == "float" || name == "half" ||
          name == "bfloat16" || name == "double" || name == "detach" || name == "cuda" ||
          name == "requires_grad_" || name == "int" || name == "long" || name == "type" ||
          name == "detach_" || name == "cpu" || name == "bool" || name == "pin_memory";
      if (same_shape) return arena_.Tensor(tensor->storages, tensor->shape);
      if (tensor->IsSmall()) return arena_.Tensor(tensor->storages, std::vector<int64_t>{1});
      Value view = arena_.Tensor(tensor->storages);
      if (name == "view" || name == "reshape") AsTensor(view)->shape = ShapeFromArgs(args, 0);
      if (name == "flatten" && args.positional.empty())
        AsTensor(view)->shape = std::vector<int64_t>{-1};
      const bool several = name == "unbind" || name == "split" || name == "chunk" ||
                           name == "tensor_split" || name == "hsplit" || name == "vsplit" ||
                           name == "split_with_sizes";
      return several ? arena_.List({view}, false) : view;
    }
    case TensorUse::kCopy:
      return NewTensor(sources, name == "clone" ? tensor->shape : Shape());
    case TensorUse::kAllocate:
      return Allocate(args, 0, name != "new_empty", false);
    case TensorUse::kHost:
      if (name == "numel" || name == "nelement" || name == "dim" || name == "ndimension")
        return arena_.Int();
      if (name == "stride" || name == "size") {
        if (!args.positional.empty() || !args.keyword.empty()) {
          const std::optional<int64_t> d = ConstantInt(args.Get(0, "dim"));
          if (name == "size" && tensor->shape.has_value() && d.has_value() && *d >= 0 &&
              *d < static_cast<int64_t>(tensor->shape->size()) && (*tensor->shape)[*d] >= 0) {
            return arena_.Constant((*tensor->shape)[*d]);
          }
          return arena_.Int();
        }
        return TensorAttribute(tensor, "shape");
      }
      return arena_.Host();
    case TensorUse::kAddress: {
      auto* address = arena_.New<HostObject>();
      address->is_int = true;
      address->addresses = tensor->storages;
      return address;
    }
    case TensorUse::kFill:
      for (int storage : tensor->storages) AddTo(&storages_[storage].sources, SourcesOf(args));
      if (name == "set_") AddTo(&tensor->storages, SourcesOf(args));
      return tensor;
    case TensorUse::kItem:
      return arena_.Host(tensor->storages);
    case TensorUse::kToPython:
      if (phase_ == Phase::kForward && !tensor->IsSmall()) {
        Find(LintRule::kPythonCompute, args.line, std::string(name),
             "moves tensor elements out of torch to compute on them");
      }
      return arena_.Unknown(tensor->storages);
    case TensorUse::kHook:
      Forbid(args.line, std::string(name), "hides code in a hook");
      return None();
    case TensorUse::kCompute:
      break;
  }
  CallCallbacks(args);
  if (tensor->IsSmall() && OnlySmall(args)) return NewTensor(sources, tensor->shape);
  return Compute(std::string(name), args.line, sources);
}

}  // namespace tritonrl::lint
