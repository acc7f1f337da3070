// Tasks in the forms that published data sets have: honest candidates of them are correct, and
// wrong ones are not.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "exec/backend/backend_factory.h"
#include "gtest/gtest.h"
#include "verify/pipeline/verifier.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

constexpr char kImports[] = "import torch\nimport torch.nn as nn\n";
constexpr char kKernelImports[] = "import triton\nimport triton.language as tl\n\n";

constexpr char kScaleShift[] = R"py(
class Model(nn.Module):
    def __init__(self, scale, shift=0.5):
        super().__init__()
        self.scale = scale
        self.shift = shift

    def forward(self, x):
        return torch.relu(x * self.scale + self.shift)


def get_inputs():
    return [torch.rand([4, 4, 4, 4]) - 0.5]


def get_init_inputs():
    return [[], {"scale": 4}]
)py";

constexpr char kScaleShiftKernel[] = R"py(
@triton.jit
def scale_shift(x_ptr, out_ptr, n, scale, shift, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    tl.store(out_ptr + offs, tl.maximum(x * scale + shift, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, scale, shift=0.5):
        super().__init__()
        self.scale = scale
        self.shift = shift

    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        scale_shift[(triton.cdiv(n, 128),)](x, out, n, float(self.scale), float(self.shift), BLOCK=128)
        return out
)py";

constexpr char kRowMean[] = R"py(
class RowMean(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.k = cfg.K

    def forward(self, x):
        return x.mean(dim=1) * self.k


def get_inputs():
    return [torch.rand([4, 4, 4, 4])]


def get_init_inputs():
    return [[], {"cfg": _mock_config(K=4)}]
)py";

constexpr char kRowMeanKernel[] = R"py(
@triton.jit
def row_mean(x_ptr, out_ptr, scale, ROWS: tl.constexpr, INNER: tl.constexpr):
    batch = tl.program_id(0)
    inner = tl.arange(0, INNER)
    total = tl.zeros([INNER], dtype=tl.float32)
    for row in range(ROWS):
        total += tl.load(x_ptr + (batch * ROWS + row) * INNER + inner)
    tl.store(out_ptr + batch * INNER + inner, total * scale)


class ModelNew(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.k = cfg.K

    def forward(self, x):
        out = torch.empty((x.shape[0], x.shape[2], x.shape[3]), device=x.device, dtype=x.dtype)
        row_mean[(x.shape[0],)](x, out, self.k / x.shape[1], ROWS=x.shape[1], INNER=x.shape[2] * x.shape[3])
        return out
)py";

constexpr char kScalars[] = R"py(
class Model(nn.Module):
    def forward(self, x, alpha, flip, mode, bias=None):
        y = x * alpha
        if flip:
            y = -y
        if mode == "relu":
            y = torch.relu(y)
        if bias is not None:
            y = y + bias
        return y


def get_inputs():
    return [torch.randn(32, 100), 3, True, "relu", None]


def get_init_inputs():
    return []
)py";

constexpr char kScalarsKernel[] = R"py(
@triton.jit
def scaled(x_ptr, out_ptr, n, alpha, FLIP: tl.constexpr, RELU: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    y = tl.load(x_ptr + offs, mask=mask, other=0.0) * alpha
    if FLIP:
        y = -y
    if RELU:
        y = tl.maximum(y, 0.0)
    tl.store(out_ptr + offs, y, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, alpha, flip, mode, bias=None):
        out = torch.empty_like(x)
        n = x.numel()
        scaled[(triton.cdiv(n, 256),)](x, out, n, alpha, flip, mode == "relu", BLOCK=256)
        return out
)py";

class TaskFormsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    BackendOptions options;
    options.kind = BackendKind::kNative;
    options.workers = 1;
    auto backend = MakeBackend(options);
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = backend->release();
  }
  static void TearDownTestSuite() {
    delete backend_;
    backend_ = nullptr;
  }
  void SetUp() override { ASSERT_NE(backend_, nullptr); }

  static Verdict Run(const std::string& reference, const std::string& kernel,
                     const std::string& head = "") {
    VerifierOptions options;
    options.parallel = 1;
    options.max_attempts = 1;
    Verifier verifier(options, backend_, nullptr);
    return verifier
        .Submit({.task = {.id = "the task", .source = absl::StrCat(head, kImports, reference)},
                 .code = absl::StrCat(kImports, kKernelImports, kernel)})
        .get();
  }
  static void ExpectCorrect(const std::string& reference, const std::string& kernel,
                            const std::string& head = "") {
    const Verdict verdict = Run(reference, kernel, head);
    EXPECT_TRUE(IsCorrect(verdict)) << verdict.outcome().ShortDebugString();
  }
  static void ExpectMismatch(const std::string& reference, const std::string& kernel,
                             const std::string& head = "") {
    const Verdict verdict = Run(reference, kernel, head);
    EXPECT_EQ(verdict.outcome().reason(), Outcome::MISMATCH)
        << verdict.outcome().ShortDebugString();
  }

  static inline DeviceBackend* backend_ = nullptr;
};

TEST_F(TaskFormsTest, ConstructorArgumentsAsArgsAndKwargs) {
  ExpectCorrect(kScaleShift, kScaleShiftKernel);
  ExpectMismatch(kScaleShift, absl::StrReplaceAll(kScaleShiftKernel,
                                                  {{"self.scale = scale", "self.scale = 3"}}));
}

TEST_F(TaskFormsTest, ConstructorsWithoutArguments) {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"self, scale, shift=0.5", "self"},
      {"= scale", "= 4.0"},
      {"= shift", "= 0.5"},
      {"{\"scale\": 4}", "{}"}};
  const std::string reference = absl::StrReplaceAll(kScaleShift, changes);
  ExpectCorrect(reference, absl::StrReplaceAll(kScaleShiftKernel, changes));
}

TEST_F(TaskFormsTest, PositionalArguments) {
  ExpectCorrect(absl::StrReplaceAll(kScaleShift, {{"[[], {\"scale\": 4}]", "[4, 0.25]"}}),
                kScaleShiftKernel);
}

TEST_F(TaskFormsTest, AConfigurationAndAModelOfAnotherName) {
  const std::string helpers = "from _paritybench_helpers import _mock_config\n";
  ExpectCorrect(kRowMean, kRowMeanKernel, helpers);
  ExpectCorrect(absl::StrCat(kRowMean, "\n\nModel = RowMean\n"), kRowMeanKernel, helpers);
  ExpectMismatch(kRowMean, absl::StrReplaceAll(kRowMeanKernel, {{"= cfg.K", "= cfg.K + 1"}}),
                 helpers);
}

TEST_F(TaskFormsTest, ScalarsTextsAndNoneAmongTheInputs) {
  ExpectCorrect(kScalars, kScalarsKernel);
  ExpectMismatch(kScalars,
                 absl::StrReplaceAll(kScalarsKernel, {{"mode == \"relu\"", "mode == \"gelu\""}}));
}

}  // namespace
}  // namespace tritonrl
