// Compares the generations of an input with the tasks.
#ifndef TRITONRL_EVAL_SOURCES_GENERATION_CHECK_H_
#define TRITONRL_EVAL_SOURCES_GENERATION_CHECK_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "eval/sources/file_source.h"
#include "eval/sources/readers.h"
#include "tasks/loader.h"

namespace tritonrl {

// Gives each generation its task's id and takes the first k samples of each task, in the order of
// `tasks`, samples and turns (LoadGenerations has the rules). `path` is for messages.
absl::StatusOr<LoadedGenerations> CheckGenerations(const std::string& path, ReadInput input,
                                                   absl::Span<const Task> tasks, int k);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_SOURCES_GENERATION_CHECK_H_
