// torch, triton and other libraries.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
namespace {

constexpr int64_t kMostDimensions = 8;  // of tensors that people use

}  // namespace

Value Interpreter::CallSymbol(const std::string& name, const Args& args) {
  if (IsForbiddenFunction(name)) {
    Forbid(args.line, name, WhyForbidden(name));
    return arena_.Unknown(SourcesOf(args));
  }
  if (absl::StartsWith(name, kImportModule)) return ImportModule(name, args);
  if (absl::EndsWith(name, "()")) return CallDecoratorResult(name, args);
  // What the time says has nothing to do with the result; a program that looks knows when it is
  // timed.
  if (phase_ == Phase::kForward && IsClock(name))
    Forbid(args.line, name, "looks at the clock in forward's path");
  if (phase_ == Phase::kForward && IsChance(name)) {
    CallCallbacks(args);
    if (!AnyTensor(args)) return CountOfCalls();
  }
  if (phase_ == Phase::kForward && ChangesProcess(name))
    Forbid(args.line, name, "changes a setting of the whole process in forward's path");
  if (absl::EndsWith(name, ".__new__") && AsClass(args.Get(0, "")) != nullptr) {
    auto* instance = arena_.New<InstanceObject>();
    instance->type = AsClass(args.Get(0, ""));
    instances_.push_back(instance);
    return instance;
  }
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

Value Interpreter::ImportModule(const std::string& name, const Args& args) {
  const std::string* module = ConstantString(args.Get(0, "name"));
  const bool known = name == kImportModule && module != nullptr && args.All().size() == 1;
  if (known && !IsForbiddenModule(*module))
    return arena_.Symbol(absl::StrCat(kImportModule, " ", *module));
  Forbid(args.line, std::string(kImportModule), WhyForbidden(kImportModule));
  return arena_.Unknown(SourcesOf(args));
}

Value Interpreter::CallDecoratorResult(const std::string& name, const Args& args) {
  const std::string base = name.substr(0, name.size() - 2);
  Value first = args.Get(0, "");
  if (base == "torch.compiler") return arena_.Symbol("torch.compiled_function");
  if (Is(kJit, base)) return MakeKernel(first);
  if (first == nullptr) return arena_.Host();
  if (auto* function = AsFunction(first); function != nullptr) {
    if (base == "functools.lru_cache" || base == "functools.cache") function->cached = true;
    absl::string_view op = base;
    if (absl::ConsumePrefix(&op, "torch.library.op "))
      custom_ops_.emplace_back(std::string(op), first);
  }
  if (HoldsTensor(first) && AsInstance(first) == nullptr) return CallUnknown(first, args);
  return first;  // no_grad(), wraps(f), autotune(...): the function itself
}

Value Interpreter::MakeConstant(absl::string_view last, const Args& args) {
  Value first = args.Get(0, "input");
  if (last == "tensor" || last == "as_tensor" || last == "asarray" || last == "scalar_tensor") {
    if (auto* tensor = AsTensor(first)) return arena_.Tensor(tensor->storages, tensor->shape);
    Value made = Allocate(args, 99, true, false);
    // Of a torch.Size as many elements as a tensor has dimensions.
    if (AsHost(first) != nullptr)
      AsTensor(made)->shape =
          AsHost(first)->is_shape ? std::vector<int64_t>{kMostDimensions} : std::vector<int64_t>{};
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
    Value made = Allocate(size_only, 0, true, false);
    if (auto* fill = AsHost(args.Get(1, "fill_value")); fill != nullptr && !fill->sources.empty()) {
      storages_.back().sources = fill->sources;  // a number that was read from a tensor
      storages_.back().constant = false;
    }
    return made;
  }
  return Allocate(args, last == "arange" || last == "linspace" ? 99 : 0, true,
                  absl::EndsWith(last, "_like"));
}

Value Interpreter::MakeModule(const std::string& name, const Args& args) {
  auto* module = arena_.New<ModuleObject>();
  module->name = name;
  std::vector<Value> parts = args.All();
  for (Value part : parts) {
    if (part == args.rest) module->exact = false;
    if (auto* dict = AsDict(part)) {
      for (const auto& [key, value] : dict->items) {
        module->children.push_back(value);
        absl::string_view child = key;
        if (absl::ConsumePrefix(&child, "s:")) module->attributes.emplace(child, value);
      }
    } else if (AsList(part) != nullptr) {
      AddItems(part, &module->children, &module->exact);
    } else if (AsHost(part) == nullptr) {
      module->children.push_back(part);
    }
  }
  return module;
}

Value Interpreter::DrawMask(absl::string_view name, const Args& args) {
  if (phase_ != Phase::kForward) return nullptr;
  for (absl::string_view part : {"torch.", "nn.", "functional."}) absl::ConsumePrefix(&name, part);
  if (name != "dropout" && name != "Dropout" && name != "native_dropout" && name != "bernoulli")
    return nullptr;
  auto* tensor = AsTensor(args.Get(0, "input"));
  if (tensor == nullptr || tensor->storages.empty()) return nullptr;
  for (int s : tensor->storages) {
    const Storage& made = storages_[s];
    if (!made.constant || !made.sources.empty() || !made.launches.empty()) return nullptr;
  }
  Value mask = Allocate(args, 0, false, true);
  return name == "native_dropout" ? arena_.List({mask, Allocate(args, 0, false, true)}, true)
                                  : mask;
}

Value Interpreter::CallCompute(const std::string& name, const Args& args) {
  if (Value mask = DrawMask(name, args)) return mask;
  Value first = args.Get(0, "input");
  if (phase_ != Phase::kForward) {
    // Preparing parameters: nn.utils wrappers give back the module, the rest gives tensors.
    if (absl::StartsWith(name, "torch.nn.utils.")) return first == nullptr ? None() : first;
    CallCallbacks(args);
    return NewTensor(SourcesOf(args), OnlySmall(args) ? Shape(std::vector<int64_t>{1}) : Shape());
  }
  CallCallbacks(args);
  const bool functional = absl::StartsWith(name, "torch.nn.");
  const bool any_tensor = AnyTensor(args);
  if (!functional && !any_tensor) return Allocate(args, 99, true, false);  // made from nothing
  if (!functional && OnlySmall(args) && !InPieces(SourcesOf(args)) && IsPostProcessing(args.All()))
    return NewTensor(SourcesOf(args), std::vector<int64_t>{1});
  return Compute(name, args.line, SourcesOf(args));
}

Value Interpreter::CallTensorClass(absl::string_view last, const Args& args) {
  Value self = args.Get(0, "self");
  if (AsTensor(self) == nullptr)
    return Elementwise(absl::StrCat("torch.Tensor.", last), args.All(), args.line);
  Args rest = args;
  if (!rest.positional.empty()) rest.positional.erase(rest.positional.begin());
  return CallTensorMethod(AsTensor(self), last, rest);
}

Value Interpreter::CallLibrary(const std::string& name, const Args& args) {
  constexpr absl::string_view kLibrary = "torch.library.of ";
  const std::string* text = ConstantString(args.Get(0, "name"));
  const std::string* key = ConstantString(args.Get(1, "types"));
  const std::string op = text == nullptr ? "" : absl::StrReplaceAll(*text, {{"::", "."}});
  auto is_own = [](absl::string_view library) {
    return !library.empty() && library != "aten" && library != "prims" && library != "prim" &&
           library != "torch" && library != "quantized" && library[0] != '_';
  };
  if (name == "torch.library.Library") {
    if (text == nullptr || !is_own(*text) || key == nullptr ||
        (*key != "DEF" && *key != "FRAGMENT"))
      return nullptr;
    return arena_.Symbol(absl::StrCat(kLibrary, *text));
  }
  const bool of_own = is_own(op.substr(0, op.find('.')));
  if (name == "torch.library.define") return of_own ? None() : nullptr;
  auto runs_nowhere = [](absl::string_view device) {
    return device == "cpu" || device == "CPU" || device == "Meta" || device == "meta";
  };
  if (name == "torch.library.impl" && of_own && key != nullptr) {
    if (runs_nowhere(*key)) return arena_.Symbol("functools.wraps()");
    Value function = args.Get(2, "func");
    if (function == nullptr) return arena_.Symbol(absl::StrCat("torch.library.op ", op, "()"));
    custom_ops_.emplace_back(op, function);
    return function;
  }
  absl::string_view rest = name;
  if (!absl::ConsumePrefix(&rest, kLibrary)) return nullptr;
  const absl::string_view library = rest.substr(0, rest.find('.'));
  if (absl::EndsWith(name, ".define")) return None();
  Value function = args.Get(1, "fn");
  const std::string* device = ConstantString(args.Get(2, "dispatch_key"));
  if (!absl::EndsWith(name, ".impl") || text == nullptr || function == nullptr) return nullptr;
  if (device == nullptr || !runs_nowhere(*device))
    custom_ops_.emplace_back(absl::StrCat(library, ".", op.substr(op.find('.') + 1)), function);
  return None();
}

Value Interpreter::CallSpecialTorch(const std::string& name, const Args& args) {
  const absl::string_view last = absl::string_view(name).substr(name.rfind('.') + 1);
  Value first = args.Get(0, "input");
  if (absl::StartsWith(name, "torch.nn.Module.") && Is(kModuleMethod, last)) {
    CallCallbacks(args);  // super().train(mode)
    if (AsInstance(first) == nullptr && AsInstance(frame().self) != nullptr) return frame().self;
    return first == nullptr ? None() : first;
  }
  if (name == "torch.cuda.is_available") return arena_.Constant(true);
  if (absl::StrContains(last, "hook")) {
    Forbid(args.line, name, "hides code in a hook");
    return arena_.Unknown(SourcesOf(args));
  }
  if (name == "torch.nn.functional.pad" || name == "torch.constant_pad_nd") {
    // With a constant it only copies; the other modes choose elements.
    const Value mode = args.Get(2, "mode");
    const std::string* text = ConstantString(mode);
    if (mode == nullptr || name == "torch.constant_pad_nd" ||
        (text != nullptr && *text == "constant")) {
      return NewTensor(SourcesOf(args));
    }
  }
  // Reached where no attribute was found: it raises, and what the handler gives counts.
  if (name == "torch.nn.Module.__getattr__") return arena_.Host();
  if (name == "torch.compiled_function") {
    Find(LintRule::kForbidden, args.line, "torch.compile",
         "torch.compile does work outside the program's own kernels");
    return NewTensor(SourcesOf(args));
  }
  if (name == "torch.repeat_interleave" && AsTensor(first) != nullptr) {
    Args rest = args;
    if (!rest.positional.empty()) rest.positional.erase(rest.positional.begin());
    return CallTensorMethod(AsTensor(first), last, rest);
  }
  if (absl::StartsWith(name, "torch.library.")) {
    if (Value value = CallLibrary(name, args)) return value;
  }
  if (name == "torch.broadcast_tensors") {
    std::vector<Value> views;
    for (Value value : args.All()) {
      views.push_back(AsTensor(value) != nullptr ? arena_.Tensor(AsTensor(value)->storages)
                                                 : arena_.Unknown(Reachable(value)));
    }
    return arena_.List(views, args.rest == nullptr);
  }
  if (name == "torch.device") return arena_.Symbol("torch.device()");
  return nullptr;
}

Value Interpreter::CallTorch(const std::string& name, const Args& args) {
  if (Value value = CallSpecialTorch(name, args)) return value;
  const absl::string_view last = absl::string_view(name).substr(name.rfind('.') + 1);
  Value first = args.Get(0, "input");
  switch (TorchUseOf(name)) {
    case TorchUse::kAllocate:
    case TorchUse::kRandom: {
      const bool like = absl::EndsWith(last, "_like");
      return Allocate(args, last == "randint" ? 2 : 0, absl::StartsWith(last, "zeros"), like);
    }
    case TorchUse::kConstant:
      return MakeConstant(last, args);
    case TorchUse::kView: {
      if (first == nullptr) return arena_.Unknown();
      if (AsTensor(first) == nullptr)
        return AsHost(first) != nullptr ? first : arena_.Unknown(Reachable(first));
      Args rest = args;
      if (!rest.positional.empty()) rest.positional.erase(rest.positional.begin());
      return CallTensorMethod(AsTensor(first), last, rest);
    }
    case TorchUse::kCopy:
      if (IsPicked(arena_.List(args.All(), false)))
        return Compute("index by single elements", args.line, SourcesOf(args));
      return NewTensor(SourcesOf(args),
                       OnlySmall(args) ? Shape(std::vector<int64_t>{-1}) : Shape());
    case TorchUse::kCheck:
      // Nobody compiles a candidate.
      if (absl::EndsWith(last, "_compiling") || last == "is_scripting" || last == "is_tracing")
        return arena_.Constant(false);
      return last == "numel" ? arena_.Size() : arena_.Host();
    case TorchUse::kHost:
      // Namespaces are listed as a whole, so something in them may compute after all.
      if (absl::StrContains(name.substr(6), ".") && AnyTensor(args)) {
        return Compute(name, args.line, SourcesOf(args));
      }
      return arena_.Host();
    case TorchUse::kWrapper:
      if (AsFunction(first) != nullptr || AsBoundFunction(first)) return first;
      return arena_.Symbol(absl::StrCat(name, "()"));
    case TorchUse::kModuleClass:
      return MakeModule(name, args);
    case TorchUse::kParameter: {
      Value data = args.Get(0, "data");
      Value parameter =
          InputTensor(AsTensor(data) != nullptr ? AsTensor(data)->shape : std::nullopt);
      return parameter;
    }
    case TorchUse::kInit:
      if (phase_ == Phase::kForward) return Compute(name, args.line, SourcesOf(args));
      return first == nullptr ? None() : first;
    case TorchUse::kTensorMethod:
      return CallTensorClass(last, args);
    case TorchUse::kCustomOp: {
      const std::string* op = ConstantString(args.Get(0, "name"));
      const std::string dotted = op == nullptr ? "" : absl::StrReplaceAll(*op, {{"::", "."}});
      Value function = args.Get(1, "fn");
      if (AsFunction(function) == nullptr)
        return arena_.Symbol(absl::StrCat("torch.library.op ", dotted, "()"));
      custom_ops_.emplace_back(dotted, function);
      return function;
    }
    case TorchUse::kWrapKernel:
      return first == nullptr ? arena_.Unknown() : first;
    case TorchUse::kForbidden:
      // Where nothing of forward calls what it gives, a compiled reference does no harm; a call
      // computes.
      if (name == "torch.compile" && phase_ == Phase::kModule)
        return arena_.Symbol(first != nullptr ? "torch.compiled_function" : "torch.compiler()");
      Find(phase_ == Phase::kForward ? LintRule::kTorchCompute : LintRule::kForbidden, args.line,
           name, absl::StrCat(name, " does work outside the program's own kernels"));
      CallCallbacks(args);
      return first != nullptr && AsFunction(first) != nullptr ? first
                                                              : arena_.Unknown(SourcesOf(args));
    case TorchUse::kCompute:
      break;
  }
  return CallCompute(name, args);
}

}  // namespace tritonrl::lint
