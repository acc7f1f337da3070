#include "tasks/composition.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash.h"

namespace tritonrl {
namespace {

// Every family has few compositions of level 1; with this salt at least one of them is held out
// (composition_test checks this).
constexpr char kHeldOutSalt[] = "held-out 2757: ";
constexpr int kHeldOutOneIn = 10;

constexpr double kHardShare = 0.36;

constexpr size_t kSampleRows = 8, kSampleCols = 64;
// exp(40) is far below float32's maximum, and sin(40) keeps five digits.
constexpr double kLargestInput = 40;
constexpr double kLargestResult = 1e4;
// A tolerance of 1e-2 detects a wrong formula on values with at least this standard deviation.
constexpr double kSmallestSpread = 0.15;
constexpr double kSmallestHardSpread = 0.3;
constexpr double kSmallestChange = 0.1;

CoreKind KindOf(Family family) {
  switch (family) {
    case Family::kReduction:
      return CoreKind::kReduction;
    case Family::kNormalization:
      return CoreKind::kNormalization;
    case Family::kMatmul:
      return CoreKind::kMatmul;
    default:
      return CoreKind::kLoss;
  }
}

const char* FamilyName(Family family) {
  switch (family) {
    case Family::kElementwise:
      return "elementwise";
    case Family::kReduction:
      return "reduction";
    case Family::kNormalization:
      return "normalization";
    case Family::kMatmul:
      return "matmul";
    case Family::kLoss:
      return "loss";
  }
  return "";
}

// softmax and normalize give values of about 1/N and 1/sqrt(N).
bool MakesSmallValues(const Core& core) {
  return core.name == "softmax" || core.name == "normalize";
}

double Constant(const OperatorUse& use, size_t index) {
  return index < use.constants.size() ? std::strtod(use.constants[index].c_str(), nullptr) : 0;
}

const std::vector<double>& Samples(int input) {
  static const std::vector<double>* const samples = [] {
    auto* both = new std::vector<double>[2];
    Philox random(0x72616e6765);
    for (size_t i = 0; i < kSampleRows * kSampleCols; ++i) {
      both[0].push_back(random.Normal());
      both[1].push_back(random.Normal());
    }
    return both;
  }();
  return samples[input];
}

// Evaluates a composition on normal samples in double precision and checks the range of its values.
// The samples are the same in every call, so that the result for a composition never changes.
class RangeCheck {
 public:
  RangeCheck() : x_(Samples(0)), y_(Samples(1)) {}

  bool Passes(const Composition& composition) {
    for (const OperatorUse& use : composition.uses) {
      if (LargestMagnitude() * growth_ > kLargestInput) return false;
      if (use.core != nullptr) {
        Apply(*use.core, Constant(use, 0));
      } else if (!Apply(use)) {
        return false;
      }
    }
    return LargestMagnitude() * growth_ < kLargestResult && std::isfinite(LargestMagnitude());
  }

 private:
  double LargestMagnitude() const {
    double largest = 0;
    for (double v : x_) largest = std::max(largest, std::isfinite(v) ? std::abs(v) : HUGE_VAL);
    return largest;
  }

  static double Spread(const std::vector<double>& x) {
    double sum = 0, squares = 0;
    for (double v : x) sum += v, squares += v * v;
    const double mean = sum / x.size();
    return std::sqrt(std::max(0.0, squares / x.size() - mean * mean));
  }

  bool Apply(const OperatorUse& use) {
    const double before = Spread(x_);
    if (use.elementwise->hard() && before < kSmallestHardSpread) return false;
    double change = 0;
    for (size_t i = 0; i < x_.size(); ++i) {
      const double value =
          use.elementwise->evaluate(x_[i], y_[i], Constant(use, 0), Constant(use, 1));
      change += std::abs(value - x_[i]);
      x_[i] = value;
    }
    // The few results of a reduction may be close to each other (e.g. means of rows), so only full
    // tensors must have a spread.
    return change / x_.size() > kSmallestChange &&
           (x_.size() < kSampleRows * kSampleCols || Spread(x_) > kSmallestSpread);
  }

  void Apply(const Core& core, double constant) {
    switch (core.kind) {
      case CoreKind::kMatmul:
        for (double& v : x_) v *= 11;  // deviation of a sum of up to 128 products: sqrt(128)
        break;
      case CoreKind::kReduction:
        ReduceRows(core, constant);
        break;
      case CoreKind::kNormalization:
        for (size_t row = 0; row < kSampleRows; ++row) {
          std::vector<double> values = RowOf(row);
          core.transform(&values);
          std::copy(values.begin(), values.end(), x_.begin() + row * kSampleCols);
        }
        break;
      case CoreKind::kLoss:
        for (size_t i = 0; i < x_.size(); ++i) x_[i] = core.evaluate({x_[i], y_[i]}, constant);
        break;
    }
  }

  void ReduceRows(const Core& core, double constant) {
    std::vector<double> results;
    for (size_t row = 0; row < kSampleRows; ++row) {
      results.push_back(core.evaluate(RowOf(row), constant));
    }
    x_ = results;
    growth_ = core.growth;
  }

  std::vector<double> RowOf(size_t row) const {
    return std::vector<double>(x_.begin() + row * kSampleCols,
                               x_.begin() + (row + 1) * kSampleCols);
  }

  std::vector<double> x_;
  const std::vector<double>& y_;
  double growth_ = 1;
};

template <typename T>
const T& Pick(const std::vector<T>& choices, Philox* random) {
  return choices[random->Below(choices.size())];
}

template <typename Operator>
std::vector<std::string> DrawConstants(const Operator& op, Philox* random) {
  return op.constants.empty() ? std::vector<std::string>() : Pick(op.constants, random);
}

// Draws a hard operator with probability kHardShare: the policy learns to avoid mistakes in these.
const Elementwise& DrawElementwise(Philox* random) {
  const bool hard = random->Uniform() < kHardShare;
  while (true) {
    const Elementwise& op = Pick(ElementwiseOperators(), random);
    if (op.hard() == hard) return op;
  }
}

void AppendElementwise(const Elementwise& op, Philox* random, Composition* composition) {
  OperatorUse use;
  use.elementwise = &op;
  use.constants = DrawConstants(op, random);
  composition->uses.push_back(use);
}

// Appends `count` different elementwise operators; those with a second input only if `allow_y`.
void AppendChain(int count, bool allow_y, Philox* random, Composition* composition) {
  while (count > 0) {
    const Elementwise& op = DrawElementwise(random);
    const bool seen = std::any_of(composition->uses.begin(), composition->uses.end(),
                                  [&](const OperatorUse& u) { return u.elementwise == &op; });
    if (seen || (op.uses_y() && !allow_y)) continue;
    AppendElementwise(op, random, composition);
    --count;
  }
}

void AppendCore(Family family, Philox* random, Composition* composition) {
  const Core* core;
  do {
    core = &Pick(CoreOperators(), random);
  } while (core->kind != KindOf(family));
  OperatorUse use;
  use.core = core;
  use.constants = DrawConstants(*core, random);
  composition->uses.push_back(use);
}

// The numbers of elementwise operators before and after the core.
struct ChainLengths {
  int before = 0;
  int after = 0;
};

ChainLengths DrawLengths(Family family, Philox* random) {
  switch (family) {
    case Family::kElementwise:
      return {2 + static_cast<int>(random->Below(3)), 0};
    case Family::kReduction: {
      const int after = random->Below(2);
      return {static_cast<int>(random->Below(2)) + (after == 0 ? 1 : 0), after};
    }
    case Family::kNormalization: {
      const int after = random->Below(3);
      return {static_cast<int>(random->Below(2)) + (after == 0 ? 1 : 0), after};
    }
    case Family::kMatmul:
      return {0, 1 + static_cast<int>(random->Below(3))};
    case Family::kLoss:
      return {1 + static_cast<int>(random->Below(2)), 0};
  }
  return {};
}

Composition DrawCandidate(Family family, int level, Philox* random) {
  Composition composition;
  composition.family = family;
  const bool has_core = family != Family::kElementwise;
  ChainLengths lengths = {has_core ? 0 : 1, 0};
  if (level > 1) lengths = DrawLengths(family, random);
  // In a loss, y is the target; in a GEMM, it is the second matrix.
  const bool before_y = family != Family::kLoss;
  const bool after_y = family == Family::kNormalization;
  AppendChain(lengths.before, before_y, random, &composition);
  if (!has_core) return composition;
  AppendCore(family, random, &composition);
  if (level > 1 && MakesSmallValues(*composition.uses.back().core)) {
    AppendElementwise(ScaleOperator(), random, &composition);
    lengths.after = std::max(0, lengths.after - 1);
  }
  AppendChain(lengths.after, after_y, random, &composition);
  return composition;
}

}  // namespace

int Composition::core_index() const {
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].core != nullptr) return static_cast<int>(i);
  }
  return -1;
}

bool Composition::uses_y() const {
  if (family == Family::kMatmul || family == Family::kLoss) return true;
  return std::any_of(uses.begin(), uses.end(), [](const OperatorUse& use) {
    return use.elementwise != nullptr && use.elementwise->uses_y();
  });
}

std::string Composition::Key() const {
  return absl::StrCat(FamilyName(family), ":",
                      absl::StrJoin(uses, " ", [](std::string* out, const OperatorUse& use) {
                        absl::StrAppend(out, use.name());
                        if (!use.constants.empty()) {
                          absl::StrAppend(out, "(", absl::StrJoin(use.constants, ","), ")");
                        }
                      }));
}

bool IsHeldOut(const Composition& composition) {
  return Hash64(absl::StrCat(kHeldOutSalt, composition.Key())) % kHeldOutOneIn == 0;
}

Family DrawFamily(Philox* random) {
  constexpr Family kWeighted[] = {
      Family::kElementwise,   Family::kElementwise, Family::kElementwise,   Family::kReduction,
      Family::kReduction,     Family::kReduction,   Family::kNormalization, Family::kNormalization,
      Family::kNormalization, Family::kMatmul,      Family::kMatmul,        Family::kLoss};
  return kWeighted[random->Below(std::size(kWeighted))];
}

Composition DrawComposition(Family family, int level, Philox* random) {
  while (true) {
    Composition composition = DrawCandidate(family, level, random);
    if (level == 1 || RangeCheck().Passes(composition)) return composition;
  }
}

TaskShape DrawShape(Family family, Philox* random) {
  TaskShape shape;
  if (family == Family::kMatmul) {
    auto side = [&] { return 32 + 16 * static_cast<int>(random->Below(7)); };
    shape.rows = side();
    shape.cols = side();
    shape.inner = side();
    return shape;
  }
  shape.rows = 8 + static_cast<int>(random->Below(25));
  // Half of the widths are powers of two, with which a missing mask does no harm.
  shape.cols =
      random->Below(2) == 0 ? 64 << random->Below(4) : 33 + static_cast<int>(random->Below(480));
  return shape;
}

}  // namespace tritonrl
