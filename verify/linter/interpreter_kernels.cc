// Triton kernels: making, analysing and launching them.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "verify/linter/interpreter.h"
#include "verify/linter/kernel_analysis.h"

namespace tritonrl::lint {
namespace {

// Launches of one kernel with different constants that are analysed apart.
constexpr size_t kMaxVariants = 6;

// Decorators that take a kernel and give a kernel.
bool IsKernelWrapper(absl::string_view name) {
  return name == "triton.autotune" || name == "triton.heuristics" ||
         name == "triton.runtime.autotune" || name == "triton.runtime.heuristics" ||
         name == "triton.runtime.autotuner.autotune" ||
         name == "triton.runtime.autotuner.heuristics" || name == "triton.runtime.Autotuner" ||
         name == "triton.testing.perf_report" ||
         (absl::StartsWith(name, "torch._inductor.runtime.triton_heuristics.") &&
          !absl::EndsWith(name, "grid"));
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

KernelAnalysis::Constants Interpreter::LaunchConstants(const KernelObject& kernel, const Args& args,
                                                       std::string* key) {
  KernelAnalysis::Constants constants;
  int index = -1;
  for (const Node* parameter : ParameterNames(kernel.function->node)) {
    ++index;
    Value value = args.Get(index, parameter->text);
    const HostObject* host = value == args.rest ? nullptr : AsHost(value);
    if (host == nullptr) continue;
    Taint taint;
    if (const auto* i = std::get_if<int64_t>(&host->constant)) {
      taint = Taint::Number(static_cast<double>(*i));
    } else if (const auto* d = std::get_if<double>(&host->constant)) {
      taint = Taint::Number(*d);
    } else if (const auto* b = std::get_if<bool>(&host->constant)) {
      taint = Taint::Number(*b ? 1 : 0);
    } else if (const auto* s = std::get_if<std::string>(&host->constant)) {
      taint.text = *s;
    } else if (IsNone(value)) {
      taint.text = Taint::kNoneText;
    } else {
      taint.nonnegative = host->is_size;
    }
    if (!taint.nonnegative && !taint.constant.has_value() && !taint.text.has_value()) continue;
    absl::StrAppend(key, index, ":", taint.constant.value_or(-1), taint.constant.has_value(),
                    taint.text.value_or(""), ";");
    constants.emplace(index, std::move(taint));
  }
  return constants;
}

const KernelInfo& Interpreter::AnalyseKernel(KernelObject* kernel, const Args& args) {
  std::string key;
  KernelAnalysis::Constants constants = LaunchConstants(*kernel, args, &key);
  budget_.Spend(key.size() / 8);
  if (kernel->infos.size() >= kMaxVariants && kernel->infos.count(key) == 0) {
    key.clear();  // many launches with different constants: one analysis for the rest
    constants.clear();
  }
  if (auto it = kernel->infos.find(key); it != kernel->infos.end()) return it->second;
  // Names in a kernel mean what they mean where the kernel, or the device function around them, is
  // defined.
  auto resolve = [this, kernel](const Node* name, const Node* inside) {
    KernelAnalysis::Callee callee;
    budget_.Spend(kernels_.size() / 4);
    Scope* scope = kernel->function->closure;
    for (const KernelObject* other : kernels_) {
      if (other->function->node == inside) scope = other->function->closure;
    }
    frames_.push_back({.scope = scope});
    Value value = Eval(name);
    frames_.pop_back();
    if (auto* symbol = AsSymbol(value)) {
      callee.symbol = symbol->name;
      absl::string_view rest = symbol->name;
      callee.undefined = absl::ConsumePrefix(&rest, "builtins.") && !Is(kPythonBuiltin, rest);
    }
    if (auto* device = AsKernel(value)) callee.function = device->function->node;
    if (auto* host = AsHost(value)) {
      if (const auto* i = std::get_if<int64_t>(&host->constant))
        callee.constant = static_cast<double>(*i);
      if (const auto* d = std::get_if<double>(&host->constant)) callee.constant = *d;
    }
    return callee;
  };
  KernelInfo info =
      KernelAnalysis(resolve, &kernel_budget_).Analyse(kernel->function->node, constants);
  if (info.gave_up) Unresolved(info.name, info.line);
  return kernel->infos.emplace(key, std::move(info)).first->second;
}

void Interpreter::AddKernelHooks(const std::vector<Value>& values) {
  for (Value value : arena_.Flat(arena_.List(values))) {
    if (IsCallable(value)) kernel_hooks_.push_back(value);
  }
}

void Interpreter::CallKernelHooks(const KernelInfo& info, const Args& args) {
  if (kernel_hooks_.empty()) return;
  // Heuristics and hooks of configurations get the launch's arguments by name.
  auto* by_name = arena_.New<DictObject>();
  for (int p = 0; p < static_cast<int>(info.parameters.size()); ++p) {
    if (Value value = args.Get(p, info.parameters[p]))
      by_name->items.emplace_back("s:" + info.parameters[p], value);
  }
  by_name->other = args.rest;
  Args hook_args{.positional = {by_name}, .rest = by_name, .line = args.line};
  ++undecided_;
  for (size_t i = 0; i < kernel_hooks_.size(); ++i) Call(kernel_hooks_[i], hook_args);
  --undecided_;
}

Value Interpreter::LaunchKernel(KernelObject* kernel, Value grid, const Args& args) {
  const KernelInfo& info = AnalyseKernel(kernel, args);
  const std::vector<Value> sizes =
      AsList(grid) != nullptr ? AsList(grid)->items : std::vector<Value>{grid};
  for (Value size : sizes) {
    if (ConstantInt(size) == std::optional<int64_t>(0)) {
      Find(LintRule::kKernelNotUsed, args.line, info.name,
           "the kernel is launched on an empty grid");
      return None();
    }
  }
  StorageSet grid_sources = Reachable(grid);
  if (IsCallable(grid) || AsUnion(grid) != nullptr) {
    Value size = Call(grid, {.positional = {arena_.New<DictObject>()}, .line = args.line});
    AddTo(&grid_sources, Reachable(size));
  }
  if (phase_ == Phase::kForward &&
      (counted_ > 0 || Counts(grid_sources) ||
       std::any_of(frames_.begin(), frames_.end(), [](const Frame& f) { return f.counted; }))) {
    Find(
        LintRule::kHardCoded, args.line, info.name,
        "whether and how far the kernel runs depends on chance or on how often forward was called");
  }
  for (Value value : args.All()) {
    if (AsInstance(value) != nullptr) Hide(value, args.line);  // Triton asks it for data_ptr()
  }
  if (phase_ == Phase::kForward) CallKernelHooks(info, args);
  Launch launch{.info = &info, .line = args.line, .arguments = SourcesOf(args)};
  const int number = static_cast<int>(launches_.size());
  auto mark = [&](Value value) {
    for (int storage : Reachable(value)) {
      budget_.Spend(2 + (launch.arguments.size() + storages_[storage].sources.size()) / 4);
      storages_[storage].launches.push_back(number);
      AddTo(&storages_[storage].sources, launch.arguments);
      for (int pointee : storages_[storage].addresses) {
        storages_[pointee].launches.push_back(number);
        AddTo(&storages_[pointee].sources, launch.arguments);
      }
    }
  };
  const int parameters = static_cast<int>(info.parameters.size());
  budget_.SpendSearch(parameters, 8 + args.keyword.size());
  const bool open = info.variadic || args.rest != nullptr;
  for (int p = 0; p < parameters; ++p) {
    if (info.written.count(std::min(p, 63)) == 0) continue;
    Value value = args.Get(p, info.parameters[p]);
    if (value != nullptr) mark(value);
  }
  if (open && info.stores) {
    for (Value value : args.All()) mark(value);
  }
  launches_.push_back(std::move(launch));
  if (phase_ == Phase::kForward &&
      std::find(result_->launched_kernels.begin(), result_->launched_kernels.end(), info.name) ==
          result_->launched_kernels.end()) {
    result_->launched_kernels.push_back(info.name);
    result_->launch_lines.push_back(args.line);
  }
  return None();
}

Value Interpreter::MakeKernel(Value function) {
  if (AsKernel(function) != nullptr) return function;
  FunctionObject* inner = AsFunction(function);
  if (inner == nullptr || inner->node->kind != Kind::kFunctionDef) return arena_.Unknown();
  auto* kernel = arena_.New<KernelObject>();
  kernel->function = inner;
  kernels_.push_back(kernel);
  return kernel;
}

Value Interpreter::CallTriton(const std::string& name, const Args& args) {
  Value first = args.Get(0, "fn");
  if (Is(kJit, name)) {
    for (const auto& [option, value] : args.keyword) {
      if (option != "fn") Hide(value, args.line);  // launch_metadata, repr
    }
    if (AsFunction(first) != nullptr) return MakeKernel(first);
    return arena_.Symbol("triton.jit()");
  }
  if (IsKernelWrapper(name) || name == "triton.Config" || name == "triton.set_allocator")
    AddKernelHooks(args.All());
  if (IsKernelWrapper(name)) {
    if (AsKernel(first) != nullptr) return first;
    return arena_.Symbol(absl::StrCat(name, "()"));
  }
  if (IsDriverChange(name)) Forbid(args.line, name, "replaces the driver that launches kernels");
  if (name == "triton.cdiv" || name == "triton.next_power_of_2") {
    const std::optional<int64_t> a = ConstantInt(first), b = ConstantInt(args.Get(1, "y"));
    if (name == "triton.cdiv" && a.has_value() && b.has_value() && *a >= 0 && *b > 0) {
      return arena_.Constant((*a + *b - 1) / *b);
    }
    return arena_.Size(SourcesOf(args));
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
  // The decorated function gets compile-time values of a kernel. A call from here is followed.
  if (name == "triton.constexpr_function" && AsFunction(args.Get(0, "")) != nullptr)
    return args.Get(0, "");
  if (IsHarmlessTriton(name)) {
    if (name != "triton.Config") Hide(arena_.List(args.All()), args.line);
    return arena_.Host(SourcesOf(args));
  }
  return CallOtherLibrary(name, args);
}

}  // namespace tritonrl::lint
