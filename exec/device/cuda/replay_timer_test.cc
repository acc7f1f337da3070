// Times of replayed calls on a GPU.
#include "exec/device/cuda/replay_timer.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "exec/device/cuda/testing/cuda_fixture.h"
#include "exec/device/testing/scripted_channel.h"
#include "exec/ttir/testing/corpus.h"

namespace tritonrl::device {
namespace {

constexpr int64_t kCount = 4 << 20;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

class ReplayTimerTest : public CudaFixture {
 protected:
  // A session of one call with one input, whose forward is these messages: storage 1 is the input.
  void Record(const std::vector<std::string>& forward) {
    device_.reset();
    std::vector<std::string> texts = {R"({"do":"begin"})", R"({"do":"constructed","state":[]})"};
    texts.insert(texts.end(), forward.begin(), forward.end());
    ScriptedChannel channel(Script(texts));
    SessionOptions options;
    options.calls.resize(1);
    options.calls[0].args.kind = Value::Kind::kTuple;
    options.calls[0].args.items.push_back(Value::Host(input_));
    session_ = std::make_unique<Session>(options, Gpu().arena.get(), Gpu().compiler.get());
    const auto result = session_->Run(channel);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->outputs.size(), 1) << channel.replies().back().header;
    replay_.inputs = {input_};
  }
  void TearDown() override {
    session_.reset();
    CudaFixture::TearDown();
  }
  std::unique_ptr<ReplayTimer> Prepare() {
    auto timer = ReplayTimer::Prepare(session_.get(), Gpu().context.get(), replay_);
    EXPECT_TRUE(timer.ok()) << timer.status();
    return timer.ok() ? *std::move(timer) : nullptr;
  }

  at::Tensor input_ = at::randn({kCount});
  std::unique_ptr<Session> session_;
  ReplayOptions replay_;
};

TEST_F(ReplayTimerTest, AGraphOfLaunchesIsTimed) {
  const std::string x = FloatTensor(1, kCount);
  const std::string y = FloatTensor(2, kCount);
  Record({EmptyText(kCount), KernelMessage(ttir::CorpusTextOf("vector_add.ttir")),
          LaunchMessage(0, absl::StrCat(kCount / 1024, ",1,1"),
                        absl::StrCat(x, ",", x, ",", y, ",", kCount)),
          absl::StrCat(R"({"do":"output","value":)", y, "}")});
  const auto timer = Prepare();
  ASSERT_NE(timer, nullptr);
  EXPECT_EQ(timer->not_a_graph(), "");
  const auto times = timer->Time(50);
  ASSERT_TRUE(times.ok()) << times.status();
  const auto direct = timer->MeanWithLaunches(10);
  ASSERT_TRUE(direct.ok());
  const double median = Median(*times);
  const auto [least, most] = std::minmax_element(times->begin(), times->end());
  printf("vector_add of %ld: median %.5f ms (%.5f to %.5f), with launches %.5f ms\n", kCount,
         median, *least, *most, *direct);
  // 32 MiB (one input read from the cache once) at 1 to 6 TB/s.
  EXPECT_GT(median, 0.005);
  EXPECT_LT(median, 0.2);
  const auto output = timer->Output();
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_TRUE(output->host.equal(input_.mul(2)));
}

TEST_F(ReplayTimerTest, WhatACallChangesIsPutBack) {
  const std::string x = FloatTensor(1, kCount);
  Record({KernelMessage(ttir::CorpusTextOf("vector_add.ttir")),
          LaunchMessage(0, absl::StrCat(kCount / 1024, ",1,1"),
                        absl::StrCat(x, ",", x, ",", x, ",", kCount)),
          absl::StrCat(R"({"do":"output","value":)", x, "}")});
  const auto timer = Prepare();
  ASSERT_NE(timer, nullptr);
  ASSERT_TRUE(timer->Time(5).ok());
  EXPECT_TRUE(timer->Output()->host.equal(input_.mul(2)));
}

TEST_F(ReplayTimerTest, OperatorsAndRandomNumbersAreInTheGraphToo) {
  const std::string x = FloatTensor(1, kCount);
  const std::string y = FloatTensor(2, kCount);
  Record({EmptyText(kCount), OperatorText("uniform_", "", absl::StrCat(y, ",0.0,1.0")),
          KernelMessage(ttir::CorpusTextOf("vector_add.ttir")),
          LaunchMessage(0, absl::StrCat(kCount / 1024, ",1,1"),
                        absl::StrCat(x, ",", y, ",", y, ",", kCount)),
          OperatorText("cat", "", absl::StrCat("[", x, ",", y, "],0")),
          absl::StrCat(R"({"do":"output","value":)", FloatTensor(3, 2 * kCount), "}")});
  const auto timer = Prepare();
  ASSERT_NE(timer, nullptr);
  EXPECT_EQ(timer->not_a_graph(), "");
  const auto times = timer->Time(20);
  ASSERT_TRUE(times.ok()) << times.status();
  printf("uniform_, vector_add, cat: %.5f ms\n", Median(*times));
  const auto output = timer->Output();
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_TRUE(output->host.equal(timer->first().output.host));
}

TEST_F(ReplayTimerTest, LaunchesOfSeveralSizesHaveLittleNoise) {
  for (const int64_t count : {int64_t{1} << 16, int64_t{1} << 20, int64_t{1} << 22}) {
    const std::string x = FloatTensor(1, static_cast<int>(count));
    const std::string y = FloatTensor(2, static_cast<int>(count));
    Record({EmptyText(kCount), KernelMessage(ttir::CorpusTextOf("vector_add.ttir")),
            LaunchMessage(0, absl::StrCat(count / 1024, ",1,1"),
                          absl::StrCat(x, ",", x, ",", y, ",", count)),
            absl::StrCat(R"({"do":"output","value":)", y, "}")});
    const auto timer = Prepare();
    ASSERT_NE(timer, nullptr);
    std::vector<double> medians;
    for (int round = 0; round < 5; ++round) medians.push_back(Median(*timer->Time(100)));
    const auto [least, most] = std::minmax_element(medians.begin(), medians.end());
    printf("%8ld elements: medians of 100 from %.5f to %.5f ms (%.2f %%)\n", count, *least, *most,
           100 * (*most / *least - 1));
    EXPECT_LT(*most / *least, 1.2);
  }
}

}  // namespace
}  // namespace tritonrl::device
