#include "exec/candidate/task_probes.h"

#include <string.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "exec/compare/tensor_compare.h"
#include "exec/compare/tensor_layout.h"
#include "exec/reference/job_json.h"

namespace tritonrl {
namespace {

// What stands in for the outputs of one call.
struct Forged {
  std::vector<Leaf> leaves;
  std::string own;           // the memory, if it was made here
  absl::string_view memory;  // the memory, if it is somebody else's
  absl::string_view view() const { return own.empty() ? memory : absl::string_view(own); }
};

// Of one call; nothing where the probe cannot be made.
using Maker = std::function<std::optional<Forged>(size_t call)>;

// Writes the bytes of a leaf; false if it cannot.
using Fill = std::function<bool(size_t leaf, char* bytes)>;

std::optional<Forged> Forge(const std::vector<Leaf>& like, bool zero_numbers, const Fill& fill) {
  Forged forged;
  forged.leaves = like;
  uint64_t size = 0;
  for (Leaf& leaf : forged.leaves) {
    if (leaf.kind == Leaf::Kind::kNumber && zero_numbers) leaf.number = 0;
    if (leaf.kind != Leaf::Kind::kTensor) continue;
    leaf.offset = size;
    size += static_cast<uint64_t>(leaf.bytes());
  }
  forged.own.resize(std::max<uint64_t>(size, 1));
  for (size_t i = 0; i < forged.leaves.size(); ++i) {
    const Leaf& leaf = forged.leaves[i];
    if (leaf.kind != Leaf::Kind::kTensor || leaf.elements == 0) continue;
    if (!fill(i, forged.own.data() + *leaf.offset)) return std::nullopt;
  }
  return forged;
}

// Which element of an output is taken for a constant.
enum class Constant { kMean, kFirst, kPostAttention };

// Index of the element that is nearest to `target` of the finite ones.
template <typename Reader>
int64_t Nearest(const char* bytes, int64_t count, Constant constant) {
  double sum = 0, low = HUGE_VAL, high = -HUGE_VAL;
  int64_t finite = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double x = Reader::Get(bytes + i * Reader::kBytes);
    if (!std::isfinite(x)) continue;
    sum += x;
    low = std::min(low, x);
    high = std::max(high, x);
    ++finite;
  }
  if (finite == 0) return 0;
  const double target = constant == Constant::kMean ? sum / finite : low + (high - low) / 2;
  int64_t nearest = 0;
  double distance = HUGE_VAL;
  for (int64_t i = 0; i < count; ++i) {
    const double d = std::abs(Reader::Get(bytes + i * Reader::kBytes) - target);
    if (d < distance) {
      distance = d;
      nearest = i;
    }
  }
  return nearest;
}

// The bytes of one element of a leaf.
std::string ConstantOf(const Leaf& leaf, absl::string_view memory, Constant constant) {
  const char* bytes = memory.data() + *leaf.offset;
  int64_t index = 0;
  if (constant != Constant::kFirst) {
    index = WithElementReader(leaf.type, [&](auto reader) -> int64_t {
      using Reader = decltype(reader);
      if constexpr (std::is_same_v<typename Reader::Wide, double>) {
        return Nearest<Reader>(bytes, leaf.elements, constant);
      } else {
        return 0;
      }
    });
  }
  return std::string(bytes + index * SizeOf(leaf.type), SizeOf(leaf.type));
}

class Prober {
 public:
  Prober(const ExecRequest& request, const ReferenceResult& reference_result)
      : request_(request),
        reference_result_(reference_result),
        calls_(CallsOf(static_cast<int>(reference_result.inputs.size()))) {}

  void Run(ExecResult* result) {
    const auto add = [&](const char* name, const Maker& make) {
      Try(name, make, result->add_probes());
    };
    add("zeros", ZeroMaker());
    add("constant_mean", ConstantMaker(Constant::kMean));
    add("constant_first", ConstantMaker(Constant::kFirst));
    add("constant_middle", ConstantMaker(Constant::kPostAttention));
    add("identity", [this](size_t call) { return Identity(call); });
    add("half_output", [this](size_t call) { return HalfOutput(call); });
    add("half_input", MadeByReference("half_input"));
    add("low_precision", MadeByReference("low_precision"));
    // Rounding that changes nothing (of integers, say) is no loss of precision.
    TaskProbe* rounded = result->mutable_probes(result->probes_size() - 1);
    if (rounded->passes() && rounded->max_error() == 0) {
      rounded->set_applies(false);
      rounded->set_passes(false);
      rounded->set_text("rounding changes nothing here");
    }
  }

 private:
  Maker ZeroMaker() {
    return [this](size_t call) {
      return Forge(reference_result_.outputs[call], true, [](size_t, char*) { return true; });
    };
  }

  Maker ConstantMaker(Constant constant) {
    std::vector<std::string> values;
    for (const Leaf& leaf : reference_result_.outputs[0]) {
      const bool some = leaf.kind == Leaf::Kind::kTensor && leaf.elements > 0;
      values.push_back(some ? ConstantOf(leaf, hidden_, constant) : "");
    }
    return [this, values](size_t call) {
      const std::vector<Leaf>& like = reference_result_.outputs[call];
      return Forge(like, false, [&](size_t i, char* bytes) {
        if (i >= values.size() || values[i].size() != SizeOf(like[i].type)) return false;
        for (int64_t k = 0; k < like[i].elements; ++k) {
          memcpy(bytes + k * values[i].size(), values[i].data(), values[i].size());
        }
        return true;
      });
    };
  }

  // For each output an input of its shape and type.
  std::optional<Forged> Identity(size_t call) {
    const std::vector<Leaf>& like = reference_result_.outputs[call];
    const std::vector<Leaf>& inputs = reference_result_.inputs[calls_[call]];
    auto forged = Forge(like, false, [&](size_t i, char* bytes) {
      for (const Leaf& input : inputs) {
        if (input.kind != Leaf::Kind::kTensor || input.shape != like[i].shape ||
            input.dtype != like[i].dtype) {
          continue;
        }
        memcpy(bytes, reference_result_.visible.view().data() + *input.offset, input.bytes());
        return true;
      }
      return false;
    });
    return forged.has_value() ? std::move(forged) : MadeByReference("identity_cast")(call);
  }

  std::optional<Forged> HalfOutput(size_t call) {
    const std::vector<Leaf>& like = reference_result_.outputs[call];
    return Forge(like, false, [&](size_t i, char* bytes) {
      if (like[i].elements < 2) return false;
      memcpy(bytes, hidden_.data() + *like[i].offset, like[i].elements / 2 * SizeOf(like[i].type));
      return true;
    });
  }

  Maker MadeByReference(const std::string& name) {
    return [this, name](size_t call) -> std::optional<Forged> {
      const auto found = reference_result_.probes.find(name);
      if (found == reference_result_.probes.end() || !found->second[call].has_value())
        return std::nullopt;
      return Forged{.leaves = *found->second[call], .own = "", .memory = hidden_};
    };
  }

  void Try(const char* name, const Maker& make, TaskProbe* probe) {
    probe->set_name(name);
    probe->set_applies(true);
    double largest = 0;
    for (size_t call = 0; call < calls_.size(); ++call) {
      if (call == 1) continue;  // the first trial once more
      const std::optional<Forged> forged = make(call);
      if (!forged.has_value()) {
        probe->set_applies(false);
        probe->set_text("cannot be made here");
        return;
      }
      const Comparison found = CompareOutputs({reference_result_.outputs[call], hidden_},
                                              {forged->leaves, forged->view()},
                                              reference_result_.ToleranceOf(request_, call));
      if (!found.equal) {
        const std::string& trial = reference_result_.trial_names[calls_[call]];
        probe->set_text(absl::StrCat("refused in trial ", calls_[call] + 1, " (inputs: ", trial,
                                     "): ", found.message));
        return;
      }
      largest = std::max(largest, found.max_error.value_or(0));
    }
    probe->set_passes(true);
    probe->set_max_error(largest);
    probe->set_text(absl::StrFormat("right on all %d trials, largest error %.3g",
                                    reference_result_.inputs.size(), largest));
  }

  const ExecRequest& request_;
  const ReferenceResult& reference_result_;
  const std::vector<int> calls_;
  const absl::string_view hidden_ = reference_result_.hidden.view();
};

}  // namespace

void ProbeTask(const ExecRequest& request, const ReferenceResult& reference_result,
               ExecResult* result) {
  Prober(request, reference_result).Run(result);
}

}  // namespace tritonrl
