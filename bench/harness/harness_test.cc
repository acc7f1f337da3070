#include "bench/harness/harness.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"

namespace tritonrl {
namespace {

using testing::TempDir;

// A bench with two settings, of which one has a peer, a bound and three rounds.
Bench Filled() {
  Bench bench("demo", {.repeats = 3});
  bench.set_subject("engine, small");
  bench.set_peer_name("transformers \"generate\"");
  bench.Add("8 requests", {{"rate", 12345.6, "tokens/s", 987.65, 20000, {12000, 12345.6, 12500}},
                           {"step", 1.23456, "ms"}});
  bench.Add("1 request", {{"share", 0.000512, ""}});
  return bench;
}

TEST(HarnessTest, TheTable) {
  Bench bench = Filled();
  EXPECT_EQ(bench.TakeTable(),
            "engine, small\n"
            "setting     metric     value  unit       peer  bound  spread\n"
            "8 requests  rate       12346  tokens/s  987.6  20000  12000 to 12500\n"
            "            step       1.235  ms\n"
            "1 request   share   0.000512\n"
            "peer: transformers \"generate\"\n");
  EXPECT_EQ(bench.TakeTable(), "") << "each figure is printed once";
  bench.Add("later", {{"time", 2, "s"}});
  bench.Add("later", {{"time", 3, "s"}});
  bench.set_subject("other");
  bench.Add("later", {{"runs", 4}});
  EXPECT_EQ(bench.TakeTable(),
            "engine, small\n"
            "setting  metric  value  unit\n"
            "later    time        2  s\n"
            "         time        3  s\n"
            "other\n"
            "setting  metric  value\n"
            "later    runs        4\n");
  bench.Mute();
  bench.Add("muted", {{"time", 2, "s"}});
  EXPECT_EQ(bench.TakeTable(), "");
}

TEST(HarnessTest, CsvLinesHaveTheColumnsOfResults) {
  const RunInfo info = {"2 CPU cores", "abcdef0", "2026-11-25", "./run demo --lengths=1,2"};
  const std::string how = ",2 CPU cores,abcdef0,2026-11-25,\"./run demo --lengths=1,2\",no\n";
  EXPECT_EQ(Filled().CsvLines("engine", 7, info),
            absl::StrCat("engine-007,\"engine, small\",8 requests,rate,12346,tokens/s,"
                         "\"transformers \"\"generate\"\"\",987.6,20000 tokens/s",
                         how, "engine-008,\"engine, small\",8 requests,step,1.235,ms,,,", how,
                         "engine-009,\"engine, small\",1 request,share,0.000512,,,,", how));
}

TEST(HarnessTest, CsvFilesGrow) {
  const std::string path = JoinPath(TempDir(), "speed.csv");
  ASSERT_TRUE(Filled().AppendCsv(path, {}, /*write=*/false).ok());
  EXPECT_FALSE(FileExists(path));
  ASSERT_TRUE(Filled().AppendCsv(path, {}).ok());
  ASSERT_TRUE(Filled().AppendCsv(path, {}).ok());
  const std::string text = ReadFile(path).value();
  EXPECT_TRUE(absl::StartsWith(text, "id,subject,setting,")) << text;
  EXPECT_TRUE(absl::StrContains(text, "\nspeed-001,")) << text;
  EXPECT_TRUE(absl::StrContains(text, "\nspeed-006,")) << text;
  ASSERT_TRUE(WriteFileAtomic(path, "name,value\n").ok());
  const absl::Status refused = Filled().AppendCsv(path, {});
  EXPECT_TRUE(absl::StrContains(refused.message(), "must begin with the line id,")) << refused;
  EXPECT_EQ(ReadFile(path).value(), "name,value\n");
}

TEST(HarnessTest, RoundsInTurns) {
  const Bench bench("demo", {.warmup = 2, .repeats = 3});
  std::string order;
  const auto run = [&order](char name) {
    return [&order, name](bool measured) -> absl::StatusOr<double> {
      order += measured ? static_cast<char>(name - 'a' + 'A') : name;
      return order.size();
    };
  };
  const auto values = bench.Measure({run('a'), run('b')});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(order, "aabbABABAB");
  EXPECT_EQ(*values, (std::vector<std::vector<double>>{{5, 7, 9}, {6, 8, 10}}));
  const auto failed =
      bench.Measure({[](bool) -> absl::StatusOr<double> { return absl::InternalError("broken"); }});
  EXPECT_EQ(failed.status().message(), "broken");
}

PeerCommand Python(const std::string& code) { return {.launcher = {"-c", code}}; }

TEST(HarnessTest, ThePeersFigures) {
  PeerCommand command = Python(
      "import json, os, sys\n"
      "print('loading')\n"
      "print(json.dumps({'seconds': 2.5, 'input': sys.stdin.read(), 'env': os.environ['KEY']}))\n"
      "print('3')\n"
      "print('{\"seconds\": 4}')\n");
  command.input = "job";
  command.env = {{"KEY", "value"}};
  const auto lines = RunPeer(command);
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ(lines->front()["input"], "job");
  EXPECT_EQ(lines->front()["env"], "value");
  EXPECT_EQ(PeerValue(lines->back(), "seconds", 10), 40);
  EXPECT_EQ(PeerValue(lines->back(), "watts"), std::nullopt);
  EXPECT_EQ(PeerValue(nullptr, "seconds"), std::nullopt);
}

TEST(HarnessTest, APeerThatFails) {
  const absl::Status failed = RunPeer(Python("raise ValueError('out of memory')")).status();
  EXPECT_TRUE(absl::StrContains(failed.message(), "the peer failed with exit code 1")) << failed;
  EXPECT_TRUE(absl::StrContains(failed.message(), "ValueError: out of memory")) << failed;
  EXPECT_EQ(RunPeer(Python("print(12)")).status().message(), "the peer printed no figures as JSON");
  PeerCommand slow = Python("import time\ntime.sleep(100)");
  slow.timeout = absl::Milliseconds(300);
  EXPECT_EQ(RunPeer(slow).status().message(), "the peer did not finish in 300ms");
  EXPECT_TRUE(absl::IsNotFound(RunPeer({.script = "bench/no_such_peer.py"}).status()));
}

// The stderr of a bench and its exit code.
std::pair<std::string, int> RunOf(const std::vector<std::string>& flags) {
  std::vector<std::string> argv = {Runfile("bench/rollout/scheduler_bench").value()};
  argv.insert(argv.end(), flags.begin(), flags.end());
  const auto result = RunCommand(argv);
  EXPECT_TRUE(result.ok()) << result.status();
  return {result.ok() ? result->err : "", result.ok() ? result->exit_code : -1};
}

TEST(HarnessTest, WrongFlags) {
  EXPECT_EQ(RunOf({"--device=cpu"}),
            std::pair(std::string("scheduler_bench: this bench has no --device; see --help\n"), 2));
  EXPECT_EQ(RunOf({"--peer=true"}).second, 2);
  EXPECT_EQ(RunOf({"--repeats=2"}).second, 2);
  EXPECT_EQ(RunOf({"256x1024"}).second, 2);
  EXPECT_EQ(RunOf({"--no_such_flag=1"}).second, 1);
  const auto [error, code] = RunOf({"--requests=3", "--group=2"});
  EXPECT_EQ(code, 1);
  EXPECT_EQ(error, "scheduler_bench: --requests must be a multiple of --group\n");
}

TEST(HarnessTest, ARunWritesItsCsv) {
  const std::string path = JoinPath(TempDir(), "scheduler.csv");
  ASSERT_EQ(RunOf({"--requests=8", "--prompt=64", "--output=32", "--csv=" + path}).second, 0);
  const std::string text = ReadFile(path).value();
  EXPECT_TRUE(absl::StrContains(text, "./run scheduler_bench --requests=8 --prompt=64 --output=32"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "CPU cores")) << text;
  ASSERT_TRUE(WriteFileAtomic(path, "x\n").ok());
  EXPECT_EQ(RunOf({"--csv=" + path}).second, 1);
}

}  // namespace
}  // namespace tritonrl
