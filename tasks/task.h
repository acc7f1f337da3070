#ifndef TRITONRL_TASKS_TASK_H_
#define TRITONRL_TASKS_TASK_H_

#include <string>
#include <vector>

namespace tritonrl {

// One problem: a reference program in the KernelBench file format. The source defines
// `class Model` with a `forward` method, `get_inputs()` and `get_init_inputs()`.
struct Task {
  std::string
      id;  // Path below the loaded folder without ".py": "level1/07_softmax". Unique in a set.
  std::string path;    // The file it was read from; empty for a task that was generated.
  std::string source;  // The whole file.
  int level = 0;       // N of the innermost folder named "levelN"; 0 if there is none.
};

// What a folder held. `problems` has one sentence for each file that was left out; it names the
// file, the line where there is one, and what is wrong.
struct TaskSet {
  std::vector<Task> tasks;
  std::vector<std::string> problems;
};

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_TASK_H_
