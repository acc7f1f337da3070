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
