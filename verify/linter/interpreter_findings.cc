// Findings, storages and calls of callbacks.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
namespace {

constexpr int kMaxFindings = 40;
// Elements of small tensors that may be worked on in one call of forward, all operations together;
// as in verify/pipeline/runtime_audit.h.
constexpr int64_t kMostSmallElements = 256;

}  // namespace

int ParameterCount(const FunctionObject* function) {
  const Node* parameters = function->node->Get(Field::kParameters);
  return parameters == nullptr ? 0 : static_cast<int>(parameters->children.size());
}

Interpreter::Interpreter(Ast* ast, LintResult* result) : ast_(ast), result_(result) {
  for (const LintFinding& finding : result->findings)
    found_.emplace(finding.rule, finding.line, finding.name);
}

void Interpreter::Find(LintRule rule, int line, std::string name, std::string text) {
  line = std::max(line, 1);
  if (found_.size() > kMaxFindings || !found_.emplace(rule, line, name).second) return;
  result_->findings.push_back({rule, line, std::move(name), std::move(text)});
}

void Interpreter::Forbid(int line, const std::string& name, const std::string& why) {
  Find(LintRule::kForbidden, line, name, absl::StrCat("'", name, "' ", why));
}

Value Interpreter::Compute(const std::string& name, int line, StorageSet sources) {
  if (phase_ == Phase::kForward) {
    Find(LintRule::kTorchCompute, line, name,
         absl::StrCat("'", name,
                      "' computes on tensors in forward's path outside the Triton kernels"));
  }
  return NewTensor(std::move(sources));
}

void Interpreter::Unresolved(const std::string& name, int line) {
  if (phase_ != Phase::kForward) return;
  Find(LintRule::kUnresolved, line, name,
       absl::StrCat("tensors flow into '", name, "', which cannot be followed"));
}

bool Interpreter::Spend() {
  budget_.Spend(kWorkOfStep);
  if (!budget_.used_up()) return true;
  Find(LintRule::kUnresolved, 1, "program", "the program is too complicated to follow");
  return false;
}

bool Interpreter::TooDeep(int depth, int limit, int line) {
  if (depth <= limit) return false;
  Find(LintRule::kUnresolved, line, "nesting", "something is nested deeper than is followed");
  return true;
}

int Interpreter::NewStorage(StorageSet sources) {
  budget_.Spend(4 + sources.size() / 4);
  storages_.push_back({.sources = std::move(sources)});
  return static_cast<int>(storages_.size()) - 1;
}

Value Interpreter::NewTensor(StorageSet sources, Shape shape) {
  return arena_.Tensor({NewStorage(std::move(sources))}, std::move(shape));
}

Value Interpreter::InputTensor(Shape shape) {
  Value tensor = NewTensor({}, std::move(shape));
  storages_.back().input = true;
  return tensor;
}

Value Interpreter::ArgumentTensor() {
  Value tensor = InputTensor();
  storages_.back().argument = true;
  return tensor;
}

StorageSet Interpreter::SourcesOf(const Args& args) {
  StorageSet sources;
  for (Value value : args.All()) AddTo(&sources, Reachable(value));
  return sources;
}

bool Interpreter::AnyTensor(const Args& args) {
  for (Value value : args.All()) {
    if (HoldsTensor(value)) return true;
  }
  return false;
}

bool Interpreter::OnlySmall(const Args& args) {
  for (Value value : args.All()) {
    if (auto* tensor = AsTensor(value)) {
      if (!tensor->IsSmall()) return false;
    } else if (HoldsTensor(value)) {
      return false;
    }
  }
  return true;
}

bool Interpreter::InPieces(const StorageSet& sources) const {
  return loops_ > 0 && phase_ == Phase::kForward &&
         std::any_of(sources.begin(), sources.end(), [this](int s) {
           return storages_[s].argument || !storages_[s].sources.empty();
         });
}

bool Interpreter::Counts(const StorageSet& sources) const {
  return call_count_ >= 0 && std::binary_search(sources.begin(), sources.end(), call_count_);
}

bool Interpreter::CountsCalls(Value value) {
  const ListObject* list = AsList(value);
  return (list != nullptr && list->grows) || Counts(Reachable(value));
}

Value Interpreter::CountOfCalls() {
  if (call_count_ < 0) call_count_ = NewStorage();
  return arena_.Int({call_count_});
}

bool Interpreter::ChosenByElement(const std::vector<Value>& indices) const {
  return std::any_of(indices.begin(), indices.end(), [this](Value index) {
    const HostObject* host = AsHost(index);
    return host != nullptr && InPieces(host->sources);
  });
}

bool Interpreter::IsPicked(Value value, int depth) {
  constexpr int kMostDepth = 3;
  if (value == nullptr || depth > kMostDepth) return false;
  if (auto* tensor = AsTensor(value)) return tensor->picked;
  const std::vector<Value>* parts = AsList(value) != nullptr    ? &AsList(value)->items
                                    : AsUnion(value) != nullptr ? &AsUnion(value)->options
                                                                : nullptr;
  return parts != nullptr && std::any_of(parts->begin(), parts->end(),
                                         [depth](Value v) { return IsPicked(v, depth + 1); });
}

bool Interpreter::IsPostProcessing(const std::vector<Value>& values) {
  if (phase_ != Phase::kForward || hidden_calls_ > 0) return true;
  int64_t most = 1;
  for (Value value : values) {
    const auto* tensor = AsTensor(value);
    if (tensor == nullptr || !tensor->shape.has_value()) continue;
    int64_t elements = 1;
    for (int64_t size : *tensor->shape) elements *= size;
    most = std::max(most, elements);
  }
  small_elements_ += most;
  return small_elements_ <= kMostSmallElements;
}

void Interpreter::CheckNumbers(const std::string& name, const std::vector<Value>& values,
                               int line) {
  if (loops_ == 0 || phase_ != Phase::kForward) return;
  for (Value value : values) {
    const HostObject* host = AsHost(value);
    if (host == nullptr || host->is_int || !InPieces(host->sources)) continue;
    Find(LintRule::kPythonCompute, line, name,
         absl::StrCat("'", name,
                      "' computes in Python on elements of tensors that a loop reads one by one"));
    return;
  }
}

bool Interpreter::AsBoundFunction(Value value) {
  return value != nullptr &&
         (value->kind == ObjectKind::kBound || value->kind == ObjectKind::kPartial ||
          value->kind == ObjectKind::kKernel || value->kind == ObjectKind::kClass);
}

}  // namespace tritonrl::lint
