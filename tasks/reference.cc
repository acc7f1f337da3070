#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tasks/program.h"

namespace tritonrl {
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
