// Methods and attributes of tensors, and allocation.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {

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
      const bool picked = tensor->picked || ChosenByElement(args.All());
      if (same_shape) return arena_.Tensor(tensor->storages, tensor->shape, picked);
      if (tensor->IsSmall())
        return arena_.Tensor(tensor->storages, std::vector<int64_t>{1}, picked);
      Value view = arena_.Tensor(tensor->storages, std::nullopt, picked);
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
        return arena_.Size();
      if (name == "stride" || name == "size") {
        if (!args.positional.empty() || !args.keyword.empty()) {
          const std::optional<int64_t> d = ConstantInt(args.Get(0, "dim"));
          if (name == "size" && tensor->shape.has_value() && d.has_value() && *d >= 0 &&
              *d < static_cast<int64_t>(tensor->shape->size()) && (*tensor->shape)[*d] >= 0) {
            return arena_.Constant((*tensor->shape)[*d]);
          }
          return arena_.Size();
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
      if (IsPicked(args.Get(0, "src"))) Compute("index by single elements", args.line, sources);
      for (int storage : tensor->storages) AddTo(&storages_[storage].sources, SourcesOf(args));
      if (name == "set_") AddTo(&tensor->storages, SourcesOf(args));
      return tensor;
    case TensorUse::kItem:
      return arena_.Host(tensor->storages);
    case TensorUse::kToPython:
      if (phase_ == Phase::kForward && (!tensor->IsSmall() || InPieces(sources))) {
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
  // Each element a known number of times is a copy; a tensor that says how often computes.
  if (name == "repeat_interleave" && AsHost(args.Get(0, "repeats")) != nullptr)
    return NewTensor(sources);
  CallCallbacks(args);
  std::vector<Value> operands = args.All();
  operands.push_back(tensor);
  if (name != "backward" && tensor->IsSmall() && OnlySmall(args) && !InPieces(sources) &&
      IsPostProcessing(operands))
    return NewTensor(sources, tensor->shape);
  return Compute(std::string(name), args.line, sources);
}

Value Interpreter::TensorAttribute(Value object, absl::string_view name) {
  TensorObject* tensor = AsTensor(object);
  if (!Is(kTensorProperty, name)) return arena_.Method(object, name);
  if (TensorUseOf(name) == TensorUse::kView) {
    Shape shape = tensor->shape;
    if (name == "T" && shape.has_value())
      shape = std::vector<int64_t>(shape->rbegin(), shape->rend());
    if (name == "mT" || name == "mH") shape.reset();
    if (name == "grad" || name == "_base")
      return arena_.Join(arena_.Tensor(tensor->storages, shape), None());
    return arena_.Tensor(tensor->storages, shape);
  }
  if (name == "is_cuda")
    return arena_.Constant(true);  // on the machine that counts, inputs are on the GPU
  if (name == "is_cpu" || name == "is_meta" || name == "is_sparse") return arena_.Constant(false);
  if (name == "shape") {
    if (tensor->shape.has_value()) {
      std::vector<Value> sizes;
      for (int64_t size : *tensor->shape)
        sizes.push_back(size < 0 ? arena_.Size() : arena_.Constant(size));
      return arena_.List(std::move(sizes));
    }
    auto* shape = arena_.New<HostObject>();
    shape->is_shape = true;
    return shape;
  }
  if (name == "__class__") return arena_.Symbol("torch.Tensor");
  if (name == "ndim") return arena_.Size();
  if (name == "device") return arena_.Symbol("torch.device()");
  return arena_.Host();
}

}  // namespace tritonrl::lint
