// Folders of the mini policy with a fault, for tests of programs that load a model. The test's data
// has //model/mini. Errors end the test program.
#ifndef TRITONRL_MODEL_TESTING_MINI_FOLDERS_H_
#define TRITONRL_MODEL_TESTING_MINI_FOLDERS_H_

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

inline void CheckWritten(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

// Copies files of the mini policy into the folder `dir`.
inline void CopyMini(const std::string& dir, const std::vector<std::string>& names) {
  const std::string mini = Runfile("model/mini").value();
  CheckWritten(CreateDirectories(dir));
  for (const std::string& name : names) {
    CheckWritten(WriteFileAtomic(JoinPath(dir, name), ReadFile(JoinPath(mini, name)).value()));
  }
}

// Writes a folder whose index lists a file of weights that is not there, and returns its path.
inline std::string WriteMiniWithMissingShard(const std::string& dir) {
  CopyMini(dir, {"config.json", "tokenizer.json"});
  const std::string shard = "model-00002-of-00002.safetensors";
  nlohmann::json index;
  index["weight_map"]["model.norm.weight"] = shard;
  CheckWritten(WriteFileAtomic(JoinPath(dir, "model.safetensors.index.json"), index.dump()));
  return JoinPath(dir, shard);
}

// Writes a complete folder with this text as its chat template.
inline void WriteMiniWithTemplate(const std::string& dir, const std::string& text) {
  CopyMini(dir, {"config.json", "tokenizer.json", "model.safetensors"});
  CheckWritten(WriteFileAtomic(JoinPath(dir, "chat_template.jinja"), text));
}

// A chat template that no question can pass.
inline constexpr char kRaisingTemplate[] = "{{ raise_exception('This model takes no questions') }}";

// The message about kRaisingTemplate in the folder `dir`.
inline std::string RaisingTemplateError(const std::string& dir) {
  return "chat template (" + dir +
         "/chat_template.jinja): This model takes no questions; a template must write a single "
         "question of a user, so give another one, or \"none\"";
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TESTING_MINI_FOLDERS_H_
