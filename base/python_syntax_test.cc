#include "base/python_syntax.h"

#include <gtest/gtest.h>

namespace tritonrl {
namespace {

TEST(PythonSyntaxTest, WalksATree) {
  PythonTree tree(
      "import torch\n\n@triton.jit\ndef kernel(x, n: tl.constexpr):\n    y = f(x) + g(n)\n");
  EXPECT_FALSE(tree.FirstError().has_value());
  PythonNode root = tree.root();
  EXPECT_EQ(root.type(), "module");
  std::vector<PythonNode> functions = root.Find("function_definition");
  ASSERT_EQ(functions.size(), 1);
  EXPECT_EQ(functions[0].field("name").text(), "kernel");
  EXPECT_EQ(functions[0].line(), 4);
  EXPECT_EQ(functions[0].end_line(), 5);
  EXPECT_EQ(functions[0].parent().type(), "decorated_definition");
  EXPECT_EQ(functions[0].parent().parent(), root);
  std::vector<PythonNode> calls = functions[0].Find("call");
  ASSERT_EQ(calls.size(), 2);
  EXPECT_EQ(calls[1].text(), "g(n)");
  EXPECT_EQ(calls[1].column(), 16);
  EXPECT_EQ(calls[1].field("function").text(), "g");
  EXPECT_EQ(calls[1].named_children().size(), 2);
}

TEST(PythonSyntaxTest, NullNodesAnswer) {
  PythonNode none = PythonTree("x = 1\n").root().field("no_such_field").child(3).parent();
  EXPECT_TRUE(none.null());
  EXPECT_EQ(none.type(), "");
  EXPECT_EQ(none.text(), "");
  EXPECT_EQ(none.line(), 0);
  EXPECT_TRUE(none.Find("call").empty());
}

TEST(PythonSyntaxTest, FindsTheFirstError) {
  PythonTree tree("x = 1\ny = (2 +\nz = 3\n");
  ASSERT_TRUE(tree.FirstError().has_value());
  EXPECT_EQ(tree.FirstError()->line, 2);
  EXPECT_FALSE(tree.FirstError()->message.empty());
  EXPECT_FALSE(PythonTree("").FirstError().has_value());
  EXPECT_TRUE(PythonTree("def f(:\n").FirstError().has_value());
  EXPECT_TRUE(PythonTree(std::string("\xff\xfe\0x", 4)).FirstError().has_value());
}

TEST(PythonSyntaxTest, FindsTheFenceOfACopiedAnswer) {
  const auto line = [](const std::string& text) {
    const auto error = PythonTree(text).FenceError();
    return error.has_value() ? error->line : 0;
  };
  EXPECT_EQ(line("```python\nimport torch\n```\n"), 1);
  EXPECT_EQ(line("Here is the kernel, it's fast:\n\n  ```\nx = 1\n```"), 3);
  EXPECT_EQ(line("import torch\nx = 1\n```\n"), 3);
  // A fence inside a string, in a program without errors and in one with an error elsewhere.
  EXPECT_EQ(line("'''\n```python\nx\n```\n'''\nx = 1\n"), 0);
  EXPECT_EQ(line("'''\n```python\nx\n```\n'''\ny = (2 +\n"), 0);
  EXPECT_EQ(line("def f(:\n"), 0);
  EXPECT_EQ(line(""), 0);
}

}  // namespace
}  // namespace tritonrl
