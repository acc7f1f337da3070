#include "tasks/loader.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/python_syntax.h"
#include "base/status.h"

namespace tritonrl {
namespace {

// KernelBench files have a few kilobytes; a far larger file is data, not a task.
constexpr int64_t kMaxSourceBytes = 1 << 20;
// A deeper tree is probably a link to a parent folder.
constexpr int kMaxDepth = 16;
constexpr size_t kProblemsInMessage = 3;
constexpr size_t kMaxName = 60;  // of source text in a message

// Compares runs of digits as numbers: "2_x" is before "10_x".
bool NaturalLess(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      size_t i_end = i, j_end = j;
      while (i_end < a.size() && digit(a[i_end])) ++i_end;
      while (j_end < b.size() && digit(b[j_end])) ++j_end;
      while (i + 1 < i_end && a[i] == '0') ++i;
      while (j + 1 < j_end && b[j] == '0') ++j;
      if (i_end - i != j_end - j) return i_end - i < j_end - j;
      const int order = a.compare(i, i_end - i, b, j, j_end - j);
      if (order != 0) return order < 0;
      i = i_end;
      j = j_end;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;
}

int LevelOf(const std::string& path) {
  int level = 0;
  for (absl::string_view part : absl::StrSplit(DirName(path), '/')) {
    int number;
    if (absl::ConsumePrefix(&part, "level") && absl::SimpleAtoi(part, &number) && number > 0) {
      level = number;
    }
  }
  return level;
}

// Collects the task files in folder `relative` of `root`, as paths relative to `root`.
absl::Status Collect(const std::string& root, const std::string& relative, int depth,
                     std::vector<std::string>* files, std::vector<std::string>* problems) {
  const std::string folder = relative.empty() ? root : JoinPath(root, relative);
  if (depth > kMaxDepth) {
    problems->push_back(
        absl::StrCat(folder, ": folder is nested more than ", kMaxDepth, " levels deep, left out"));
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(folder);
  if (!names.ok()) {
    if (depth == 0) return names.status();
    problems->push_back(Message(names.status()));
    return absl::OkStatus();
  }
  std::sort(names->begin(), names->end(), NaturalLess);
  for (const std::string& name : *names) {
    if (name[0] == '.' || name[0] == '_') continue;
    const std::string below = relative.empty() ? name : JoinPath(relative, name);
    if (DirectoryExists(JoinPath(root, below))) {
      RETURN_IF_ERROR(Collect(root, below, depth + 1, files, problems));
    } else if (absl::EndsWith(name, ".py")) {
      files->push_back(below);
    }
  }
  return absl::OkStatus();
}

// Returns the definition with this type ("class_definition", ...) and name among the statements of
// `block`, with or without decorators; a null node if there is none.
PythonNode FindDefinition(const PythonNode& block, absl::string_view type, absl::string_view name) {
  for (PythonNode statement : block.named_children()) {
    if (statement.type() == "decorated_definition") statement = statement.field("definition");
    if (statement.type() == type && statement.field("name").text() == name) return statement;
  }
  return PythonNode();
}

// Returns the value of the last assignment to `name` among the statements of `block`, or a null
// node.
PythonNode FindAssigned(const PythonNode& block, absl::string_view name) {
  PythonNode value;
  for (const PythonNode& statement : block.named_children()) {
    if (statement.type() != "expression_statement" || statement.child_count() == 0) continue;
    const PythonNode assignment = statement.child(0);
    if (assignment.type() != "assignment" || assignment.field("left").text() != name) continue;
    if (!assignment.field("right").null()) value = assignment.field("right");
  }
  return value;
}

absl::Status Problem(const std::string& name, int line, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ":", line, ": ", what));
}

// True if objects of the class have a method forward: its own, or that of a base class in the file
// or of a library other than nn.Module itself.
bool HasForward(const PythonNode& root, const PythonNode& definition, int depth) {
  const PythonNode body = definition.field("body");
  if (!FindDefinition(body, "function_definition", "forward").null()) return true;
  if (!FindAssigned(body, "forward").null()) return true;
  if (depth == 0) return false;
  for (const PythonNode& base : definition.field("superclasses").named_children()) {
    if (base.type() == "keyword_argument" || base.type() == "comment") continue;
    const PythonNode own = FindDefinition(root, "class_definition", base.text());
    if (!own.null()) {
      if (HasForward(root, own, depth - 1)) return true;
      continue;
    }
    const std::vector<std::string> parts = absl::StrSplit(base.text(), '.');
    if (parts.back() != "Module" && parts.back() != "object" && parts.back() != "ABC") return true;
  }
  return false;
}

// The classes with a method forward of their own, without autograd functions.
std::vector<PythonNode> ClassesWithForward(const PythonNode& root) {
  std::vector<PythonNode> classes;
  for (PythonNode statement : root.named_children()) {
    if (statement.type() == "decorated_definition") statement = statement.field("definition");
    if (statement.type() != "class_definition") continue;
    if (absl::StrContains(statement.field("superclasses").text(), "Function")) continue;
    if (HasForward(root, statement, 0)) classes.push_back(statement);
  }
  return classes;
}

// Finds the class that is the task's model.
absl::StatusOr<PythonNode> FindModel(const std::string& name, const PythonNode& root) {
  if (const PythonNode value = FindAssigned(root, "Model"); !value.null()) {
    const PythonNode named = FindDefinition(root, "class_definition", value.text());
    if (!named.null()) return named;
    return Problem(
        name, value.line(),
        absl::StrCat("Model = ", value.text().substr(0, kMaxName), " names no class of this file"));
  }
  const PythonNode model = FindDefinition(root, "class_definition", "Model");
  if (!model.null()) return model;
  const std::vector<PythonNode> classes = ClassesWithForward(root);
  if (classes.size() == 1) return classes[0];
  std::string text = "class Model is missing";
  if (classes.size() > 1) {
    const std::string first(classes[0].field("name").text());
    absl::StrAppend(&text, "; ", classes.size(), " classes have a method forward, so end the ",
                    "file with a line that names the task's, such as Model = ", first);
  }
  return Problem(name, std::max(1, root.end_line()), text);
}

absl::StatusOr<Task> LoadAs(const std::string& path, std::string id) {
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  if (size > kMaxSourceBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", size, " bytes; a task file has at most ", kMaxSourceBytes));
  }
  Task task;
  ASSIGN_OR_RETURN(task.source, ReadFile(path));
  RETURN_IF_ERROR(CheckTaskSource(path, task.source));
  task.id = std::move(id);
  task.path = path;
  task.level = LevelOf(path);
  return task;
}

}  // namespace

absl::Status CheckTaskSource(const std::string& name, const std::string& source) {
  const size_t nul = source.find('\0');
  if (nul != std::string::npos) {
    return Problem(name, 1 + std::count(source.begin(), source.begin() + nul, '\n'),
                   "contains a NUL byte, so it is no Python source");
  }
  const PythonTree tree(source);
  if (std::optional<PythonSyntaxError> fence = tree.FenceError(); fence.has_value()) {
    return Problem(name, fence->line, fence->message);
  }
  if (std::optional<PythonSyntaxError> error = tree.FirstError(); error.has_value()) {
    return Problem(name, error->line,
                   absl::StrCat("syntax error at column ", error->column, ": ", error->message));
  }
  const int last_line = std::max(1, tree.root().end_line());
  ASSIGN_OR_RETURN(const PythonNode model, FindModel(name, tree.root()));
  if (!HasForward(tree.root(), model, kMaxDepth)) {
    return Problem(name, model.line(),
                   absl::StrCat("class ", model.field("name").text(), " has no method forward"));
  }
  for (const char* function : {"get_inputs", "get_init_inputs"}) {
    if (FindDefinition(tree.root(), "function_definition", function).null()) {
      return Problem(name, last_line, absl::StrCat("function ", function, "() is missing"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Task> LoadTaskFile(const std::string& path) {
  return LoadAs(path, std::string(absl::StripSuffix(BaseName(path), ".py")));
}

absl::StatusOr<TaskSet> LoadTasks(const std::string& folder) {
  if (!FileExists(folder)) {
    return absl::NotFoundError(absl::StrCat("task folder ", folder, " does not exist"));
  }
  TaskSet set;
  if (!DirectoryExists(folder)) {
    ASSIGN_OR_RETURN(Task task, LoadTaskFile(folder));
    set.tasks.push_back(std::move(task));
    return set;
  }
  std::vector<std::string> files;
  RETURN_IF_ERROR(Collect(folder, "", 0, &files, &set.problems));
  for (const std::string& file : files) {
    absl::StatusOr<Task> task =
        LoadAs(JoinPath(folder, file), std::string(absl::StripSuffix(file, ".py")));
    if (task.ok()) {
      set.tasks.push_back(*std::move(task));
    } else {
      set.problems.push_back(Message(task.status()));
    }
  }
  if (set.tasks.empty()) {
    std::string message =
        absl::StrCat("task folder ", folder, " holds no valid task: ",
                     files.empty() ? "there is no *.py file in it" : "each file has a problem");
    for (size_t i = 0; i < std::min(set.problems.size(), kProblemsInMessage); ++i) {
      absl::StrAppend(&message, "; ", set.problems[i]);
    }
    return absl::InvalidArgumentError(message);
  }
  return set;
}

}  // namespace tritonrl
