#include "exec/testing/fuzz/fuzz_target.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/testing/stream_mutator.h"
#include "exec/device/testing/stream_runner.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/run/testing/guarded_launch.h"
#include "exec/ttir/testing/corpus.h"
#include "exec/ttir/testing/mutation.h"

namespace tritonrl {
namespace {

std::mt19937 RandomOf(uint64_t seed, uint64_t number) {
  std::seed_seq words{seed & 0xffffffff, seed >> 32, number & 0xffffffff, number >> 32};
  return std::mt19937(words);
}

class Streams : public FuzzTarget {
 public:
  explicit Streams(uint64_t seed) : seed_(seed), mutator_(RandomOf(seed, 0)) {}

  // Messages as on the socket.
  std::string Input(uint64_t number) override {
    std::string bytes;
    for (const device::Frame& frame : StreamOf(number)) {
      for (const size_t size : {frame.header.size(), frame.payload.size()}) {
        for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(size >> shift);
      }
      absl::StrAppend(&bytes, frame.header, frame.payload);
    }
    return bytes;
  }
  absl::Status Run(uint64_t number) override {
    if (runner_ == nullptr) {
      ASSIGN_OR_RETURN(runner_, device::StreamRunner::Create());
    }
    return device::CheckEnd(runner_->Run(StreamOf(number)));
  }

 private:
  std::vector<device::Frame> StreamOf(uint64_t number) {
    using Mutator = device::StreamMutator;
    constexpr void (Mutator::*kDamages[])(std::vector<device::Frame>&) = {
        &Mutator::DamageBytes, &Mutator::DamageValues, &Mutator::DamageOperator};
    std::mt19937 random = RandomOf(seed_, number);
    const auto damage = kDamages[random() % std::size(kDamages)];
    mutator_.set_random(random);
    std::vector<device::Frame> stream = mutator_.Stream();
    (mutator_.*damage)(stream);
    return stream;
  }

  const uint64_t seed_;
  device::StreamMutator mutator_;
  std::unique_ptr<device::StreamRunner> runner_;  // of the process that runs inputs
};

class Texts : public FuzzTarget {
 public:
  Texts(uint64_t seed, bool launches) : seed_(seed), launches_(launches) {
    for (ttir::CorpusText& entry : ttir::ReadCorpus()) {
      if (entry.text.size() > ttir::kLongestDamaged) continue;
      words_.push_back(ttir::TokensOf(entry.text));
      texts_.push_back(std::move(entry.text));
    }
  }

  std::string Input(uint64_t number) override {
    std::mt19937 random = RandomOf(seed_, number);
    return TextOf(random);
  }
  absl::Status Run(uint64_t number) override {
    std::mt19937 random = RandomOf(seed_, number);
    const std::string text = TextOf(random);
    if (!launches_) return ttir::CheckParsed(ttir::ParseTtir(text).status());
    ttir::GuardedLaunches launches;
    return ttir::LaunchGuarded(text, random, &launches);
  }

 private:
  std::string TextOf(std::mt19937& random) const {
    const size_t i = random() % texts_.size();
    if (launches_ && random() % 4 > 0) return ttir::MutateMeaning(texts_[i], random);
    return ttir::Mutate(texts_[i], words_[i], random);
  }

  const uint64_t seed_;
  const bool launches_;
  std::vector<std::string> texts_;
  std::vector<std::vector<std::string>> words_;  // of each text
};

class InTurn : public FuzzTarget {
 public:
  explicit InTurn(std::vector<std::unique_ptr<FuzzTarget>> targets)
      : targets_(std::move(targets)) {}

  std::string Input(uint64_t number) override { return At(number).Input(number); }
  absl::Status Run(uint64_t number) override { return At(number).Run(number); }

 private:
  FuzzTarget& At(uint64_t number) { return *targets_[number % targets_.size()]; }

  std::vector<std::unique_ptr<FuzzTarget>> targets_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FuzzTarget>> MakeFuzzTarget(const std::vector<std::string>& kinds,
                                                           uint64_t seed) {
  std::vector<std::unique_ptr<FuzzTarget>> targets;
  for (const std::string& kind : kinds) {
    if (kind == "streams") {
      targets.push_back(std::make_unique<Streams>(seed));
    } else if (kind == "texts" || kind == "launches") {
      targets.push_back(std::make_unique<Texts>(seed, kind == "launches"));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("'", kind, "' is no kind of inputs: streams, texts, launches"));
    }
  }
  if (targets.empty()) return absl::InvalidArgumentError("no kind of inputs is named");
  return std::make_unique<InTurn>(std::move(targets));
}

}  // namespace tritonrl
