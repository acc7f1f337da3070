#include "tools/augment_inputs/input_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tritonrl {
namespace {

using testing::ElementsAre;

TEST(ReadInputFunctionsTest, TakesBlocksThatHoldTheFunctionAlone) {
  const auto functions = ReadInputFunctions(R"(<think>
```python
def get_inputs():
    return [0]
```
</think>
First:
```python
# rows
def get_inputs():
    n = 3
    return [torch.rand(n, 5)]
```
```py
def get_inputs():
    return [torch.rand(7)]

print("no")
```
```
def get_inputs(n):
    return [n]
```
```python
def get_inputs():
    return [torch.rand(7, 9)]
```
Again:
```python
def get_inputs():
    return [torch.rand(7, 9)]
```
```python
def get_inputs():
    return [torch.rand(
)");
  ASSERT_TRUE(functions.ok()) << functions.status();
  EXPECT_THAT(*functions, ElementsAre("def get_inputs():\n    n = 3\n    return [torch.rand(n, 5)]",
                                      "def get_inputs():\n    return [torch.rand(7, 9)]"));
}

TEST(ReadInputFunctionsTest, OtherAnswersAreRefused) {
  EXPECT_EQ(ReadInputFunctions("I would vary n.").status().message(),
            "the answer has no code block");
  for (const char* block : {"x = 1", "def get_inputs(:", "import os", ""}) {
    EXPECT_EQ(ReadInputFunctions(absl::StrCat("```\n", block, "\n```")).status().message(),
              "no code block of the answer holds get_inputs() alone")
        << block;
  }
}

TEST(ReplaceInputsTest, ChangesTheLastDefinitionAlone) {
  const std::string source = R"(N = 2


class Model:
    def get_inputs(self):
        return []


def get_inputs():
    return [N]


def get_init_inputs():
    return []
)";
  const auto replaced = ReplaceInputs(source, "def get_inputs():\n    return [7]");
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_EQ(*replaced, R"(N = 2


class Model:
    def get_inputs(self):
        return []


def get_inputs():
    return [7]


def get_init_inputs():
    return []
)");
  EXPECT_TRUE(absl::IsInvalidArgument(ReplaceInputs("x = 1", "def get_inputs(): pass").status()));
}

TEST(ReplaceInputsTest, ADecoratorStays) {
  const auto replaced =
      ReplaceInputs("@torch.no_grad()\ndef get_inputs():\n    return [1]\n\n\nx = 2\n",
                    "def get_inputs():\n    return [7]");
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_EQ(*replaced, "@torch.no_grad()\ndef get_inputs():\n    return [7]\n\n\nx = 2\n");
}

}  // namespace
}  // namespace tritonrl
