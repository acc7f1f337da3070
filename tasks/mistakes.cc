#include "tasks/mistakes.h"

#include <cstdlib>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace tritonrl {
namespace {

using Lines = std::vector<std::string>;

// Replaces the first occurrence of `from` in a line; false if there is none.
bool ReplaceIn(std::string* line, const std::string& from, const std::string& to) {
  const size_t at = line->find(from);
  if (at == std::string::npos) return false;
  line->replace(at, from.size(), to);
  return true;
}

// Replaces `from` in the first line that contains it; false if there is none.
bool ReplaceFirst(Lines* lines, const std::string& from, const std::string& to) {
  for (std::string& line : *lines) {
    if (ReplaceIn(&line, from, to)) return true;
  }
  return false;
}

// Replaces `from` in the first kernel that contains it, beginning with a random kernel.
bool ReplaceInKernels(Program* program, Philox* random, const std::string& from,
                      const std::string& to) {
  const size_t count = program->kernels.size(), start = random->Below(count);
  for (size_t k = 0; k < count; ++k) {
    if (ReplaceFirst(&program->kernels[(start + k) % count], from, to)) return true;
  }
  return false;
}

Lines& RandomKernel(Program* program, Philox* random) {
  return program->kernels[random->Below(program->kernels.size())];
}

bool LoseMask(const MistakeContext&, Program* program, Philox* random) {
  bool lost = false;
  for (std::string& line : RandomKernel(program, random)) {
    const size_t at = line.find(", mask=mask");
    if (at == std::string::npos) continue;
    line = absl::StrCat(line.substr(0, at), ")");
    lost = true;
  }
  return lost;
}

bool RoundGridDown(const MistakeContext&, Program* program, Philox*) {
  for (std::string& line : program->forward) {
    const size_t at = line.find("triton.cdiv(n, ");
    if (at == std::string::npos) continue;
    const size_t end = line.find(')', at);
    ReplaceIn(&line, line.substr(at, end + 1 - at),
              absl::StrCat("n // ", line.substr(at + 15, end - at - 15)));
    return true;
  }
  return false;
}

// Changes the block size that one launch passes, but not the grid that depends on it.
bool ChangeBlock(Program* program, const std::function<int(int)>& change) {
  for (std::string& line : program->forward) {
    const size_t at = line.find("BLOCK=");
    if (at == std::string::npos) continue;
    const int block = std::atoi(line.c_str() + at + 6);
    line = absl::StrCat(line.substr(0, at), "BLOCK=", change(block), ")");
    return true;
  }
  return false;
}

bool OddBlock(const MistakeContext&, Program* program, Philox* random) {
  constexpr int kOdd[] = {48, 96, 100, 192, 200, 300, 384};
  const int odd = kOdd[random->Below(std::size(kOdd))];
  return ChangeBlock(program, [odd](int) { return odd; });
}

bool HalfBlock(const MistakeContext&, Program* program, Philox*) {
  return ChangeBlock(program, [](int block) { return block / 2; });
}

bool UndefinedName(const MistakeContext&, Program* program, Philox* random) {
  std::string& last = RandomKernel(program, random).back();
  return ReplaceIn(&last, ", x", ", out") || ReplaceIn(&last, "tl.sum(x", "tl.sum(out");
}

bool MissingParenthesis(const MistakeContext&, Program* program, Philox* random) {
  Lines& kernel = RandomKernel(program, random);
  const size_t start = 2 + random->Below(kernel.size() - 2);
  for (size_t i = start; i < kernel.size(); ++i) {
    if (absl::EndsWith(kernel[i], ")")) {
      kernel[i].pop_back();
      return true;
    }
  }
  return false;
}

bool DropOperator(const MistakeContext& context, Program* program, Philox* random) {
  std::vector<int> candidates;
  for (size_t i = 0; i < context.composition.uses.size(); ++i) {
    if (context.composition.uses[i].elementwise != nullptr) candidates.push_back(i);
  }
  if (candidates.empty()) return false;
  std::vector<int> forms = context.forms;
  forms[candidates[random->Below(candidates.size())]] = kDroppedForm;
  *program = WriteProgram(context.composition, context.plan, forms);
  return true;
}

bool HalfPrecisionOutput(const MistakeContext&, Program* program, Philox*) {
  for (std::string& line : program->forward) {
    if (!absl::StartsWith(line, "o = torch.empty")) continue;
    if (!ReplaceIn(&line, ", device", ", dtype=torch.float16, device")) {
      line = absl::StrCat(absl::StripSuffix(line, ")"), ", dtype=torch.float16)");
    }
    return true;
  }
  return false;
}

bool WrongFill(const MistakeContext&, Program* program, Philox* random) {
  return ReplaceInKernels(program, random, "float(\"-inf\")", "0") ||
         ReplaceInKernels(program, random, "float(\"inf\")", "0");
}

bool MeanOverBlock(const MistakeContext&, Program* program, Philox* random) {
  return ReplaceInKernels(program, random, "/ N", "/ BLOCK") ||
         ReplaceInKernels(program, random, "/ n)", "/ BLOCK)");
}

bool WrongStride(const MistakeContext&, Program* program, Philox* random) {
  return ReplaceInKernels(program, random, "row * N", "row * BLOCK") ||
         ReplaceInKernels(program, random, "i * N + j", "i * K + j");
}

bool WrongAxis(const MistakeContext&, Program* program, Philox* random) {
  return ReplaceInKernels(program, random, "axis=0", "axis=1");
}

bool NoAccumulation(const MistakeContext&, Program* program, Philox* random) {
  return ReplaceInKernels(program, random, "x += tl.dot", "x = tl.dot");
}

bool WrongProgramId(const MistakeContext&, Program* program, Philox* random) {
  return ReplaceFirst(&RandomKernel(program, random), "tl.program_id(0)", "tl.program_id(1)");
}

// Adapts a reference statement to a program that does not import F.
std::string TorchStatement(const std::string& statement) {
  return absl::StrReplaceAll(statement, {{"F.", "nn.functional."}});
}

// Keeps the kernels but computes everything in forward with torch.
bool DelegateAll(const MistakeContext& context, Program* program, Philox*) {
  const int count = static_cast<int>(context.composition.uses.size());
  program->forward.clear();
  for (const std::string& statement : ReferenceStatements(context.composition, 0, count)) {
    program->forward.push_back(TorchStatement(statement));
  }
  program->forward.push_back("return x");
  return true;
}

// Computes the last operator with torch after the kernels.
bool DelegateLast(const MistakeContext& context, Program* program, Philox*) {
  const int last = static_cast<int>(context.composition.uses.size()) - 1;
  if (context.composition.uses[last].elementwise == nullptr || context.plan.starts.back() == last) {
    return false;
  }
  std::vector<int> forms = context.forms;
  forms[last] = kDroppedForm;
  *program = WriteProgram(context.composition, context.plan, forms);
  program->forward.pop_back();
  program->forward.push_back("x = o");
  program->forward.push_back(
      TorchStatement(ReferenceStatements(context.composition, last, last + 1)[0]));
  program->forward.push_back("return x");
  return true;
}

// Computes everything with torch, then launches a kernel that only copies the result.
bool CopyKernel(const MistakeContext& context, Program* program, Philox* random) {
  DelegateAll(context, program, random);
  program->kernels = {{"@triton.jit", "def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):",
                       "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)", "    mask = i < n",
                       "    x = tl.load(x_ptr + i, mask=mask)",
                       "    tl.store(o_ptr + i, x, mask=mask)"}};
  program->forward.pop_back();
  for (const char* line : {"n = x.numel()", "o = torch.empty_like(x)",
                           "kernel[(triton.cdiv(n, 256),)](x, o, n, BLOCK=256)", "return o"}) {
    program->forward.push_back(line);
  }
  return true;
}

using Apply = bool (*)(const MistakeContext&, Program*, Philox*);

const std::vector<std::pair<std::string, Apply>>& Mistakes() {
  static const auto* const mistakes = new std::vector<std::pair<std::string, Apply>>{
      {"no_mask", LoseMask},
      {"grid_rounded_down", RoundGridDown},
      {"odd_block", OddBlock},
      {"half_block", HalfBlock},
      {"undefined_name", UndefinedName},
      {"missing_parenthesis", MissingParenthesis},
      {"dropped_operator", DropOperator},
      {"half_precision_output", HalfPrecisionOutput},
      {"wrong_fill", WrongFill},
      {"mean_over_block", MeanOverBlock},
      {"wrong_stride", WrongStride},
      {"wrong_axis", WrongAxis},
      {"no_accumulation", NoAccumulation},
      {"wrong_program_id", WrongProgramId},
      {"delegate_all", DelegateAll},
      {"delegate_last", DelegateLast},
      {"copy_kernel", CopyKernel},
  };
  return *mistakes;
}

}  // namespace

std::vector<int> DrawForms(const Composition& composition, double hard_rate, double easy_rate,
                           Philox* random, std::vector<std::string>* mistakes) {
  std::vector<int> forms;
  for (const OperatorUse& use : composition.uses) {
    const bool hard = use.elementwise != nullptr && use.elementwise->hard();
    size_t wrong_forms = use.elementwise != nullptr ? use.elementwise->wrong.size() : 1;
    if (use.core != nullptr && use.core->wrong.empty()) wrong_forms = 0;
    // Always draws both numbers, so that later draws do not depend on the rates.
    const bool wrong = random->Uniform() < (hard ? hard_rate : easy_rate);
    const uint64_t pick = random->Next();
    forms.push_back(wrong && wrong_forms > 0 ? 1 + static_cast<int>(pick % wrong_forms) : 0);
    if (forms.back() > 0) {
      mistakes->push_back(absl::StrCat("form:", use.name(), ":", forms.back()));
    }
  }
  return forms;
}

const std::vector<std::string>& StructuralMistakeNames() {
  static const std::vector<std::string>* const names = [] {
    auto* list = new std::vector<std::string>();
    for (const auto& mistake : Mistakes()) list->push_back(mistake.first);
    return list;
  }();
  return *names;
}

bool ApplyStructuralMistake(const std::string& name, const MistakeContext& context,
                            Program* program, Philox* random) {
  for (const auto& [known, apply] : Mistakes()) {
    if (known != name) continue;
    Program changed = *program;
    if (!apply(context, &changed, random)) return false;
    *program = std::move(changed);
    return true;
  }
  return false;
}

std::string ApplyRandomStructuralMistake(const MistakeContext& context, Program* program,
                                         Philox* random) {
  std::vector<std::string> names = StructuralMistakeNames();
  random->Shuffle(&names);
  for (const std::string& name : names) {
    if (ApplyStructuralMistake(name, context, program, random)) return name;
  }
  return "";  // unreachable: delegate_all always fits
}

}  // namespace tritonrl
