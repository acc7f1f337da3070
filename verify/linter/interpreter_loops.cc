// Loops: they run until what flows around them comes to rest.
#include <algorithm>

#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
namespace {

// Loops of unknown length are run this often, so that what flows around them comes to rest.
constexpr int kLoopPasses = 3;
// And at most this often, while what its variables may call changes.
constexpr int kMostLoopPasses = 12;
// Sequences up to this length are walked element by element.
constexpr int kUnroll = 8;

}  // namespace

Interpreter::Flow Interpreter::LoopElse(const Node* node, Flow flow) {
  if (flow == Flow::kBreak) return Flow::kNext;
  const Node* alternative = node->Get(Field::kAlternative);
  if (alternative != nullptr) return ExecBlock(FirstBlock(alternative));
  return Flow::kNext;
}

void Interpreter::RunPasses(absl::FunctionRef<void()> pass, int line) {
  auto state = [this] {
    uint64_t hash = changes_;
    budget_.Spend(frame().scope->variables.size());
    for (const auto& [name, value] : frame().scope->variables)
      hash += arena_.StateHash(value) * (2 * static_cast<uint64_t>(name) + 1);
    return hash;
  };
  ++loops_;
  const int outer_pass = passes_.current, outer_loop = passes_.first, first = passes_.all + 1;
  uint64_t made_before = 0;
  for (int i = 0; i < kMostLoopPasses; ++i) {
    const uint64_t before = i + 1 < kLoopPasses ? 0 : state();
    const uint64_t made = passes_.made;
    passes_.current = ++passes_.all;
    passes_.first = first;
    pass();
    passes_.current = outer_pass;
    passes_.first = outer_loop;
    const bool same = passes_.made - made == made_before;
    made_before = passes_.made - made;
    if (i + 1 >= kLoopPasses && same && state() == before) break;
    if (i + 1 == kMostLoopPasses) {
      Find(LintRule::kUnresolved, line, "loop",
           "a loop goes on changing what it does, which cannot be followed to its end");
    }
  }
  --loops_;
}

// What paths that left an outer loop have to do with an inner one: nothing.
class Interpreter::LoopState {
 public:
  explicit LoopState(Interpreter* interpreter)
      : interpreter_(interpreter),
        early_exit_(interpreter->early_exit_),
        left_(std::move(interpreter->frame().left)) {
    interpreter->frame().left.clear();
  }
  ~LoopState() {
    interpreter_->EndOfPass();
    interpreter_->early_exit_ = std::max(early_exit_, interpreter_->frame().early_return);
    interpreter_->frame().left = std::move(left_);
  }

 private:
  Interpreter* interpreter_;
  size_t early_exit_;
  std::vector<Variables> left_;
};

Interpreter::Flow Interpreter::ExecFor(const Node* node) {
  const Node* target = node->Get(Field::kLeft);
  const Node* body = node->Get(Field::kBody);
  std::vector<Value> items;
  bool exact = true;
  AddItems(Eval(node->Get(Field::kRight)), &items, &exact);
  const LoopState loop(this);
  if (exact && items.size() <= kUnroll) {
    for (Value item : items) {
      Store(target, item);
      Flow flow = ExecBlock(body);
      EndOfPass();
      if (flow == Flow::kReturn || flow == Flow::kRaise) return flow;
      if (flow == Flow::kBreak) return Flow::kNext;
    }
    return LoopElse(node, Flow::kNext);
  }
  Value element = arena_.JoinAll(items);
  const bool counts = element != nullptr && Counts(Reachable(element));
  if (element == nullptr) element = arena_.Unknown();
  auto passes = [&] {
    RunPasses(
        [&] {
          Store(target, element);
          Branch([&] { return ExecBlock(body); }, [] { return Flow::kNext; });
          EndOfPass();
        },
        node->line);
    return Flow::kNext;
  };
  counted_ += counts;
  Branch(passes, [] { return Flow::kNext; });
  counted_ -= counts;
  return LoopElse(node, Flow::kNext);
}

Interpreter::Flow Interpreter::ExecWhile(const Node* node) {
  const Node* condition = node->Get(Field::kCondition);
  const Node* body = node->Get(Field::kBody);
  Value asked = Eval(condition);
  const std::optional<bool> truth = Decide(asked);
  const bool counts = CountsCalls(asked);
  if (truth.has_value() && !*truth) return LoopElse(node, Flow::kNext);
  const LoopState loop(this);
  auto passes = [&] {
    RunPasses(
        [&] {
          Branch([&] { return ExecBlock(body); }, [] { return Flow::kNext; });
          EndOfPass();
          Eval(condition);
        },
        node->line);
    return Flow::kNext;
  };
  counted_ += counts;
  Branch(passes, [] { return Flow::kNext; });
  counted_ -= counts;
  return LoopElse(node, Flow::kNext);
}

}  // namespace tritonrl::lint
