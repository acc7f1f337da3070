#include "exec/service/testing/request_fuzzer.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>

#include "base/random.h"
#include "base/utf8.h"
#include "exec/service/wire.h"

namespace tritonrl {
namespace {

std::string RandomText(Philox* random, int longest) {
  std::string text(random->Below(longest + 1), '\0');
  const bool ascii = random->Below(16) != 0;
  for (char& c : text) c = static_cast<char>(ascii ? 32 + random->Below(95) : random->Below(256));
  return text;
}

double RandomNumber(Philox* random) {
  constexpr double kOdd[] = {0,
                             -0.0,
                             -1,
                             1e-300,
                             1e300,
                             0.01,
                             5,
                             std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};
  return kOdd[random->Below(std::size(kOdd))];
}

int64_t RandomInteger(Philox* random) {
  const int shift = static_cast<int>(random->Below(64));
  return static_cast<int64_t>(random->Next64() >> shift) * (random->Below(4) == 0 ? -1 : 1);
}

std::string SeedInput(Philox* random) {
  RunRequest request;
  ExecRequest* exec = request.mutable_request();
  exec->set_task_id(RandomText(random, 40));
  exec->set_reference_source(RandomText(random, 300));
  exec->set_candidate_source(RandomText(random, 300));
  exec->set_seed(random->Next64());
  exec->set_skip_timing(random->Below(2) == 0);
  if (random->Below(8) == 0) exec->set_trials(static_cast<int32_t>(RandomInteger(random)));
  if (random->Below(8) == 0) exec->set_atol(RandomNumber(random));
  if (random->Below(8) == 0) exec->mutable_limits()->set_wall_seconds(RandomNumber(random));
  if (random->Below(8) == 0) exec->mutable_limits()->set_memory_bytes(RandomInteger(random));
  if (random->Below(8) == 0) request.set_memory_bytes(RandomInteger(random));
  return request.SerializeAsString();
}

void Mutate(Philox* random, std::string* bytes) {
  if (bytes->empty()) bytes->push_back('\n');
  const size_t at = random->Below(bytes->size());
  const size_t length = random->Below(std::min<size_t>(bytes->size() - at, 16)) + 1;
  switch (random->Below(7)) {
    case 0:
      (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << random->Below(8)));
      break;
    case 1:
      bytes->erase(at, length);
      break;
    case 2:
      bytes->insert(at, bytes->substr(at, length));
      break;
    case 3:
      bytes->insert(at, RandomText(random, 12));
      break;
    case 4:
      bytes->insert(at, std::string(1 + random->Below(10), '\xFF'));  // a varint that does not end
      break;
    case 5:
      bytes->resize(at);
      break;
    default:
      *bytes = bytes->substr(0, at) + SeedInput(random);
  }
}

// Checks the guarantees of CheckRunRequest independently of its code.
bool IsSound(const RunRequest& request) {
  const ExecRequest& exec = request.request();
  for (const double number :
       {exec.atol(), exec.rtol(), exec.limits().wall_seconds(), exec.limits().cpu_seconds()}) {
    if (!std::isfinite(number) || number < 0) return false;
  }
  if (exec.trials() < 0 || exec.trials() > 1000 || request.memory_bytes() < 0) return false;
  if (exec.limits().memory_bytes() < 0 || exec.limits().processes() < 0) return false;
  if (exec.reference_source().empty()) return false;
  if (!IsValidUtf8(exec.reference_source()) || !IsValidUtf8(exec.candidate_source())) return false;
  const auto again = DecodeRunRequest(request.SerializeAsString());
  return again.ok() && again->SerializeAsString() == request.SerializeAsString();
}

}  // namespace

WireFuzzCounts FuzzRequests(int64_t count, uint64_t seed) {
  WireFuzzCounts counts;
  // Protobuf logs a line for each string that is not UTF-8.
  const google::protobuf::LogSilencer silence;
  for (; counts.inputs < count; ++counts.inputs) {
    Philox random(seed, counts.inputs);
    std::string bytes = random.Below(10) == 0 ? RandomText(&random, 200) : SeedInput(&random);
    for (uint64_t i = random.Below(6); i > 0; --i) Mutate(&random, &bytes);
    const auto request = DecodeRunRequest(bytes);
    if (!request.ok()) continue;
    ++counts.accepted;
    if (!IsSound(*request)) ++counts.broken;
  }
  return counts;
}

}  // namespace tritonrl
