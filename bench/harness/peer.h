// The process of a bench's peer.
#ifndef TRITONRL_BENCH_HARNESS_PEER_H_
#define TRITONRL_BENCH_HARNESS_PEER_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tritonrl {

// The script of a peer. It runs under the Python of FindPythonEnv and prints its figures as JSON
// objects, one per line; its other lines are ignored.
struct PeerCommand {
  std::string script;                    // path from the workspace's root; may be empty
  std::vector<std::string> arguments;    // of the script
  std::vector<std::string> launcher;     // Python's own arguments, before the script
  std::string input;                     // the script's stdin
  std::vector<std::string> python_path;  // folders added to sys.path
  std::vector<std::pair<std::string, std::string>> env;
  absl::Duration timeout = absl::Minutes(30);
};

// Runs the script and returns its JSON lines. Errors name the script and give its exit code with
// the end of its stderr, or say that it missed its deadline or printed no JSON object.
absl::StatusOr<std::vector<nlohmann::json>> RunPeer(const PeerCommand& command);

// The number `key` of a peer's line, times `scale`; nullopt if the line has no such number.
std::optional<double> PeerValue(const nlohmann::json& line, const char* key, double scale = 1);

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_HARNESS_PEER_H_
