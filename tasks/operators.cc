#include "tasks/operators.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_replace.h"

namespace tritonrl {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<Elementwise> MakeEasy() {
  using D = double;
  return {
      {"relu",
       "torch.relu(x)",
       "tl.maximum(x, 0)",
       {"tl.minimum(x, 0)"},
       {},
       [](D x, D, D, D) { return std::max(x, 0.0); }},
      {"sigmoid",
       "torch.sigmoid(x)",
       "tl.sigmoid(x)",
       {"1 / (1 + tl.exp(x))"},
       {},
       [](D x, D, D, D) { return Sigmoid(x); }},
      {"silu",
       "F.silu(x)",
       "x * tl.sigmoid(x)",
       {"x + tl.sigmoid(x)"},
       {},
       [](D x, D, D, D) { return x * Sigmoid(x); }},
      {"abs",
       "torch.abs(x)",
       "tl.abs(x)",
       {"tl.maximum(x, 0)"},
       {},
       [](D x, D, D, D) { return std::abs(x); }},
      {"neg", "-x", "-x", {"1 - x"}, {}, [](D x, D, D, D) { return -x; }},
      {"square", "x * x", "x * x", {"x + x"}, {}, [](D x, D, D, D) { return x * x; }},
      {"sin",
       "torch.sin(x)",
       "tl.sin(x)",
       {"tl.cos(x)"},
       {},
       [](D x, D, D, D) { return std::sin(x); }},
      {"cos",
       "torch.cos(x)",
       "tl.cos(x)",
       {"tl.sin(x)"},
       {},
       [](D x, D, D, D) { return std::cos(x); }},
      {"softsign",
       "F.softsign(x)",
       "x / (1 + tl.abs(x))",
       {"x / (1 + x * x)"},
       {},
       [](D x, D, D, D) { return x / (1 + std::abs(x)); }},
      {"mul",
       "x * $1",
       "x * $1",
       {"x + $1"},
       {{"0.3"}, {"0.5"}, {"0.7"}, {"1.5"}, {"2"}, {"3"}},
       [](D x, D, D c, D) { return x * c; }},
      {"add",
       "x + $1",
       "x + $1",
       {"x - $1"},
       {{"0.2"}, {"0.5"}, {"1"}, {"1.5"}, {"2"}},
       [](D x, D, D c, D) { return x + c; }},
      {"rsub",
       "$1 - x",
       "$1 - x",
       {"x - $1"},
       {{"0.5"}, {"1"}, {"1.5"}, {"2"}},
       [](D x, D, D c, D) { return c - x; }},
      {"div",
       "x / $1",
       "x / $1",
       {"x * $1"},
       {{"0.6"}, {"1.5"}, {"2"}, {"3"}, {"4"}},
       [](D x, D, D c, D) { return x / c; }},
      {"add_y", "x + y", "x + y", {"x - y"}, {}, [](D x, D y, D, D) { return x + y; }},
      {"sub_y", "x - y", "x - y", {"y - x"}, {}, [](D x, D y, D, D) { return x - y; }},
      {"mul_y", "x * y", "x * y", {"x + y"}, {}, [](D x, D y, D, D) { return x * y; }},
  };
}

std::vector<Elementwise> MakeHard() {
  using D = double;
  return {
      {"tanh",
       "torch.tanh(x)",
       "2 * tl.sigmoid(2 * x) - 1",
       {"2 * tl.sigmoid(x) - 1", "tl.sigmoid(2 * x)"},
       {},
       [](D x, D, D, D) { return std::tanh(x); }},
      // 1 / sqrt(2) in seven digits: exact to a third of a unit in the last place of a float.
      {"gelu",
       "F.gelu(x)",
       "0.5 * x * (1 + tl.erf(x * 0.7071068))",
       {"0.5 * x * (1 + tl.erf(x))", "x * tl.sigmoid(x)"},
       {},
       [](D x, D, D, D) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }},
      {"softplus",
       "F.softplus(x)",
       "tl.log(1 + tl.exp(x))",
       {"tl.exp(x) / (1 + tl.exp(x))", "tl.maximum(x, 0)"},
       {},
       [](D x, D, D, D) { return std::log1p(std::exp(x)); }},
      {"hardswish",
       "F.hardswish(x)",
       "x * tl.minimum(tl.maximum(x + 3, 0), 6) / 6",
       {"x * tl.minimum(tl.maximum(x + 3, 0), 6)", "x * tl.minimum(tl.maximum(x, 0), 6) / 6"},
       {},
       [](D x, D, D, D) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }},
      {"clamp",
       "torch.clamp(x, $1, $2)",
       "tl.minimum(tl.maximum(x, $1), $2)",
       {"tl.maximum(x, $1)", "tl.minimum(x, $2)"},
       {{"-1", "1"}, {"-0.5", "0.5"}, {"-0.5", "1"}, {"-1", "0.5"}, {"-0.3", "0.8"}},
       [](D x, D, D low, D high) { return std::min(std::max(x, low), high); }},
      {"leaky_relu",
       "F.leaky_relu(x, $1)",
       "tl.where(x > 0, x, $1 * x)",
       {"tl.where(x > 0, $1 * x, x)", "tl.maximum(x, -$1 * x)"},
       {{"0.1"}, {"0.2"}, {"0.3"}, {"0.4"}},
       [](D x, D, D c, D) { return x > 0 ? x : c * x; }},
  };
}

using Row = std::vector<double>;

double Sum(const Row& x) {
  double sum = 0;
  for (double v : x) sum += v;
  return sum;
}

double Mean(const Row& x) { return Sum(x) / x.size(); }

double Variance(const Row& x) {
  const double mean = Mean(x);
  double sum = 0;
  for (double v : x) sum += (v - mean) * (v - mean);
  return sum / (x.size() - 1);
}

double LogSumExp(const Row& x) {
  double sum = 0;
  for (double v : x) sum += std::exp(v);
  return std::log(sum);
}

double Norm(const Row& x) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return std::sqrt(sum);
}

// x = (x - shift) / divisor
void Affine(double shift, double divisor, Row* x) {
  for (double& v : *x) v = (v - shift) / divisor;
}

void Exponentiate(Row* x) {
  for (double& v : *x) v = std::exp(v);
}

constexpr char kLowest[] = "float(\"-inf\")";
constexpr char kHighest[] = "float(\"inf\")";

std::vector<Core> MakeReductions() {
  constexpr CoreKind kind = CoreKind::kReduction;
  return {
      {"sum",
       kind,
       "torch.sum(x, dim=1)",
       "x = tl.sum(x, axis=0)",
       "x = tl.sum(x, axis=0) / N",
       "0",
       {},
       8,
       [](const Row& x, double) { return Sum(x); }},
      {"mean",
       kind,
       "torch.mean(x, dim=1)",
       "x = tl.sum(x, axis=0) / N",
       "x = tl.sum(x, axis=0)",
       "0",
       {},
       1,
       [](const Row& x, double) { return Mean(x); }},
      {"amax",
       kind,
       "torch.amax(x, dim=1)",
       "x = tl.max(x, axis=0)",
       "x = tl.sum(x, axis=0)",
       kLowest,
       {},
       1.5,
       [](const Row& x, double) { return *std::max_element(x.begin(), x.end()); }},
      {"amin",
       kind,
       "torch.amin(x, dim=1)",
       "x = tl.min(x, axis=0)",
       "x = tl.max(x, axis=0)",
       kHighest,
       {},
       1.5,
       [](const Row& x, double) { return *std::min_element(x.begin(), x.end()); }},
      {"logsumexp",
       kind,
       "torch.logsumexp(x, dim=1)",
       "m = tl.max(x, axis=0)\nx = m + tl.log(tl.sum(tl.exp(x - m), axis=0))",
       "m = tl.max(x, axis=0)\nx = tl.log(tl.sum(tl.exp(x - m), axis=0))",
       kLowest,
       {},
       2,
       [](const Row& x, double) { return LogSumExp(x); }},
      {"norm",
       kind,
       "torch.norm(x, dim=1)",
       "x = tl.sqrt(tl.sum(x * x, axis=0))",
       "x = tl.sum(x * x, axis=0)",
       "0",
       {},
       3,
       [](const Row& x, double) { return Norm(x); }},
      {"var",
       kind,
       "torch.var(x, dim=1)",
       "m = tl.sum(x, axis=0) / N\nx = tl.where(mask, x - m, 0)\n"
       "x = tl.sum(x * x, axis=0) / (N - 1)",
       "m = tl.sum(x, axis=0) / N\nx = tl.where(mask, x - m, 0)\nx = tl.sum(x * x, axis=0)",
       "0",
       {},
       1,
       [](const Row& x, double) { return Variance(x); }},
      {"std",
       kind,
       "torch.std(x, dim=1)",
       "m = tl.sum(x, axis=0) / N\nx = tl.where(mask, x - m, 0)\n"
       "x = tl.sqrt(tl.sum(x * x, axis=0) / (N - 1))",
       "m = tl.sum(x, axis=0) / N\nx = tl.where(mask, x - m, 0)\n"
       "x = tl.sum(x * x, axis=0) / (N - 1)",
       "0",
       {},
       1,
       [](const Row& x, double) { return std::sqrt(Variance(x)); }},
  };
}

std::vector<Core> MakeNormalizations() {
  constexpr CoreKind kind = CoreKind::kNormalization;
  return {
      {"softmax",
       kind,
       "torch.softmax(x, dim=1)",
       "x = tl.exp(x - tl.max(x, axis=0))\nx = x / tl.sum(x, axis=0)",
       "x = tl.exp(x - tl.max(x, axis=0))",
       kLowest,
       {},
       1,
       nullptr,
       [](Row* x) {
         Affine(*std::max_element(x->begin(), x->end()), 1, x);
         Exponentiate(x);
         Affine(0, Sum(*x), x);
       }},
      {"log_softmax",
       kind,
       "torch.log_softmax(x, dim=1)",
       "x = x - tl.max(x, axis=0)\nx = x - tl.log(tl.sum(tl.exp(x), axis=0))",
       "x = x - tl.max(x, axis=0)\nx = x - tl.sum(tl.exp(x), axis=0)",
       kLowest,
       {},
       1,
       nullptr,
       [](Row* x) { Affine(LogSumExp(*x), 1, x); }},
      {"layer_norm",
       kind,
       "F.layer_norm(x, x.shape[1:])",
       "m = tl.sum(x, axis=0) / N\nx = tl.where(mask, x - m, 0)\n"
       "x = x / tl.sqrt(tl.sum(x * x, axis=0) / N + 1e-5)",
       "m = tl.sum(x, axis=0) / N\nx = tl.where(mask, x - m, 0)\n"
       "x = x / tl.sqrt(tl.sum(x * x, axis=0) + 1e-5)",
       "0",
       {},
       1,
       nullptr,
       [](Row* x) { Affine(Mean(*x), std::sqrt(Variance(*x) + 1e-5), x); }},
      {"rms_norm",
       kind,
       "x * torch.rsqrt(torch.mean(x * x, dim=1, keepdim=True) + 1e-5)",
       "x = x / tl.sqrt(tl.sum(x * x, axis=0) / N + 1e-5)",
       "x = x / tl.sqrt(tl.sum(x * x, axis=0) + 1e-5)",
       "0",
       {},
       1,
       nullptr,
       [](Row* x) { Affine(0, std::sqrt(Norm(*x) * Norm(*x) / x->size() + 1e-5), x); }},
      {"normalize",
       kind,
       "F.normalize(x, dim=1)",
       "x = x / tl.sqrt(tl.sum(x * x, axis=0))",
       "x = x / tl.sum(x * x, axis=0)",
       "0",
       {},
       1,
       nullptr,
       [](Row* x) { Affine(0, Norm(*x), x); }},
  };
}

std::vector<Core> MakeMatmuls() {
  constexpr CoreKind kind = CoreKind::kMatmul;
  return {
      {"matmul", kind, "x @ y", "", "", "", {}},
      {"matmul_yt", kind, "x @ y.T", "", "", "", {}},
      {"matmul_xt", kind, "x.T @ y", "", "", "", {}},
  };
}

// $R in the reference stands for the choice between mean and sum.
std::vector<Core> MakeLosses() {
  constexpr CoreKind kind = CoreKind::kLoss;
  const std::vector<std::vector<std::string>> widths = {{"0.5", "0.25"}, {"1", "0.5"}, {"2", "1"}};
  const std::vector<Core> means = {
      {"mse",
       kind,
       "F.mse_loss(x, y$R)",
       "x = (x - y) * (x - y)",
       "x = x * x - y * y",
       "0",
       {},
       1,
       [](const Row& x, double) { return (x[0] - x[1]) * (x[0] - x[1]); }},
      {"l1",
       kind,
       "F.l1_loss(x, y$R)",
       "x = tl.abs(x - y)",
       "x = x - y",
       "0",
       {},
       1,
       [](const Row& x, double) { return std::abs(x[0] - x[1]); }},
      {"huber", kind, "F.huber_loss(x, y$R, delta=$1)",
       "d = tl.abs(x - y)\nx = tl.where(d < $1, 0.5 * d * d, $1 * (d - $2))",
       "d = tl.abs(x - y)\nx = tl.where(d < $1, d * d, d)", "0", widths, 1,
       [](const Row& x, double c) {
         const double d = std::abs(x[0] - x[1]);
         return d < c ? 0.5 * d * d : c * (d - 0.5 * c);
       }},
      {"smooth_l1", kind, "F.smooth_l1_loss(x, y$R, beta=$1)",
       "d = tl.abs(x - y)\nx = tl.where(d < $1, 0.5 * d * d / $1, d - $2)",
       "d = tl.abs(x - y)\nx = tl.where(d < $1, d * d / $1, d + $2)", "0", widths, 1,
       [](const Row& x, double c) {
         const double d = std::abs(x[0] - x[1]);
         return d < c ? 0.5 * d * d / c : d - 0.5 * c;
       }},
      {"soft_margin",
       kind,
       "F.soft_margin_loss(x, y$R)",
       "x = tl.log(1 + tl.exp(-x * y))",
       "x = tl.log(1 + tl.exp(x * y))",
       "0",
       {},
       1,
       [](const Row& x, double) { return std::log1p(std::exp(-x[0] * x[1])); }},
  };
  std::vector<Core> losses;
  for (const Core& mean : means) {
    losses.push_back(mean);
    losses.back().reference = absl::StrReplaceAll(mean.reference, {{"$R", ""}});
    losses.push_back(mean);
    losses.back().name += "_sum";
    losses.back().sum = true;
    losses.back().reference = absl::StrReplaceAll(mean.reference, {{"$R", ", reduction=\"sum\""}});
  }
  return losses;
}

template <typename T>
void Append(std::vector<T> more, std::vector<T>* all) {
  for (T& item : more) all->push_back(std::move(item));
}

}  // namespace

const Elementwise& ScaleOperator() {
  static const Elementwise* const scale =
      new Elementwise{"scale",
                      "x * $1",
                      "x * $1",
                      {"x + $1"},
                      {{"64"}, {"128"}, {"256"}},
                      [](double x, double, double c, double) { return x * c; }};
  return *scale;
}

const std::vector<Elementwise>& ElementwiseOperators() {
  static const std::vector<Elementwise>* const all = [] {
    auto* list = new std::vector<Elementwise>(MakeEasy());
    Append(MakeHard(), list);
    return list;
  }();
  return *all;
}

const std::vector<Core>& CoreOperators() {
  static const std::vector<Core>* const all = [] {
    auto* list = new std::vector<Core>(MakeReductions());
    Append(MakeNormalizations(), list);
    Append(MakeMatmuls(), list);
    Append(MakeLosses(), list);
    return list;
  }();
  return *all;
}

std::string WithConstants(const std::string& text, const std::vector<std::string>& constants) {
  std::string out = text;
  for (size_t i = 0; i < constants.size(); ++i) {
    out = absl::StrReplaceAll(out, {{"$" + std::to_string(i + 1), constants[i]}});
  }
  return out;
}

}  // namespace tritonrl
