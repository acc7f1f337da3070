// Lints the candidate programs named on the command line: one line for each finding. Exit code 1 if
// any has one.
#include <cstdio>
#include <string>

#include "base/file.h"
#include "base/status.h"
#include "verify/linter/linter.h"

int main(int argc, char** argv) {
  int status = 0;
  for (int i = 1; i < argc; ++i) {
    auto source = tritonrl::ReadFile(tritonrl::UserPath(argv[i]));
    if (!source.ok()) {
      std::fprintf(stderr, "%s\n", tritonrl::Message(source.status()).c_str());
      return 2;
    }
    const tritonrl::LintResult result = tritonrl::Lint(*source);
    for (const tritonrl::LintFinding& finding : result.findings) {
      std::printf("%s:%d: %s: %s\n", argv[i], finding.line,
                  std::string(tritonrl::LintRuleName(finding.rule)).c_str(), finding.text.c_str());
    }
    if (!result.ok()) status = 1;
  }
  return status;
}
