#include "tasks/program.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tritonrl {

namespace {

constexpr int kFlatBlocks[] = {64, 128, 256, 512, 1024};
constexpr int kLargestRowBlock = 1024;

int NextPowerOfTwo(int n) {
  int power = 1;
  while (power < n) power *= 2;
  return power;
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

// Writes the kernels of a plan in order, and their launches in forward.
class ProgramWriter {
 public:
  ProgramWriter(const Composition& composition, const KernelPlan& plan,
                const std::vector<int>& forms)
      : composition_(composition), plan_(plan), forms_(forms) {}

  Program Write() {
    program_.uses_y = composition_.uses_y();
    for (int k = 0; k < plan_.kernels(); ++k) {
      first_ = plan_.starts[k];
      last_ = k + 1 < plan_.kernels() ? plan_.starts[k + 1]
                                      : static_cast<int>(composition_.uses.size());
      name_ = plan_.kernels() == 1 ? "kernel" : absl::StrCat("k", k + 1);
      block_ = plan_.blocks[k];
      target_ = k + 1 == plan_.kernels() ? "o" : std::string(1, static_cast<char>('a' + k));
      WriteKernel();
      source_ = target_;
    }
    program_.forward.push_back("return o");
    return program_;
  }

 private:
  void WriteKernel() {
    const int core = composition_.core_index();
    if (core < first_ || core >= last_) {
      WriteFlatKernel(nullptr);
    } else if (composition_.family == Family::kLoss) {
      WriteFlatKernel(composition_.uses[core].core);
    } else if (composition_.family == Family::kMatmul) {
      WriteMatmulKernel(composition_.uses[core].core->name);
    } else {
      WriteRowKernel(core);
    }
  }

  // Returns the kernel's lines for use i, which read and write x and may read y.
  std::vector<std::string> UseLines(int i) const {
    const OperatorUse& use = composition_.uses[i];
    const int form = forms_[i];
    if (form == kDroppedForm) return {};
    if (use.core != nullptr) {
      return Lines(WithConstants(form == 0 ? use.core->kernel : use.core->wrong, use.constants));
    }
    const Elementwise& op = *use.elementwise;
    return {absl::StrCat("x = ",
                         WithConstants(form == 0 ? op.kernel : op.wrong[form - 1], use.constants))};
  }

  bool KernelUsesY() const {
    for (int i = first_; i < last_; ++i) {
      const OperatorUse& use = composition_.uses[i];
      if (use.core != nullptr ? use.core->kind == CoreKind::kLoss : use.elementwise->uses_y()) {
        return true;
      }
    }
    return false;
  }

  void Add(std::vector<std::string> lines) {
    for (std::string& line : lines) kernel_.push_back(absl::StrCat("    ", line));
  }

  // Begins a kernel; `sizes` are its integer parameters.
  void Begin(const std::string& sizes, bool uses_y) {
    kernel_ = {"@triton.jit", absl::StrCat("def ", name_, "(x_ptr, ", uses_y ? "y_ptr, " : "",
                                           "o_ptr, ", sizes, ", BLOCK: tl.constexpr):")};
  }

  // Ends the kernel and adds its launch to forward.
  void End(const std::string& grid, const std::string& sizes, bool uses_y) {
    program_.kernels.push_back(kernel_);
    program_.forward.push_back(absl::StrCat(name_, "[(", grid, ")](", source_, ", ",
                                            uses_y ? "y, " : "", target_, ", ", sizes,
                                            ", BLOCK=", block_, ")"));
  }

  // Each program instance computes BLOCK consecutive elements; for a loss it adds their sum to the
  // result.
  void WriteFlatKernel(const Core* loss) {
    const bool uses_y = KernelUsesY();
    Begin("n", uses_y);
    Add({"i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)", "mask = i < n",
         "x = tl.load(x_ptr + i, mask=mask)"});
    if (uses_y) Add({"y = tl.load(y_ptr + i, mask=mask)"});
    for (int i = first_; i < last_; ++i) Add(UseLines(i));
    if (loss == nullptr) {
      Add({"tl.store(o_ptr + i, x, mask=mask)"});
    } else {
      Add({"x = tl.where(mask, x, 0)",
           absl::StrCat("tl.atomic_add(o_ptr, tl.sum(x, axis=0)", loss->sum ? ")" : " / n)")});
    }
    if (counted_ != shape_) {
      program_.forward.push_back(absl::StrCat("n = ", source_, ".numel()"));
      counted_ = shape_;
    }
    program_.forward.push_back(loss == nullptr
                                   ? absl::StrCat(target_, " = torch.empty_like(", source_, ")")
                                   : absl::StrCat(target_, " = torch.zeros((), device=x.device)"));
    End(absl::StrCat("triton.cdiv(n, ", block_, "),"), "n", uses_y);
  }

  // Each program instance computes one row, which fits in one block.
  void WriteRowKernel(int core_index) {
    const Core& core = *composition_.uses[core_index].core;
    const bool uses_y = KernelUsesY();
    const bool reduces = core.kind == CoreKind::kReduction;
    const bool fill_at_load = core_index == first_;
    Begin("N", uses_y);
    Add({"row = tl.program_id(0)", "i = tl.arange(0, BLOCK)", "mask = i < N",
         absl::StrCat("x = tl.load(x_ptr + row * N + i, mask=mask",
                      fill_at_load ? absl::StrCat(", other=", core.fill) : "", ")")});
    if (uses_y) Add({"y = tl.load(y_ptr + row * N + i, mask=mask)"});
    for (int i = first_; i < last_; ++i) {
      // The operators before the core have changed the masked elements, so they are filled again.
      if (i == core_index && !fill_at_load) {
        Add({absl::StrCat("x = tl.where(mask, x, ", core.fill, ")")});
      }
      Add(UseLines(i));
    }
    Add({reduces ? "tl.store(o_ptr + row, x)" : "tl.store(o_ptr + row * N + i, x, mask=mask)"});
    program_.forward.push_back(absl::StrCat("M, N = ", source_, ".shape"));
    program_.forward.push_back(reduces
                                   ? absl::StrCat(target_, " = torch.empty(M, device=x.device)")
                                   : absl::StrCat(target_, " = torch.empty_like(", source_, ")"));
    if (reduces) shape_ = "rows";
    End("M,", "N", uses_y);
  }

  // Each program instance computes one BLOCK x BLOCK tile; all sides are multiples of BLOCK.
  void WriteMatmulKernel(const std::string& variant) {
    const bool xt = variant == "matmul_xt", yt = variant == "matmul_yt";
    const std::string sizes = xt ? "M, N, K" : "N, K";
    Begin(sizes, true);
    Add({"i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]",
         "j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]", "k = tl.arange(0, BLOCK)",
         "x = tl.zeros((BLOCK, BLOCK), tl.float32)", "for s in range(0, K, BLOCK):",
         xt ? "    a = tl.load(x_ptr + (s + k[None, :]) * M + i)"
            : "    a = tl.load(x_ptr + i * K + s + k[None, :])",
         yt ? "    b = tl.load(y_ptr + j * K + s + k[:, None])"
            : "    b = tl.load(y_ptr + (s + k[:, None]) * N + j)",
         "    x += tl.dot(a, b, input_precision=\"ieee\")"});
    for (int i = first_ + 1; i < last_; ++i) Add(UseLines(i));
    Add({"tl.store(o_ptr + i * N + j, x)"});
    program_.forward.push_back(xt ? "K, M = x.shape" : "M, K = x.shape");
    program_.forward.push_back(yt ? "N = y.shape[0]" : "N = y.shape[1]");
    program_.forward.push_back(absl::StrCat(target_, " = torch.empty(M, N, device=x.device)"));
    shape_ = "product";
    End(absl::StrCat("M // ", block_, ", N // ", block_), sizes, true);
  }

  const Composition& composition_;
  const KernelPlan& plan_;
  const std::vector<int>& forms_;
  Program program_;
  // State of the current kernel: its uses, block, name, input and output tensors, lines so far.
  int first_ = 0, last_ = 0, block_ = 0;
  std::string name_, source_ = "x", target_;
  std::vector<std::string> kernel_;
  // The shape of the current value, and the shape whose elements forward's variable n counts.
  std::string shape_ = "input", counted_;
};

// Draws the block size of a kernel for the uses [first, last).
int DrawBlock(const Composition& composition, const TaskShape& shape, int first, int last,
              int flat_block, Philox* random) {
  const int core = composition.core_index();
  const bool flat = core < first || core >= last || composition.family == Family::kLoss;
  if (flat) return flat_block;
  if (composition.family == Family::kMatmul) {
    const bool by_32 = shape.rows % 32 == 0 && shape.cols % 32 == 0 && shape.inner % 32 == 0;
    return by_32 && random->Below(2) == 0 ? 32 : 16;
  }
  const int block = NextPowerOfTwo(shape.cols);
  return random->Below(8) == 0 ? std::min(2 * block, kLargestRowBlock) : block;
}

}  // namespace

KernelPlan DrawKernelPlan(const Composition& composition, const TaskShape& shape, bool fused,
                          Philox* random) {
  const int count = static_cast<int>(composition.uses.size());
  KernelPlan plan;
  plan.starts = {0};
  if (!fused && count > 1) {
    const int kernels = count > 2 && random->Below(8) == 0 ? 3 : 2;
    std::vector<int> cuts;
    for (int i = 1; i < count; ++i) cuts.push_back(i);
    random->Shuffle(&cuts);
    cuts.resize(kernels - 1);
    std::sort(cuts.begin(), cuts.end());
    plan.starts.insert(plan.starts.end(), cuts.begin(), cuts.end());
  }
  const int flat_block = kFlatBlocks[random->Below(std::size(kFlatBlocks))];
  for (int k = 0; k < plan.kernels(); ++k) {
    const int last = k + 1 < plan.kernels() ? plan.starts[k + 1] : count;
    plan.blocks.push_back(DrawBlock(composition, shape, plan.starts[k], last, flat_block, random));
  }
  return plan;
}

std::string PlanText(const Composition& composition, const KernelPlan& plan) {
  const int count = static_cast<int>(composition.uses.size());
  std::vector<std::string> parts;
  for (int k = 0; k < plan.kernels(); ++k) {
    const int last = k + 1 < plan.kernels() ? plan.starts[k + 1] : count;
    std::vector<std::string> names;
    for (int i = plan.starts[k]; i < last; ++i) names.push_back(composition.uses[i].name());
    parts.push_back(absl::StrJoin(names, " "));
  }
  const bool one_block = std::all_of(plan.blocks.begin(), plan.blocks.end(),
                                     [&](int block) { return block == plan.blocks[0]; });
  const std::string blocks = one_block ? absl::StrCat(", block ", plan.blocks[0])
                                       : absl::StrCat(", blocks ", absl::StrJoin(plan.blocks, " "));
  if (count == 1) return absl::StrCat("one kernel for ", parts[0], blocks);
  if (plan.kernels() == 1) return absl::StrCat("fuse ", parts[0], " in one kernel", blocks);
  return absl::StrCat(plan.kernels() == 2 ? "two" : "three",
                      " kernels: ", absl::StrJoin(parts, " then "), blocks);
}

Program WriteProgram(const Composition& composition, const KernelPlan& plan,
                     const std::vector<int>& forms) {
  return ProgramWriter(composition, plan, forms).Write();
}

std::string Program::Text() const {
  std::string text =
      "import torch\nimport torch.nn as nn\nimport triton\nimport triton.language as tl\n\n";
  for (const std::vector<std::string>& kernel : kernels) {
    absl::StrAppend(&text, absl::StrJoin(kernel, "\n"), "\n\n");
  }
  absl::StrAppend(&text, "class ModelNew(nn.Module):\n    def forward(self, x", uses_y ? ", y" : "",
                  "):\n        ", absl::StrJoin(forward, "\n        "), "\n");
  return text;
}

namespace {

std::string ReferenceExpression(const OperatorUse& use) {
  return WithConstants(use.core != nullptr ? use.core->reference : use.elementwise->reference,
                       use.constants);
}

std::string RandomTensor(int rows, int cols) {
  return absl::StrCat("torch.randn(", rows, ", ", cols, ")");
}

std::vector<std::string> Inputs(const Composition& composition, const TaskShape& shape) {
  if (composition.family == Family::kMatmul) {
    const std::string& name = composition.uses[0].name();
    return {name == "matmul_xt" ? RandomTensor(shape.inner, shape.rows)
                                : RandomTensor(shape.rows, shape.inner),
            name == "matmul_yt" ? RandomTensor(shape.cols, shape.inner)
                                : RandomTensor(shape.inner, shape.cols)};
  }
  const std::string input = RandomTensor(shape.rows, shape.cols);
  if (composition.uses_y()) return {input, input};
  return {input};
}

}  // namespace

std::vector<std::string> ReferenceStatements(const Composition& composition, int first, int last) {
  std::vector<std::string> statements;
  for (int i = first; i < last; ++i) {
    statements.push_back(absl::StrCat("x = ", ReferenceExpression(composition.uses[i])));
  }
  return statements;
}

std::string WriteReference(const Composition& composition, const TaskShape& shape) {
  const int count = static_cast<int>(composition.uses.size());
  std::vector<std::string> body = ReferenceStatements(composition, 0, count - 1);
  body.push_back(absl::StrCat("return ", ReferenceExpression(composition.uses.back())));
  const std::string names = absl::StrJoin(
      composition.uses, ", ",
      [](std::string* out, const OperatorUse& use) { absl::StrAppend(out, use.name()); });
  return absl::StrCat(
      "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
      "class Model(nn.Module):\n    \"\"\"",
      names, ".\"\"\"\n\n    def forward(self, x", composition.uses_y() ? ", y" : "",
      "):\n        ", absl::StrJoin(body, "\n        "), "\n\n\ndef get_inputs():\n    return [",
      absl::StrJoin(Inputs(composition, shape), ", "),
      "]\n\n\ndef get_init_inputs():\n    return []\n");
}

}  // namespace tritonrl
