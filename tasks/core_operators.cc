#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "tasks/operators.h"

namespace tritonrl {
namespace {

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

// In the reference, $R is the placeholder of the argument that selects sum instead of mean.
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

}  // namespace

const std::vector<Core>& CoreOperators() {
  static const std::vector<Core>* const all = [] {
    auto* list = new std::vector<Core>();
    for (const std::vector<Core>& part :
         {MakeReductions(), MakeNormalizations(), MakeMatmuls(), MakeLosses()}) {
      list->insert(list->end(), part.begin(), part.end());
    }
    return list;
  }();
  return *all;
}

}  // namespace tritonrl
