// Memory, operators, kernels and tags on a GPU.
#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>

#include "absl/strings/str_cat.h"
#include "exec/device/bytes.h"
#include "exec/device/cuda/testing/cuda_fixture.h"
#include "exec/device/json.h"
#include "exec/device/replay.h"
#include "exec/device/testing/scripted_channel.h"
#include "exec/device/value_parser.h"
#include "exec/ttir/testing/corpus.h"

namespace tritonrl::device {
namespace {

class CudaDeviceTest : public CudaFixture {
 protected:
  absl::Status Run(const std::string& name, const std::string& overload, const std::string& args) {
    OperatorCall call;
    call.name = name;
    call.overload = overload;
    call.args = *ParseValue(*ParseJson(absl::StrCat("[", args, "]")), "");
    call.kwargs.kind = Value::Kind::kDict;
    const auto bound = Bind(call);
    if (!bound.ok()) return bound.status();
    made_.clear();
    return device_->RunOperator(*bound, Phase::kForward, /*again=*/false, made_).status();
  }
  std::vector<TensorRef> made_;
};

TEST_F(CudaDeviceTest, FreshMemoryIsPoisonedAndHasNoTags) {
  const int x = Make(1000);
  EXPECT_TRUE(View(x).is_cuda());
  EXPECT_TRUE(View(x).isnan().all().item<bool>());
  EXPECT_EQ(Bytes(x, Tag::kUnwritten), 4000);
  device_->memory().set_poison(Poison::kPattern);
  ASSERT_TRUE(device_->Revive(x).ok());
  EXPECT_TRUE(View(x, at::kInt).eq(0x5A5A5A5A).all().item<bool>());
}

TEST_F(CudaDeviceTest, PlacesAreTheSameForEachCandidate) {
  std::vector<std::vector<char*>> places(2);
  for (auto& own : places) {
    Gpu().arena->Reset();
    device_ = std::make_unique<Device>(Gpu().arena.get(), Gpu().compiler.get(), options_);
    for (const int64_t count : {1, 1'000'000, 0, 3}) {
      own.push_back(device_->memory().Find(Make(count))->data);
    }
    device_.reset();
  }
  EXPECT_EQ(places[0], places[1]);
  EXPECT_TRUE(Gpu().arena->Contains(reinterpret_cast<uint64_t>(places[0][3])));
}

TEST_F(CudaDeviceTest, MemoryIsKeptForTheNextStorage) {
  const int x = Make(40 << 20);
  View(x).fill_(1);
  const int64_t physical = Gpu().arena->physical_bytes();
  EXPECT_GE(physical, 2 * (int64_t{160} << 20));  // its tags too
  device_.reset();
  Gpu().arena->Reset();
  device_ = std::make_unique<Device>(Gpu().arena.get(), Gpu().compiler.get(), options_);
  const int y = Make(40 << 20);
  EXPECT_TRUE(View(y).isnan().all().item<bool>());
  EXPECT_EQ(Gpu().arena->physical_bytes(), physical);
}

TEST_F(CudaDeviceTest, TheQuotaHoldsAndFreedMemoryComesBack) {
  device_.reset();
  options_.limits.max_memory_bytes = int64_t{64} << 20;
  device_ = std::make_unique<Device>(Gpu().arena.get(), Gpu().compiler.get(), options_);
  for (int i = 0; i < 20; ++i) {
    const int x = Make(10 << 20);
    View(x).fill_(i);
    device_->memory().Free(x);
  }
  EXPECT_FALSE(device_->memory().Allocate(int64_t{65} << 20, at::kByte).ok());
}

TEST_F(CudaDeviceTest, OperatorsRunOnTheGpuAndMoveTags) {
  const int x = Make(8);
  const int y = Make(8);
  const int half = Make(8, at::kHalf);
  View(x).copy_(at::arange(8));
  device_->memory().Fill(Ref(x), static_cast<uint8_t>(Tag::kInput));
  ASSERT_TRUE(Run("copy_", "", absl::StrCat(FloatTensor(y, 8), ",", FloatTensor(x, 8))).ok());
  EXPECT_TRUE(View(y).cpu().equal(at::arange(8).to(at::kFloat)));
  EXPECT_EQ(Bytes(y, Tag::kInput), 32);
  ASSERT_TRUE(
      Run("copy_", "", absl::StrCat(TensorText(half, "float16", "8", "1"), ",", FloatTensor(x, 8)))
          .ok());
  EXPECT_EQ(device_->memory().Count(Ref(half, at::kHalf)).converted, 16);
  ASSERT_TRUE(Run("fill_", "Scalar", absl::StrCat(FloatTensor(y, 4), ",0.5")).ok());
  EXPECT_EQ(Bytes(y, Tag::kConstant), 16);
  EXPECT_EQ(Bytes(y, Tag::kInput), 16);
  ASSERT_TRUE(
      Run("cat", "", absl::StrCat("[", FloatTensor(x, 8), ",", FloatTensor(y, 8), "],0")).ok());
  ASSERT_EQ(made_.size(), 1);
  const TagCounts counts = device_->memory().Count(made_[0]);
  EXPECT_EQ(counts.bytes[static_cast<int>(Tag::kInput)], 48);
  EXPECT_EQ(counts.bytes[static_cast<int>(Tag::kConstant)], 16);
  ASSERT_TRUE(Run("mul", "Tensor", absl::StrCat(FloatTensor(x, 8), ",2.5")).ok());
  EXPECT_EQ(device_->memory().View(made_[0]).cpu()[3].item<float>(), 7.5f);
}

TEST_F(CudaDeviceTest, GeneratorsDrawWhatTorchDraws) {
  const int x = Make(100);
  device_->generators().Seed(0, 42);
  ASSERT_TRUE(Run("uniform_", "", absl::StrCat(FloatTensor(x, 100), ",0.0,1.0")).ok());
  const at::Tensor drawn = View(x).cpu();
  const auto saved = device_->generators().Save();
  ASSERT_TRUE(Run("uniform_", "", absl::StrCat(FloatTensor(x, 100), ",0.0,1.0")).ok());
  const at::Tensor second = View(x).cpu();
  device_->generators().Restore(saved);
  ASSERT_TRUE(Run("uniform_", "", absl::StrCat(FloatTensor(x, 100), ",0.0,1.0")).ok());
  EXPECT_TRUE(View(x).cpu().equal(second));
  EXPECT_FALSE(drawn.equal(second));
  at::manual_seed(42);
  const at::Tensor torch = at::rand({100}, at::TensorOptions().device(at::kCUDA));
  EXPECT_TRUE(torch.cpu().equal(drawn));
}

TEST_F(CudaDeviceTest, AKernelComputesAndTagsWhatItStores) {
  const int x = Make(3000);
  const int y = Make(3000);
  const int out = Make(3000);
  View(x).copy_(at::arange(3000));
  View(y).fill_(0.5);
  TensorRef part = Ref(out);
  part.shape = {2999};
  const absl::Status status =
      Launch(Kernel("vector_add.ttir"), {3, 1, 1},
             {Argument(x), Argument(y), Value::Tensor(part), Value::Integer(2999)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(View(out).cpu().narrow(0, 0, 2999).equal(at::arange(2999).add(0.5)));
  EXPECT_EQ(Bytes(out, Tag::kKernel), 2999 * 4);
  EXPECT_EQ(Bytes(out, Tag::kUnwritten), 4);
  EXPECT_EQ(Bytes(x, Tag::kKernel), 0);
}

TEST_F(CudaDeviceTest, AWholeSessionRunsAndReplays) {
  device_.reset();
  const std::string x = FloatTensor(2, 3000);
  const std::string w = FloatTensor(1, 3000);
  const std::string y = FloatTensor(3, 3000);
  ScriptedChannel channel(Script(
      {R"({"do":"begin"})", EmptyText(3000),
       OperatorText("uniform_", "", absl::StrCat(w, ",-1.0,1.0")),
       absl::StrCat(R"({"do":"constructed","state":[["w",)", w, "]]}"), EmptyText(3000),
       KernelMessage(ttir::CorpusTextOf("vector_add.ttir")), R"({"do":"bench","begin":true})",
       LaunchMessage(0, "3,1,1", absl::StrCat(x, ",", w, ",", y, ",3000")),
       R"({"do":"bench","begin":false})",
       LaunchMessage(0, "3,1,1", absl::StrCat(x, ",", w, ",", y, ",3000")),
       absl::StrCat(R"({"do":"output","value":)", y, "}")}));
  SessionOptions options;
  options.calls.resize(1);
  const at::Tensor input = at::arange(3000).to(at::kFloat);
  options.calls[0].args.kind = Value::Kind::kTuple;
  options.calls[0].args.items.push_back(Value::Host(input));
  options.state.emplace_back("w", at::full({3000}, 2.0f));
  Session session(options, Gpu().arena.get(), Gpu().compiler.get());
  const auto result = session.Run(channel);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->outputs.size(), 1) << channel.replies().back().header;
  EXPECT_TRUE(result->outputs[0].host.equal(input.add(2)));
  EXPECT_TRUE(result->inputs_unchanged[0]);
  ASSERT_EQ(result->provenance.size(), 1);
  EXPECT_EQ(result->provenance[0].bytes[static_cast<int>(Tag::kKernel)], 12000);
  const double bench_ms = channel.reply(8)["ms"];
  EXPECT_GT(bench_ms, 0.0005);
  EXPECT_LT(bench_ms, 1);

  ReplayOptions replay;
  replay.inputs = {input.mul(3)};
  replay.poison = Poison::kPattern;
  const auto again = session.ReplayCall(replay);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->output.host.equal(input.mul(3).add(2)));
  EXPECT_EQ(again->provenance[0].bytes[static_cast<int>(Tag::kKernel)], 12000);
  replay.run.skip = [](const LaunchCommand&, int64_t) { return true; };
  const auto without = session.ReplayCall(replay);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_FALSE(without->output.host.equal(input.mul(3).add(2)));
  replay.run.skip = nullptr;
  replay.follow_copies = true;
  EXPECT_TRUE(session.ReplayCall(replay).ok());
  replay.run.count = true;
  EXPECT_EQ(session.ReplayCall(replay).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace tritonrl::device
