// Damaged command streams, for tests and fuzzing.
#ifndef TRITONRL_EXEC_DEVICE_TESTING_STREAM_MUTATOR_H_
#define TRITONRL_EXEC_DEVICE_TESTING_STREAM_MUTATOR_H_

#include <cstddef>
#include <random>
#include <vector>

#include "exec/device/frame.h"
#include "exec/device/json.h"

namespace tritonrl::device {

// Changes honest streams. What it does is a function of the random numbers.
class StreamMutator {
 public:
  explicit StreamMutator(const std::mt19937& random);
  void set_random(const std::mt19937& random) { random_ = random; }

  // A copy of an honest stream, unchanged.
  std::vector<Frame> Stream() { return streams_[Pick(streams_.size())]; }
  // Changes one to three bytes of a message.
  void DamageBytes(std::vector<Frame>& stream);
  // Changes values of a message's JSON into others that streams have, now and then also the order
  // of messages.
  void DamageValues(std::vector<Frame>& stream);
  // Adds a call of another operator with the arguments of one in the stream, perhaps with others.
  void DamageOperator(std::vector<Frame>& stream);

 private:
  size_t Pick(size_t size) { return random_() % size; }
  void Collect(const Json& json);
  Json Word();
  void DamageOne(Json& json);
  void DamageOrder(std::vector<Frame>& stream);

  const std::vector<std::vector<Frame>> streams_;
  std::mt19937 random_;
  std::vector<Json> words_;  // all values in honest streams
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_TESTING_STREAM_MUTATOR_H_
