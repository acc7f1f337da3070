// What a compiler can do that a kernel has taken over, and that compilation works nevertheless.
#include "exec/executor/confined_compilers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "exec/executor/confinement.h"
#include "exec/testing/process_tree.h"
#include "exec/ttir/testing/corpus.h"

namespace tritonrl::executor {
namespace {

using Json = nlohmann::json;
using device::CompileProcess;
using device::CompileWorkers;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Not;

constexpr int kArch = 90;

std::unique_ptr<CompileWorkers> Confined(SandboxKind sandbox = SandboxKind::kBubblewrap) {
  ConfinedCompilersOptions options;
  options.sandbox = sandbox;
  auto processes = StartConfinedCompilers(options);
  EXPECT_TRUE(processes.ok()) << processes.status();
  if (!processes.ok()) return nullptr;
  return *CompileWorkers::CreateOver({}, *std::move(processes));
}

std::unique_ptr<CompileProcess> Hostile(SandboxKind sandbox = SandboxKind::kBubblewrap) {
  ConfinedCompilersOptions options;
  options.sandbox = sandbox;
  options.runner = "hostile_compiler";
  options.folder = DirName(*Runfile("exec/executor/testing/hostile_compiler.py"));
  auto processes = StartConfinedCompilers(options);
  EXPECT_TRUE(processes.ok()) << processes.status();
  return processes.ok() ? std::move(processes->at(0)) : nullptr;
}

absl::StatusOr<std::string> Ask(CompileProcess& process, const std::string& attempt,
                                const Json& with = nullptr,
                                absl::Duration limit = absl::Seconds(30)) {
  return process.Ask(Json{{"try", attempt}, {"with", with}}.dump(), absl::Now() + limit);
}

// What came of an attempt.
Json Try(CompileProcess& process, const std::string& attempt, const Json& with = nullptr) {
  const auto answer = Ask(process, attempt, with);
  EXPECT_TRUE(answer.ok()) << attempt << ": " << answer.status();
  if (!answer.ok()) return Json::object();
  return Json::parse(*answer).at("said");
}

void ExpectAllToFail(const Json& outcomes) {
  EXPECT_FALSE(outcomes.empty());
  for (const Json& outcome : outcomes) {
    EXPECT_NE(outcome.get<std::string>(), "done") << outcomes.dump();
  }
}

// Whether all end in time; one that nobody has waited for has no command line any more.
bool EndWithin(const std::set<pid_t>& processes, absl::Duration limit) {
  for (const absl::Time end = absl::Now() + limit; absl::Now() < end;) {
    bool ended = true;
    for (const pid_t pid : processes) {
      const auto line = ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
      ended = ended && (!line.ok() || line->empty());
    }
    if (ended) return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

// A home with the key of an installation, which everybody on this host can read.
class HomeWithKey {
 public:
  HomeWithKey() {
    char folder[] = "/tmp/compilers_home_XXXXXX";
    home_ = mkdtemp(folder);
    chmod(home_.c_str(), 0755);
    const std::string state = JoinPath(home_, ".local/state/tritonrl");
    EXPECT_TRUE(CreateDirectories(state).ok());
    key_ = JoinPath(state, "seed_key");
    EXPECT_TRUE(WriteFileAtomic(key_, std::string(32, 'k')).ok());
    chmod(key_.c_str(), 0644);
  }
  ~HomeWithKey() { EXPECT_TRUE(RemoveTree(home_).ok()); }
  const std::string& folder() const { return home_; }
  const std::string& key() const { return key_; }

 private:
  std::string home_;
  std::string key_;
};

TEST(ConfinedCompilersTest, TheSameMachineCodeAsWithoutConfinement) {
  const auto plain = *CompileWorkers::Create({});
  const auto confined = Confined();
  for (const char* const name : {"softmax.ttir", "matmul.ttir", "host_descriptors.ttir"}) {
    const std::string text = ttir::CorpusTextOf(name);
    const auto expected = plain->Compile(text, {.num_warps = 8}, kArch);
    ASSERT_TRUE(expected.ok()) << name << ": " << expected.status();
    const auto kernel = confined->Compile(text, {.num_warps = 8}, kArch);
    ASSERT_TRUE(kernel.ok()) << name << ": " << kernel.status();
    EXPECT_TRUE(kernel->cubin == expected->cubin) << name;
    EXPECT_EQ(kernel->shared_bytes, expected->shared_bytes);
    EXPECT_EQ(kernel->descriptors.size(), expected->descriptors.size());
  }
  EXPECT_EQ(*confined->Flatten(ttir::CorpusTextOf("host_descriptors.ttir")),
            *plain->Flatten(ttir::CorpusTextOf("host_descriptors.ttir")));
}

TEST(ConfinedCompilersTest, WhatTritonRefusesIsAnError) {
  const auto workers = Confined();
  const auto kernel = workers->Compile("module {", {}, kArch);
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInvalidArgument) << kernel.status();
  EXPECT_TRUE(workers->Compile(ttir::CorpusTextOf("vector_add.ttir"), {}, kArch).ok());
}

TEST(ConfinedCompilersTest, WithoutBubblewrapOnlyByName) {
  const std::string path = getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  const absl::Status refused = StartConfinedCompilers({}).status();
  const auto workers = Confined(SandboxKind::kNone);
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("sandbox \"none\""));
  EXPECT_TRUE(workers->Compile(ttir::CorpusTextOf("vector_add.ttir"), {}, kArch).ok());
}

TEST(ConfinedCompilersTest, FilesOfTheHostAreOutOfReach) {
  const HomeWithKey home;
  const auto process = Hostile();
  ExpectAllToFail(
      Try(*process, "read",
          Json::array({home.key(), "/proc/self/root" + home.key(), "/proc/1/root" + home.key(),
                       "/proc/1/cwd/.." + home.key(), "/tmp/../../.." + home.key()})));
  ExpectAllToFail(Try(*process, "listing", Json::array({home.folder(), "/root", "/home", "/var"})));
  ExpectAllToFail(
      Try(*process, "write", Json::array({"/", "/usr", "/usr/bin", "/dev", "/opt", "/proc"})));
  ExpectAllToFail(Try(*process, "packages"));
  EXPECT_EQ(Try(*process, "write", Json::array({"/tmp"})).value("/tmp", ""), "done");
  EXPECT_FALSE(FileExists("/tmp/hostile"));
  // Without a sandbox the key is there: the attempt is sound.
  const auto open = Hostile(SandboxKind::kNone);
  EXPECT_EQ(Try(*open, "read", Json::array({home.key()})).value(home.key(), ""), "done");
}

TEST(ConfinedCompilersTest, NothingOfTheHostIsInherited) {
  setenv("TRITONRL_SEED_KEY", "secret", 1);
  const auto process = Hostile();
  unsetenv("TRITONRL_SEED_KEY");
  const Json environment = Try(*process, "environment");
  EXPECT_FALSE(environment.contains("TRITONRL_SEED_KEY")) << environment.dump();
  EXPECT_EQ(environment.value("HOME", ""), "/tmp");
  // Input and output, the channel of the result, and the answer.
  EXPECT_THAT(Try(*process, "descriptors").get<std::vector<int>>(), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(Try(*process, "devices").get<std::vector<std::string>>(),
              AllOf(Contains("null"), Each(Not(HasSubstr("nvidia")))));
}

TEST(ConfinedCompilersTest, NoSocketsAndNoOtherProcesses) {
  const auto process = Hostile();
  ExpectAllToFail(Try(*process, "connect"));
  // The first one of its namespace, which sleeps, and itself.
  EXPECT_EQ(Try(*process, "processes").size(), 2);
  ExpectAllToFail(Try(*process, "trace"));
  (void)Try(*process, "kill_all");
  EXPECT_EQ(Try(*process, "say", "on").get<std::string>(), "on");
}

TEST(ConfinedCompilersTest, ItHasLimitsAndNoRights) {
  const auto process = Hostile();
  const Json status = Try(*process, "status");
  EXPECT_EQ(status.value("Seccomp", ""), "2");
  EXPECT_EQ(status.value("NoNewPrivs", ""), "1");
  for (const char* const set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    EXPECT_EQ(status.value(set, ""), "0000000000000000") << set;
  }
  const auto limits = Try(*process, "limits").get<std::map<std::string, int64_t>>();
  EXPECT_THAT(limits.at("core"), AllOf(Ge(0), Le(1)));
  EXPECT_THAT(limits.at("cpu"), AllOf(Ge(1), Le(31)));
  EXPECT_EQ(limits.at("file"), 256 << 20);
  EXPECT_THAT(limits.at("data"), AllOf(Ge(int64_t{16} << 30), Le(int64_t{20} << 30)));
  EXPECT_THAT(limits.at("processes"), AllOf(Ge(1), Le(32)));
}

TEST(ConfinedCompilersTest, NothingOfARequestIsThereForTheNext) {
  const auto process = Hostile();
  const std::set<pid_t> before = Descendants(getpid());
  EXPECT_EQ(Try(*process, "leave").get<std::string>(), "left");
  EXPECT_EQ(Try(*process, "look").dump(), "[false,false,0,2]");
  EXPECT_EQ(Descendants(getpid()), before);
  // Nor the end of a longer answer.
  EXPECT_EQ(Try(*process, "say", std::string(100'000, 'x')).get<std::string>().size(), 100'000);
  EXPECT_EQ(Try(*process, "say", "short").get<std::string>(), "short");
  EXPECT_EQ(*Ask(*process, "silent"), "");
}

TEST(ConfinedCompilersTest, WhatEndsARequestEndsNoOther) {
  const auto process = Hostile();
  const auto expect = [&](const std::string& attempt, absl::StatusCode code, const char* text,
                          absl::Duration limit) {
    const absl::Status status = Ask(*process, attempt, nullptr, limit).status();
    EXPECT_EQ(status.code(), code) << attempt << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr(text)) << attempt;
    EXPECT_TRUE(process->alive());
    EXPECT_EQ(Try(*process, "say", "on").get<std::string>(), "on") << attempt;
  };
  expect("crash", absl::StatusCode::kUnavailable, "crashed", absl::Seconds(30));
  expect("huge", absl::StatusCode::kUnavailable, "crashed", absl::Seconds(30));
  expect("wait", absl::StatusCode::kDeadlineExceeded, "too long", absl::Seconds(1));
  expect("spin", absl::StatusCode::kDeadlineExceeded, "too long", absl::Seconds(1));
}

TEST(ConfinedCompilersTest, ALostWorkerIsNoFaultOfTheKernel) {
  const auto workers = Confined();
  for (const pid_t pid : Descendants(getpid())) kill(pid, SIGKILL);
  for (int i = 0; i < 2; ++i) {
    const auto kernel = workers->Compile(ttir::CorpusTextOf("vector_add.ttir"), {}, kArch);
    EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInternal) << kernel.status();
    EXPECT_EQ(workers->running(), 0);
  }
}

// As in an executor: it compiles once it has given up its own rights, and is killed at the end.
TEST(ConfinedCompilersTest, AConfinedProcessCompilesAndItsWorkersEndWithIt) {
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  const std::string text = ttir::CorpusTextOf("vector_add.ttir");
  const pid_t child = fork();
  if (child == 0) {
    bool done = ConfineEarly(DeviceKind::kCuda).ok();
    const auto workers = Confined();
    done = done && workers != nullptr && ConfineForGood(DeviceKind::kCuda).ok();
    done = done && workers->Compile(text, {}, kArch).ok();
    done = done && workers->Compile("module {", {}, kArch).status().code() ==
                       absl::StatusCode::kInvalidArgument;
    (void)!write(report[1], done ? "y" : "n", 1);
    while (true) sleep(1);
  }
  char done = 'n';
  close(report[1]);
  EXPECT_EQ(read(report[0], &done, 1), 1);
  close(report[0]);
  EXPECT_EQ(done, 'y');
  const std::set<pid_t> workers = Descendants(child);
  EXPECT_GE(workers.size(), 2);
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(EndWithin(workers, absl::Seconds(20)));
}

}  // namespace
}  // namespace tritonrl::executor
