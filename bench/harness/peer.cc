#include "bench/harness/peer.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "base/subprocess.h"

namespace tritonrl {
namespace {

constexpr size_t kErrorBytes = 2000;  // of a failed peer's stderr

}  // namespace

absl::StatusOr<std::vector<nlohmann::json>> RunPeer(const PeerCommand& command) {
  ASSIGN_OR_RETURN(const PythonEnv python, FindPythonEnv());
  std::vector<std::string> argv = {python.interpreter};
  argv.insert(argv.end(), command.launcher.begin(), command.launcher.end());
  if (!command.script.empty()) {
    ASSIGN_OR_RETURN(argv.emplace_back(), Runfile(command.script));
  }
  argv.insert(argv.end(), command.arguments.begin(), command.arguments.end());
  RunCommandOptions options;
  options.timeout = command.timeout;
  options.input = command.input;
  options.env = python.Environment(command.python_path);
  options.env.insert(options.env.end(), command.env.begin(), command.env.end());
  ASSIGN_OR_RETURN(const CommandResult run, RunCommand(argv, options));
  const std::string name = command.script.empty() ? "the peer" : "the peer " + command.script;
  if (run.timed_out) {
    return absl::DeadlineExceededError(
        absl::StrCat(name, " did not finish in ", absl::FormatDuration(command.timeout)));
  }
  if (!run.ok()) {
    const size_t begin = run.err.size() - std::min(run.err.size(), kErrorBytes);
    return absl::InternalError(
        absl::StrCat(name, " failed with ", ExitStatus{run.exit_code, run.signal}.ToString(), ": ",
                     absl::StripAsciiWhitespace(absl::string_view(run.err).substr(begin))));
  }
  std::vector<nlohmann::json> figures;
  for (const absl::string_view line : absl::StrSplit(run.out, '\n')) {
    nlohmann::json parsed = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (parsed.is_object()) figures.push_back(std::move(parsed));
  }
  if (figures.empty()) return absl::InternalError(name + " printed no figures as JSON");
  return figures;
}

std::optional<double> PeerValue(const nlohmann::json& line, const char* key, double scale) {
  if (!line.is_object() || !line.contains(key)) return std::nullopt;
  return scale * line[key].get<double>();
}

}  // namespace tritonrl
