#ifndef TRITONRL_ROLLOUT_CHECK_H_
#define TRITONRL_ROLLOUT_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace tritonrl {

// Ends the program with `mistake` unless the condition holds: for mistakes in this program, which
// nothing that a user does can cause.
inline void Check(bool condition, const char* mistake) {
  if (condition) [[likely]] {
    return;
  }
  std::fprintf(stderr, "mistake in the generation engine: %s\n", mistake);
  std::abort();
}

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CHECK_H_
