// Runs what a bench compares with: a Python script that prints JSON lines of its own.

#ifndef TRITONRL_BENCH_MODEL_PEER_H_
#define TRITONRL_BENCH_MODEL_PEER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tritonrl {

struct PeerOptions {
  std::vector<std::string> launcher;  // arguments of Python before the script
  std::string script;                 // by its path from the workspace's root
  std::string shape;                  // see ReadModelShape
  std::string lengths;                // as ParseBatches takes them
  std::string recompute;              // shares of layers, divided by commas
  int steps = 4;
  absl::Duration timeout = absl::Minutes(30);
};

// In processes of its own, which have given the GPUs' memory back when this returns. Nothing to do
// where `recompute` is empty. Error: the script failed or took too long.
absl::Status RunPeer(const PeerOptions& run);

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_MODEL_PEER_H_
