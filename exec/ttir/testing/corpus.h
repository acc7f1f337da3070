// Texts of Triton IR for tests.
#ifndef TRITONRL_EXEC_TTIR_TESTING_CORPUS_H_
#define TRITONRL_EXEC_TTIR_TESTING_CORPUS_H_

#include <string>
#include <vector>

namespace tritonrl::ttir {

struct CorpusText {
  std::string name;  // "softmax.ttir"
  std::string text;
};

// The texts that make_corpus.py wrote, sorted by name. Fails the test if there are none.
std::vector<CorpusText> ReadCorpus();

// One of them.
std::string CorpusTextOf(const std::string& name);

// A module around the body of a kernel whose arguments are
// (%p: !tt.ptr<f32>, %q: !tt.ptr<i32>, %n: i32, %c: i1, %f: f32).
std::string ModuleAround(const std::string& body);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_TESTING_CORPUS_H_
