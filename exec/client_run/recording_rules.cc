#include "exec/client_run/recording_rules.h"

#include <algorithm>
#include <array>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tritonrl {
namespace {

using device::Incident;
using device::Phase;
using device::SessionResult;
using device::Tag;
using device::TagCounts;

// Operators may move so much beside the kernels: copies to another layout before and after them.
constexpr double kMostNeutralShare = 4;
constexpr int64_t kFreeNeutralBytes = 1 << 20;

// Bytes of the few random numbers that serve as a seed.
constexpr int64_t kFreeRandomBytes = 128;

// Operators that draw; with another ending (rand_like, randint_like, bernoulli_) too.
constexpr std::array<absl::string_view, 14> kDraws = {
    "native_dropout", "bernoulli", "rand",       "randn",      "randint",
    "randperm",       "random",    "uniform",    "normal",     "exponential",
    "geometric",      "cauchy",    "log_normal", "multinomial"};

bool Draws(absl::string_view name) {
  absl::ConsumePrefix(&name, "aten.");
  absl::ConsumeSuffix(&name, "_");
  absl::ConsumeSuffix(&name, "_like");
  return absl::StartsWith(name, "rrelu_with_noise") || name == "poisson" || name == "binomial" ||
         std::find(kDraws.begin(), kDraws.end(), name) != kDraws.end();
}

// What constructors of layers do to weights that they drew: bounds and scales, as in
// torch.nn.init, and changes of sign.
constexpr std::array<absl::string_view, 22> kInitArithmetic = {
    "abs",        "add",      "clamp", "clamp_max", "clamp_min",
    "diag",       "diagonal", "div",   "exp",       "erfinv",
    "linalg_qr",  "log",      "mul",   "neg",       "norm_except_dim",
    "reciprocal", "rsqrt",    "rsub",  "sign",      "sqrt",
    "sub",        "t"};

int64_t BytesWith(const TagCounts& counts, Tag tag) {
  return counts.bytes[static_cast<size_t>(tag)];
}

// The first of forward; else null.
const Incident* FirstOfForward(const std::vector<Incident>& incidents) {
  for (const Incident& incident : incidents) {
    if (incident.phase == Phase::kForward) return &incident;
  }
  return nullptr;
}

// What was refused was not computed, but elsewhere it would be, and the kernels would not be
// needed.
std::optional<RuleFinding> JudgeAttempts(const SessionResult& session) {
  const Incident* const refusal = FirstOfForward(session.counts.refusals);
  if (refusal == nullptr) return std::nullopt;
  return RuleFinding{Outcome::RUNTIME_COMPUTE, absl::StrCat(refusal->text, ", which forward tried"),
                     refusal->line};
}

std::optional<RuleFinding> JudgeProvenance(const SessionResult& session) {
  int64_t total = session.host_output_bytes, by_kernels = 0;
  int64_t from_host = session.host_output_bytes;
  for (const TagCounts& counts : session.provenance) {
    total += counts.total;
    by_kernels += BytesWith(counts, Tag::kKernel);
    // The few elements that operators may compute are the kernels' work if they depend on it, which
    // leaving the kernels out shows.
    if (session.traffic.kernel_bytes > 0) by_kernels += BytesWith(counts, Tag::kSmall);
    from_host += BytesWith(counts, Tag::kHost);
  }
  if (total == 0) return std::nullopt;
  if (from_host > 0) {
    return RuleFinding{Outcome::RUNTIME_COMPUTE,
                       absl::StrCat(from_host, " of ", total,
                                    " bytes of the result came from the program, not from a "
                                    "kernel")};
  }
  if (by_kernels > 0) return std::nullopt;
  return RuleFinding{Outcome::RUNTIME_COMPUTE,
                     absl::StrCat("no kernel wrote any of the ", total, " bytes of the result: ",
                                  session.counts.launches == 0 ? "none was launched"
                                                               : "operators of torch made it")};
}

std::optional<RuleFinding> JudgeTraffic(const SessionResult& session) {
  const device::Traffic& traffic = session.traffic;
  if (traffic.fills_over_kernel_bytes > 0) {
    return RuleFinding{Outcome::RUNTIME_COMPUTE,
                       absl::StrCat("operators of torch filled memory that a kernel had written, ",
                                    traffic.fills_over_kernel_bytes, " times")};
  }
  const double allowed =
      kMostNeutralShare * static_cast<double>(traffic.kernel_bytes) + kFreeNeutralBytes;
  if (static_cast<double>(traffic.neutral_bytes) <= allowed) return std::nullopt;
  return RuleFinding{
      Outcome::RUNTIME_COMPUTE,
      absl::StrFormat("operators of torch moved %d bytes in forward, the kernels at most %d",
                      traffic.neutral_bytes, traffic.kernel_bytes)};
}

std::optional<RuleFinding> JudgeConstructor(const SessionResult& session) {
  for (const auto& [name, elements] : session.of_weights) {
    if (elements <= device::SessionLimits().max_small_elements) continue;
    // An orthogonal matrix has the signs of its decomposition as factors.
    if (name == "products of two" && session.of_weights.count("linalg_qr") > 0) continue;
    const absl::string_view base = absl::StripSuffix(name, "_");
    if (std::find(kInitArithmetic.begin(), kInitArithmetic.end(), base) != kInitArithmetic.end()) {
      continue;
    }
    return RuleFinding{Outcome::RUNTIME_COMPUTE,
                       absl::StrCat("the constructor computes on its weights with ",
                                    absl::StrContains(name, ' ') ? "" : "aten::", name)};
  }
  return std::nullopt;
}

std::optional<RuleFinding> JudgeDraws(const SessionResult& session, const ExecResult& reference) {
  if (DrawsRandomNumbers(reference)) return std::nullopt;
  for (const auto& [name, traffic] : session.traffic.operators) {
    if (!Draws(name) || traffic.bytes <= kFreeRandomBytes) continue;
    return RuleFinding{Outcome::RUNTIME_COMPUTE,
                       absl::StrCat("aten::", name,
                                    " draws random numbers in forward, where the reference draws "
                                    "none")};
  }
  return std::nullopt;
}

Outcome::Reason ReasonOf(const Incident& incident) {
  switch (incident.code) {
    case absl::StatusCode::kOutOfRange:
      return Outcome::OUT_OF_BOUNDS;
    case absl::StatusCode::kDeadlineExceeded:
      return Outcome::TIMEOUT;
    case absl::StatusCode::kUnimplemented:
      return Outcome::NOT_EXECUTABLE;
    case absl::StatusCode::kResourceExhausted:
      return Outcome::OUT_OF_MEMORY;
    default:
      return Outcome::RUNTIME_ERROR;
  }
}

}  // namespace

std::optional<RuleFinding> JudgeRecording(const SessionResult& session,
                                          const ExecResult& reference) {
  if (auto finding = JudgeAttempts(session)) return finding;
  if (auto finding = JudgeProvenance(session)) return finding;
  if (auto finding = JudgeTraffic(session)) return finding;
  if (auto finding = JudgeDraws(session, reference)) return finding;
  return JudgeConstructor(session);
}

bool DrawsRandomNumbers(const ExecResult& reference) {
  return std::any_of(reference.reference_ops().begin(), reference.reference_ops().end(),
                     [](const AtenOp& op) { return Draws(op.name()); });
}

std::set<std::string> MaskOperators() {
  return {"native_dropout", "bernoulli", "bernoulli_", "div", "div_", "mul", "mul_"};
}

std::optional<RuleFinding> ExplainFailure(const SessionResult& session) {
  const Incident* const error = FirstOfForward(session.counts.kernel_errors);
  const Incident* const refusal = FirstOfForward(session.counts.refusals);
  if (error != nullptr) return RuleFinding{ReasonOf(*error), error->text, error->line};
  if (refusal == nullptr) return std::nullopt;
  return RuleFinding{Outcome::RUNTIME_COMPUTE, refusal->text, refusal->line};
}

}  // namespace tritonrl
