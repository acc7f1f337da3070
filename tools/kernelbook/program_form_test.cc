#include "tools/kernelbook/program_form.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "tools/kernelbook/near_duplicates.h"

namespace tritonrl {
namespace {

constexpr char kScale[] = R"py(import torch
import torch.nn as nn
import torch.nn.functional as F


class Scale(nn.Module):

    def __init__(self, width, bias=None):
        super().__init__()
        self.width = width
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        y = F.relu(self.inner(x)) * self.width
        return y + x


def get_inputs():
    return [torch.rand([4, 4, 4, 4])]


def get_init_inputs():
    return [[], {"width": 4}]
)py";

ProgramForm Form(const std::string& source, const std::string& name = "Scale") {
  return FormOf(source, name);
}

// kScale with each `from` replaced by `to`.
std::string Changed(const std::string& from, const std::string& to) {
  const std::string changed = absl::StrReplaceAll(kScale, {{from, to}});
  EXPECT_NE(changed, kScale) << from;
  return changed;
}

TEST(ProgramFormTest, NamesCommentsWhiteSpaceAndImportsDoNotCount) {
  const ProgramForm form = Form(kScale);
  const std::string renamed = absl::StrReplaceAll(
      kScale, {{"Scale", "Stretch"},
               {"width", "size"},
               {"inner", "layer"},
               {"y ", "out "},
               {"return y", "return out"},
               {"import torch\n", "import torch  # the library\n"},
               {"        super().__init__()",
                "        \"\"\"Makes it.\"\"\"\n\n        super(Stretch, self).__init__()"}});
  const ProgramForm other = Form(renamed, "Stretch");
  EXPECT_EQ(form.program, other.program) << renamed;
  EXPECT_EQ(form.model, other.model);
  EXPECT_EQ(form.shingles, other.shingles);
  const std::string imports = absl::StrReplaceAll(
      kScale, {{"import torch.nn as nn\n", "from torch import nn\n"},
               {"import torch.nn.functional as F\n", "import torch.nn.functional as functional\n"},
               {"F.relu", "functional.relu"}});
  EXPECT_EQ(Form(imports).program, form.program);
}

TEST(ProgramFormTest, OtherProgramsHaveOtherForms) {
  const ProgramForm form = Form(kScale);
  for (const auto& [from, to] : {std::pair{"relu", "gelu"},
                                 {" * ", " / "},
                                 {"y + x", "x + y"},
                                 {"[4, 4, 4, 4]", "[2, 4]"},
                                 {"\"width\": 4", "\"width\": 8"},
                                 {"bias=None", "bias=1"}}) {
    EXPECT_NE(Form(Changed(from, to)).program, form.program) << from;
  }
  EXPECT_NE(FormOf(kScale, "Scale").program, FormOf(kScale, "Other").program);
}

TEST(ProgramFormTest, TheModelDoesNotHoldItsInputsOrUnusedClasses) {
  const ProgramForm form = Form(kScale);
  EXPECT_EQ(Form(Changed("[4, 4, 4, 4]", "[2, 4]")).model, form.model);
  const std::string more = absl::StrCat(kScale,
                                        "\n\nclass Unused(nn.Module):\n    def forward(self, x):\n"
                                        "        return torch.exp(x)\n");
  EXPECT_EQ(Form(more).model, form.model);
  EXPECT_NE(Form(more).program, form.program);
  EXPECT_NE(Form(Changed("relu", "gelu")).library, form.library);
  EXPECT_EQ(Form(Changed("y + x", "x + y")).library, form.library);
}

// A model in KernelBench's form, and as people write it: all that differs changes nothing.
TEST(ProgramFormTest, WhatDoesNotChangeAProgramDoesNotCount) {
  const std::string annotated = R"py(import torch
import torch.nn as nn
from typing import List, Optional

class Model(nn.Module):
    """A model."""
    scale: float = 2.0
    size: int

    def __init__(self, width: int, bias: Optional[bool] = None, *more: int, **rest: str):
        super(Model, self).__init__()
        self.width: int = width
        self.name = "linear"
        self.table = {'a': (1, 2), 'b': 1e-5}
        self.inner = nn.Linear(width, width, bias=bias)

    def forward(self, x: torch.Tensor, y: "Optional[torch.Tensor]" = None) -> List[torch.Tensor]:
        """Computes it."""
        z: torch.Tensor
        z = torch.relu(self.inner(x)) * self.scale + self.width
        first, second = z[0, :], z[1, :]
        return first, second
)py";
  const std::string plain = R"py(from __future__ import annotations
from torch import nn
import torch.nn.functional as F
import torch as th

class Net(nn.Module):
    scale = 2.00
    def __init__(self, w, bias=None, *more, **rest):
        # The base class.
        super().__init__()
        self.w = (w)
        self.title = 'linear'; self.table = {
            "a": (1, 2,),
            "b": 0.00001,
        }
        self.inner = nn.Linear(
            w, w,
            bias=bias,
        )

    def forward(self, x, y=None):
        z = ((F.relu(self.inner(x)) * self.scale)
             + self.w)
        (first, second) = (z[(0, ...)], \
                           z[1, :])
        pass
        return (first, second)
)py";
  const ProgramForm form =
      FormOf(absl::StrReplaceAll(annotated, {{"z[0, :]", "z[0, ...]"}}), "Model");
  const ProgramForm other = FormOf(plain, "Net");
  EXPECT_EQ(form.model, other.model);
  EXPECT_EQ(form.program, other.program);
  EXPECT_EQ(form.library, other.library);
  EXPECT_EQ(form.shingles, other.shingles);
}

// Of a method that returns the expression.
uint64_t FormOfExpression(const std::string& expression) {
  return FormOf("class A:\n    def forward(self, x, y):\n        return " + expression, "A").model;
}

TEST(ProgramFormTest, ParenthesesCommasQuotesAndNumbers) {
  for (const auto& [a, b] : {std::pair{"x + (y * 2)", "x + y * 2"},
                             {"x[(0, 1)]", "x[0, 1]"},
                             {"(x, y)", "x, y"},
                             {"[x, y,]", "[x, y]"},
                             {R"(f('it\'s'))", R"(f("it's"))"},
                             {R"(f('a' "b"))", R"(f("""ab"""))"},
                             {"f(r'n')", "f(u'n')"},
                             {"f(f'{x} a')", R"(f(f"{ x } a"))"},
                             {"x + 1_000", "x + 0x3E8"},
                             {"x + 1e-3", "x + .001"},
                             {"(lambda z: z)(x)", "(lambda w: w)((x))"}}) {
    EXPECT_EQ(FormOfExpression(a), FormOfExpression(b)) << a << " and " << b;
  }
  for (const auto& [a, b] : {std::pair{"(x + y) * 2", "x + y * 2"},
                             {"x - (y - 2)", "x - y - 2"},
                             {"x[0, 1]", "x[0][1]"},
                             {"x[0,]", "x[0]"},
                             {"(x,)", "(x)"},
                             {"f(b'a')", "f('a')"},
                             {R"(f(r'\n'))", R"(f('\n'))"},
                             {"f('{x}')", "f(f'{x}')"},
                             {"x + 1", "x + 1.0"},
                             {"(-x).abs()", "-x.abs()"}}) {
    EXPECT_NE(FormOfExpression(a), FormOfExpression(b)) << a << " and " << b;
  }
}

TEST(ProgramFormTest, AConstructorThatOnlyCallsTheBaseClassDoesNotCount) {
  const std::string head = "import torch\nimport torch.nn as nn\n\n\n";
  const std::string forward = "    def forward(self, x):\n        return torch.relu(x)\n";
  const ProgramForm bare = FormOf(head + "class ReLU(nn.Module):\n" + forward, "ReLU");
  const std::string annotated =
      absl::StrReplaceAll(forward, {{"(self, x):", "(self, x: torch.Tensor) -> torch.Tensor:"}});
  for (const char* init :
       {"    def __init__(self):\n        super(Model, self).__init__()\n",
        "    def __init__(self) -> None:\n        '''Makes it.'''\n        super().__init__()\n",
        "    def __init__(self):\n        nn.Module.__init__(self)\n        pass\n",
        "    def __init__(self, *args, **kwargs):\n"
        "        super(Model, self).__init__(*args, **kwargs)\n"}) {
    const ProgramForm form =
        FormOf(absl::StrCat(head, "class Model(nn.Module):\n", init, "\n", annotated), "Model");
    EXPECT_EQ(form.model, bare.model) << init;
    EXPECT_EQ(form.library, bare.library) << init;
  }
}

TEST(ProgramFormTest, AConstructorThatWantsAnArgumentCounts) {
  const auto form = [](const std::string& init) {
    return FormOf(absl::StrCat("import torch.nn as nn\n\n\nclass A(nn.Module):\n", init,
                               "    def forward(self, x):\n        return x\n"),
                  "A")
        .model;
  };
  EXPECT_NE(form("    def __init__(self, width):\n        super().__init__()\n"), form(""));
}

// What a class of the program hands to its base class matters.
TEST(ProgramFormTest, ArgumentsOfTheBaseClassesConstructorCount) {
  const auto derived = [](const std::string& call) {
    return FormOf(absl::StrCat("import torch.nn as nn\n\n\nclass Base(nn.Module):\n",
                               "    def __init__(self, n=1):\n        super().__init__()\n",
                               "        self.n = n\n\n\nclass Model(Base):\n",
                               "    def __init__(self, n):\n        super().", call, "\n"),
                  "Model")
        .model;
  };
  EXPECT_NE(derived("__init__(2)"), derived("__init__(3)"));
  EXPECT_NE(derived("__init__(n)"), derived("__init__()"));
}

TEST(ProgramFormTest, AClassThatOnlyAnnotationsNameIsNotOfTheModel) {
  const std::string annotated =
      absl::StrCat("class Config:\n    width = 4\n\n\n",
                   absl::StrReplaceAll(kScale, {{"(self, x)", "(self, x: Config)"}}));
  EXPECT_EQ(Form(annotated).model, Form(kScale).model);
}

TEST(ProgramFormTest, ShinglesTellANameThatRepeatsFromAnother) {
  EXPECT_NE(Form(Changed("y + x", "y + y")).shingles, Form(kScale).shingles);
}

TEST(ProgramFormTest, BrokenAndEmptySourcesHaveFormsToo) {
  EXPECT_EQ(FormOf("", "A").shingles.size(), 1);
  EXPECT_NE(FormOf("class A(:", "A").program, FormOf("", "A").program);
  std::string deep = "class A:\n    def forward(self, x):\n        return x";
  for (int i = 0; i < 100000; ++i) deep += " + x";
  EXPECT_GT(FormOf(deep, "A").shingles.size(), 1);
}

TEST(ProgramFormTest, SimilarityOfSmallChanges) {
  const ProgramForm form = Form(kScale);
  const auto similarity = [&](const std::string& from, const std::string& to) {
    return Jaccard(form.shingles, Form(Changed(from, to)).shingles);
  };
  EXPECT_EQ(similarity("[4, 4, 4, 4]", "[2, 4]"), 1);
  EXPECT_GT(similarity("bias=None", "bias=1"), NearDuplicates::kThreshold);
  EXPECT_LT(
      similarity("        return y + x", "        z = y.sum(dim=1)\n        return z.view(-1) + x"),
      NearDuplicates::kThreshold);
}

}  // namespace
}  // namespace tritonrl
