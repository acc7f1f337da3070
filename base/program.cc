#include "base/program.h"

#include <cstdio>
#include <cstdlib>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/version.h"

ABSL_FLAG(std::string, log_level, "info", "least level logged: debug, info, warning, error or off");
ABSL_FLAG(std::string, log_format, "text", "form of a log line: text or json");

namespace tritonrl {

namespace {

// The flags that --help shows: those of the program's main file, of all benches, and the two above.
bool IsOwnFlagFile(absl::string_view file) {
  return absl::EndsWith(file, "_main.cc") || absl::EndsWith(file, "bench/harness/harness.cc") ||
         absl::EndsWith(file, "base/program.cc");
}

}  // namespace

std::string Version() { return kVersion; }

std::vector<char*> StartProgram(const std::string& usage, int argc, char** argv) {
  absl::FlagsUsageConfig config;
  config.contains_help_flags = IsOwnFlagFile;
  config.contains_helpshort_flags = IsOwnFlagFile;
  config.version_string = [] { return absl::StrCat("TritonRL ", kVersion, "\n"); };
  absl::SetFlagsUsageConfig(config);
  absl::SetProgramUsageMessage(usage);
  std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  const absl::Status log = SetUpLog(
      {.level = absl::GetFlag(FLAGS_log_level), .format = absl::GetFlag(FLAGS_log_format)});
  if (!log.ok()) {
    std::fprintf(stderr, "ERROR: %s\n", std::string(log.message()).c_str());
    std::exit(1);
  }
  return rest;
}

}  // namespace tritonrl
