// Lints the candidate programs named on the command line: one line for each finding. Exit code 1 if
// any has one.
#include <cstdio>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "verify/linter/linter.h"

int main(int argc, char** argv) {
  const std::vector<char*> arguments = tritonrl::StartProgram(
      "Lints candidate programs.\n  bazel run //verify/linter:lint -- $PWD/candidate.py ...", argc,
      argv);
  int status = 0;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const char* const file = arguments[i];
    auto source = tritonrl::ReadFile(tritonrl::UserPath(file));
    if (!source.ok()) {
      std::fprintf(stderr, "%s\n", tritonrl::Message(source.status()).c_str());
      return 2;
    }
    const tritonrl::LintResult result = tritonrl::Lint(*source);
    for (const tritonrl::LintFinding& finding : result.findings) {
      std::printf("%s:%d: %s: %s\n", file, finding.line,
                  std::string(tritonrl::LintRuleName(finding.rule)).c_str(), finding.text.c_str());
    }
    if (!result.ok()) status = 1;
  }
  return status;
}
