// The texts of KernelBench's problems, levels 1 and 2, in their versions, as hashes.
#ifndef TRITONRL_EVAL_SOURCES_KNOWN_TASKS_H_
#define TRITONRL_EVAL_SOURCES_KNOWN_TASKS_H_

#include <cstdint>
#include <string>

namespace tritonrl {

struct KnownTask {
  enum class Release {
    kUnknown,  // none of these texts
    kOther,    // another level or number, for which no text is known
    kV0,       // of the branch v0 (before July 2025)
    kV0_1,     // of v0.1 (2025-07-21)
    kMain,     // changed on main after v0.1
  };
  Release release = Release::kUnknown;
  // Of the change on main. kMain: this text came with it; kV0_1: it replaced this text, "" if none
  // did.
  std::string date;
};

// The hash of a task's text: the first eight bytes of SHA-256, without the white space at its end,
// which copies lose, and with Unix line ends.
uint64_t HashOfTask(const std::string& source);

// Which version of problem `problem` of a level (both from 1) has this hash.
KnownTask FindKnownTask(int level, int problem, uint64_t hash);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_SOURCES_KNOWN_TASKS_H_
