#include <algorithm>
#include <cmath>

#include "absl/strings/str_replace.h"
#include "tasks/operators.h"

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
      // 0.7071068 is 1 / sqrt(2) to a third of a unit in the last place of a float.
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
    for (const Elementwise& op : MakeHard()) list->push_back(op);
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
