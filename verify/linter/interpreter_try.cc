// Statements that catch: try and with.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
namespace {

// Imports that work on every checking machine, as they are written.
bool IsSureImport(const Node* statement) {
  const absl::string_view text = absl::StripAsciiWhitespace(statement->text);
  for (absl::string_view sure :
       {"import torch", "import torch.nn as nn", "import torch.nn.functional as F", "import triton",
        "import triton.language as tl", "import math", "from torch import nn",
        "from triton import language as tl", "import triton.language",
        "from triton import jit, cdiv", "from triton import jit", "from triton import cdiv",
        "import torch.nn", "import torch.nn.functional", "import torch, triton",
        "import triton, triton.language as tl", "from triton.language.extra import libdevice",
        "from triton.language.extra.cuda import libdevice"}) {
    if (text == sure) return true;
  }
  return false;
}

// True when a block does nothing but import what every checking machine has and give constants to
// names.
bool CannotRaise(const Node* body) {
  if (body == nullptr) return false;
  for (const Node* statement : body->children) {
    if (statement->kind == Kind::kImport || statement->kind == Kind::kImportFrom) {
      if (!IsSureImport(statement)) return false;
    } else if (statement->kind == Kind::kExpressionStatement && statement->children.size() == 1) {
      const Node* left = statement->children[0]->Get(Field::kLeft);
      const Node* right = statement->children[0]->Get(Field::kRight);
      if (left == nullptr || left->kind != Kind::kIdentifier || right == nullptr ||
          (right->kind != Kind::kTrue && right->kind != Kind::kFalse))
        return false;
    } else if (statement->kind != Kind::kPass) {
      return false;
    }
  }
  return true;
}

// True when a function gives something back, as "__exit__" does that swallows an exception.
bool Returns(const Node* node) {
  if (node == nullptr || node->kind == Kind::kFunctionDef) return false;
  if (node->kind == Kind::kReturn)
    return !node->children.empty() && node->children[0]->kind != Kind::kNone &&
           node->children[0]->kind != Kind::kFalse;
  return std::any_of(node->children.begin(), node->children.end(), Returns);
}

}  // namespace

Interpreter::Flow Interpreter::RunTry(absl::FunctionRef<Flow()> block, Flow otherwise) {
  const size_t before = frame().tried.size();
  ++frame().tries;
  const Flow flow = Branch(block, [otherwise] { return otherwise; });
  --frame().tries;
  // Each of the values that a variable had meanwhile may be the last.
  const Variables tried(frame().tried.begin() + static_cast<std::ptrdiff_t>(before),
                        frame().tried.end());
  budget_.Spend(tried.size());
  if (frame().tries == 0) frame().tried.clear();
  JoinVariables(tried);
  return flow;
}

Interpreter::Flow Interpreter::ExecTry(const Node* node) {
  const Node* body = node->Get(Field::kBody);
  const bool safe = CannotRaise(body);
  const Node* last_words = nullptr;
  for (const Node* child : node->children) {
    if (child->kind == Kind::kFinally) last_words = FirstBlock(child);
  }
  // A block that leaves the function takes what it bound with it, but not before "finally" ran.
  auto run = [&](const Node* block) {
    const Flow way_out = ExecBlock(block);
    if (way_out != Flow::kNext && last_words != nullptr) ExecBlock(last_words);
    return way_out;
  };
  Flow flow = safe ? run(body) : RunTry([&] { return run(body); }, Flow::kRaise);
  for (const Node* child : node->children) {
    if (safe && (child->kind == Kind::kExcept || child->kind == Kind::kExceptGroup)) continue;
    if (child->kind == Kind::kExcept || child->kind == Kind::kExceptGroup) {
      auto handler = [&] {
        for (const Node* part : child->children) {
          if (part->kind == Kind::kBlock) return run(part);
          // Which exceptions it is for is evaluated like any other expression.
          if (part->kind != Kind::kAsPattern && part->kind != Kind::kIdentifier) Eval(part);
          if (part->kind == Kind::kAsPattern) {
            for (const Node* alias : part->children) {
              if (alias->kind == Kind::kAsPatternTarget && !alias->children.empty()) {
                Store(alias->children[0], arena_.Unknown(raised_));
              } else if (alias->kind != Kind::kIdentifier) {
                Eval(alias);
              }
            }
          }
        }
        return Flow::kNext;
      };
      const Flow before = flow;
      const Flow handled = Branch(handler, [&] { return before; });
      flow = handled;
    } else if (child->kind == Kind::kElse) {
      if (flow == Flow::kNext)
        flow = Branch([&] { return ExecBlock(FirstBlock(child)); }, [] { return Flow::kRaise; });
    } else if (child->kind == Kind::kFinally) {
      const Flow last = ExecBlock(last_words);
      if (last != Flow::kNext) flow = last;
    }
  }
  return flow;
}

bool Interpreter::MaySwallow(Value manager) {
  if (auto* symbol = AsSymbol(manager)) return symbol->name == "contextlib.suppress()";
  auto* instance = AsInstance(manager);
  if (instance == nullptr || instance->type == nullptr) return true;
  std::string unused;
  auto* exit = AsFunction(ClassAttribute(instance->type, "__exit__", &unused));
  return exit == nullptr || Returns(exit->node->Get(Field::kBody));
}

Interpreter::Flow Interpreter::ExecWith(const Node* node) {
  std::vector<Value> managers;
  bool swallows = false;
  for (const Node* clause : node->children) {
    if (clause->kind != Kind::kWithClause) continue;
    for (const Node* item : clause->children) {
      const Node* value = item->Get(Field::kValue);
      if (value == nullptr) continue;
      const Node* alias = nullptr;
      if (value->kind == Kind::kAsPattern) {
        for (const Node* part : value->children) {
          if (part->kind == Kind::kAsPatternTarget && !part->children.empty())
            alias = part->children[0];
        }
        value = value->children[0];
      }
      Value manager = Eval(value);
      Value entered = manager;
      swallows = swallows || MaySwallow(manager);
      if (AsInstance(manager) != nullptr) {
        entered = Call(GetAttribute(manager, "__enter__", item->line), {.line = item->line});
        managers.push_back(manager);
      } else if (AsList(manager) != nullptr) {
        entered = Element(manager, item->line);
      }
      if (alias != nullptr) Store(alias, entered);
    }
  }
  auto body = [&] { return ExecBlock(node->Get(Field::kBody)); };
  Flow flow = swallows ? RunTry(body, Flow::kNext) : body();
  if (flow == Flow::kRaise) flow = Flow::kNext;  // the manager may swallow it
  for (Value manager : managers) {
    Args args{.positional = {None(), None(), None()}, .line = node->line};
    Call(GetAttribute(manager, "__exit__", node->line), args);
  }
  return flow;
}

}  // namespace tritonrl::lint
