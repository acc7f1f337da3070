// Misbehaving programs, each with the outcome that it must have; after each one the same pool
// serves an honest job. The runner is a fake; the sandbox and the worker pool are real.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "exec/outcome/classify_outcome.h"
#include "exec/testing/pool_options.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {
namespace {

// As a candidate's process ends: without a result.
constexpr char kEnd[] = "\nimport os, sys\nsys.stdout.flush()\nos._exit(0)\n";

class MisbehaviourTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto pool = WorkerPool::Start(FakePoolOptions(1));
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
  }
  static void TearDownTestSuite() {
    pool_.reset();
    for (const int end : ends_) close(end);
  }

  void SetUp() override { ASSERT_NE(pool_, nullptr); }
  // After every test the same worker serves an honest job.
  void TearDown() override {
    if (pool_ == nullptr) return;
    EXPECT_EQ(Ask("print('honest')"), "honest");
    EXPECT_EQ(pool_->counts().workers_lost, 0);
  }

  static ExecResult RunJob(const nlohmann::json& job, JobRole role, ExecLimits limits) {
    limits = EffectiveLimits(limits, pool_->limits());
    const JobReport report =
        pool_->Run(job.dump(), limits, absl::Now() + absl::Seconds(60), {{"executor", ends_[1]}});
    return Classify(report, limits, role);
  }
  static ExecResult Run(const std::string& candidate, double wall_seconds = 5) {
    ExecLimits limits;
    limits.set_wall_seconds(wall_seconds);
    return RunJob({{"role", "runner"}, {"candidate_source", candidate + kEnd}}, JobRole::kRunner,
                  limits);
  }

  // Runs statements that come to their end and returns what they print.
  static std::string Ask(const std::string& candidate) {
    const ExecResult result = Run(candidate);
    ExpectEnd(result);
    return std::string(absl::StripSuffix(result.output(), "\n"));
  }
  static void ExpectEnd(const ExecResult& result) {
    EXPECT_EQ(result.outcome().reason(), Outcome::EXITED) << result.ShortDebugString();
    EXPECT_NE(result.outcome().message().find("exit code 0"), std::string::npos)
        << result.outcome().message();
  }

  static inline std::unique_ptr<WorkerPool> pool_;
  static inline int ends_[2] = {-1, -1};  // of the socket that a candidate's process gets
};

// Returns statements that print the exception's type if `action` fails, else "allowed".
std::string Try(const std::string& action) {
  return absl::StrCat("import os, socket, ctypes\ntry:\n  ", action,
                      "\n  print('allowed')\nexcept OSError as e:\n"
                      "  print(type(e).__name__)\n");
}

TEST_F(MisbehaviourTest, InfiniteLoopIsATimeout) {
  const ExecResult result = Run("while True: pass", 0.5);
  EXPECT_EQ(result.outcome().reason(), Outcome::TIMEOUT);
  EXPECT_EQ(result.outcome().status(), Outcome::STATUS_CANDIDATE_FAILED);
  EXPECT_EQ(result.phase(), "import");
  EXPECT_GE(result.wall_seconds(), 0.5);
}

TEST_F(MisbehaviourTest, SleepIgnoringSignalsIsATimeout) {
  const ExecResult result =
      Run("import signal, time\n"
          "for s in range(1, 32):\n"
          "  try: signal.signal(s, signal.SIG_IGN)\n"
          "  except (OSError, ValueError): pass\n"
          "time.sleep(1000)",
          0.3);
  EXPECT_EQ(result.outcome().reason(), Outcome::TIMEOUT);
}

TEST_F(MisbehaviourTest, ProcessorTimeIsLimitedToo) {
  ExecLimits limits;
  limits.set_cpu_seconds(1);
  const ExecResult result = RunJob({{"role", "runner"}, {"candidate_source", "while True: pass"}},
                                   JobRole::kRunner, limits);
  EXPECT_EQ(result.outcome().reason(), Outcome::TIMEOUT);
  EXPECT_NE(result.outcome().message().find("processor time"), std::string::npos)
      << result.outcome().message();
}

TEST_F(MisbehaviourTest, ForkBombHitsTheProcessLimit) {
  // Without the pause the kernel's memory of failed forks, which it frees with delay, may reach the
  // memory limit first.
  const ExecResult result =
      Run("import os, time\n"
          "while True:\n"
          "  try: os.fork()\n"
          "  except OSError: time.sleep(0.001)\n",
          0.5);
  EXPECT_EQ(result.outcome().reason(), Outcome::PROCESS_LIMIT) << result.ShortDebugString();
}

TEST_F(MisbehaviourTest, ForkThatRaisesHitsTheProcessLimit) {
  const ExecResult result =
      Run("import os, time\n"
          "while True:\n"
          "  if os.fork() == 0: time.sleep(1000)\n");
  EXPECT_EQ(result.outcome().reason(), Outcome::PROCESS_LIMIT) << result.ShortDebugString();
}

TEST_F(MisbehaviourTest, MemoryBombHitsTheMemoryLimit) {
  // A process that reaches its own limit is told so; one that fills the cgroup first is killed.
  const ExecResult result =
      Run("x = []\n"
          "try:\n"
          "  while True: x.append(bytearray(1 << 24))\n"
          "except MemoryError: print('MemoryError', len(x))\n");
  if (result.outcome().reason() != Outcome::OUT_OF_MEMORY) {
    ExpectEnd(result);
    EXPECT_EQ(result.output().rfind("MemoryError ", 0), 0u) << result.output();
  }
  EXPECT_FALSE(result.outcome().device_memory()) << "nobody else was short of it";
}

TEST_F(MisbehaviourTest, MemoryOfManyProcessesIsOutOfMemory) {
  // Without a writable memory cgroup each process stays below its own limit and sleeps.
  const bool cgroup = pool_->sandbox_description().find("memory") != std::string::npos;
  const ExecResult result =
      Run("import os, time\n"
          "for i in range(8):\n"
          "  if os.fork() == 0:\n"
          "    x = b'x' * (100 << 20)\n"
          "    time.sleep(1000)\n"
          "os.wait()\n"
          "raise MemoryError('a child ended')",
          cgroup ? 10 : 1);
  EXPECT_EQ(result.outcome().reason(), cgroup ? Outcome::OUT_OF_MEMORY : Outcome::TIMEOUT)
      << result.ShortDebugString();
}

TEST_F(MisbehaviourTest, GigabytesOfOutputHitTheOutputLimit) {
  const ExecResult result = Run("while True: print('x' * 100000)");
  EXPECT_EQ(result.outcome().reason(), Outcome::OUTPUT_LIMIT) << result.ShortDebugString();
  EXPECT_LT(result.output().size(), 20000u);
  EXPECT_GT(result.output_bytes(), 32 << 20);
}

TEST_F(MisbehaviourTest, MuchOutputIsDrainedAndCut) {
  const ExecResult result = Run("print('begin' + 'x' * 20000000 + 'end')");
  ExpectEnd(result);
  EXPECT_EQ(result.output_bytes(), 20000009);
  EXPECT_LT(result.output().size(), 20000u);
  EXPECT_EQ(result.output().substr(0, 5), "begin");
  EXPECT_EQ(result.output().substr(result.output().size() - 4), "end\n");
}

TEST_F(MisbehaviourTest, OsExitIsNoResult) {
  const ExecResult result = Run("import os\nos._exit(0)");
  ExpectEnd(result);
  EXPECT_EQ(result.outcome().status(), Outcome::STATUS_CANDIDATE_FAILED);
}

TEST_F(MisbehaviourTest, SysExitIsNoResult) {
  EXPECT_EQ(Run("import sys\nsys.exit(0)").outcome().reason(), Outcome::EXITED);
}

TEST_F(MisbehaviourTest, SegmentationFaultIsACrash) {
  const ExecResult result = Run("import ctypes\nctypes.string_at(8)");
  EXPECT_EQ(result.outcome().reason(), Outcome::CRASHED);
  EXPECT_NE(result.outcome().message().find("11"), std::string::npos) << result.outcome().message();
  EXPECT_NE(result.outcome().detail().find("Fatal Python error"), std::string::npos)
      << result.outcome().detail();
}

TEST_F(MisbehaviourTest, AbortIsACrash) {
  EXPECT_EQ(Run("import os\nos.abort()").outcome().reason(), Outcome::CRASHED);
}

TEST_F(MisbehaviourTest, KillingEverybodyKillsOnlyItself) {
  EXPECT_EQ(Ask(Try("os.kill(-1, 9)")), "ProcessLookupError");  // it is alone in its pid namespace
  const ExecResult self = Run("import os\nos.kill(os.getpid(), 9)");
  EXPECT_EQ(self.outcome().reason(), Outcome::CRASHED);
  const ExecResult parent = Run("import os\nos.kill(os.getppid(), 9)");
  EXPECT_EQ(parent.outcome().reason(),
            Outcome::CRASHED);  // getppid() is 0 in a pid namespace, and kill(0) hits its own group
}

TEST_F(MisbehaviourTest, DaemonsEndWithTheJob) {
  // A daemon in a session of its own that still holds the job's output.
  const ExecResult result =
      Run("import os, time\n"
          "if os.fork() == 0:\n"
          "  os.setsid()\n"
          "  if os.fork() == 0:\n"
          "    open('/tmp/daemon', 'w').write('x')\n"
          "    time.sleep(1000)\n"
          "  os._exit(0)\n"
          "while not os.path.exists('/tmp/daemon'): time.sleep(0.01)\n");
  ExpectEnd(result);
  // The next job sees only itself and the first process of its namespace.
  EXPECT_EQ(Ask("import os\n"
                "print(sum(p.isdigit() for p in os.listdir('/proc')))"),
            "2");
}

TEST_F(MisbehaviourTest, FilesDoNotOutliveTheJob) {
  Run("open('/tmp/left', 'w').write('x'); open('/dev/shm/left', 'w').write('x')");
  EXPECT_EQ(Ask("import os\nprint(os.listdir('/tmp') + os.listdir('/dev/shm'))"), "[]");
}

TEST_F(MisbehaviourTest, DiskSpaceIsLimited) {
  for (const char* folder : {"/tmp", "/dev/shm"}) {
    EXPECT_EQ(Ask(Try(absl::StrCat("f = open('", folder,
                                   "/big', 'wb')\n  while True: "
                                   "f.write(bytes(1 << 20)); f.flush()"))),
              "OSError")
        << folder;
  }
}

TEST_F(MisbehaviourTest, NothingElseIsWritable) {
  for (const char* path : {"/x", "/usr/x", "/etc/x", "/dev/x", "/opt/tritonrl/python/0/x",
                           "/proc/sys/kernel/hostname", "/var/x"}) {
    EXPECT_NE(Ask(Try(absl::StrCat("open('", path, "', 'w')"))), "allowed") << path;
  }
}

TEST_F(MisbehaviourTest, FilesOfTheHostAreOutOfSight) {
  const std::string secret = absl::StrCat("/tmp/tritonrl-secret-", getpid());
  ASSERT_TRUE(WriteFileAtomic(secret, "secret").ok());
  chmod(secret.c_str(), 0644);
  for (const std::string& path :
       {secret, std::string("/root"), std::string("/home"), std::string("/etc/shadow"),
        std::string("/etc/passwd"), std::string("/sys/kernel"), std::string("/var/log")}) {
    EXPECT_EQ(Ask(Try(absl::StrCat("os.stat('", path, "')"))), "FileNotFoundError") << path;
  }
  unlink(secret.c_str());
}

TEST_F(MisbehaviourTest, ThereIsNoNetwork) {
  const std::string connect = "s = socket.socket(); s.settimeout(2); s.connect(('10.0.0.1', 80))";
  EXPECT_EQ(Ask(Try(connect)), "OSError");
  EXPECT_EQ(Ask("lines = open('/proc/net/dev').read().split('\\n')[2:]\n"
                "print([l.split(':')[0].strip() for l in lines if l])"),
            "['lo']");
}

TEST_F(MisbehaviourTest, NoCapabilityAndNoNamespace) {
  EXPECT_EQ(Ask("lines = open('/proc/self/status').read().split('\\n')\n"
                "caps = {l.split()[1] for l in lines if l.startswith('Cap')}\n"
                "print(caps)"),
            "{'0000000000000000'}");
  for (const char* flag : {"0x10000000", "0x20000", "0x20000000", "0x40000000"}) {
    EXPECT_EQ(Ask(absl::StrCat("import ctypes\nprint(ctypes.CDLL(None).unshare(", flag, "))")),
              "-1")
        << flag;
  }
  EXPECT_EQ(Ask("import ctypes\nprint(ctypes.CDLL(None).umount2(b'/tmp', 2))"), "-1");
}

TEST_F(MisbehaviourTest, HoldsOnlyItsOwnDescriptors) {
  EXPECT_EQ(Ask("import os\n"
                "held = [os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in range(256)\n"
                "        if os.path.islink(f'/proc/self/fd/{n}')]\n"
                "print(held)"),
            "['/dev/null', 'pipe', 'pipe', 'pipe', 'socket']");
}

TEST_F(MisbehaviourTest, EnvironmentSaysNothingOfTheHost) {
  setenv("TRITONRL_TEST_SECRET", "x", 1);
  EXPECT_EQ(Ask("import os\nprint('TRITONRL_TEST_SECRET' in os.environ)"), "False");
}

TEST_F(MisbehaviourTest, NonsenseOnTheResultChannelIsRefused) {
  for (const char* action :
       {"os.write(3, b'garbage\\n')", "os.write(3, b'{\"result\": {\"correct\": true}}\\n')",
        "os.write(3, b'[' * 500000)", "while True: os.write(3, b'x' * 60000)"}) {
    const ExecResult result = Run(absl::StrCat("import os\n", action));
    EXPECT_EQ(result.outcome().reason(), Outcome::BAD_RESULT)
        << action << ": " << result.ShortDebugString();
  }
  EXPECT_EQ(
      Run("import os\nos.write(3, b'{\"setup_error\": \"x\"}\\n'); os._exit(0)").outcome().status(),
      Outcome::STATUS_CANDIDATE_FAILED);
  ExpectEnd(Run("import os\nos.close(3)"));
}

TEST_F(MisbehaviourTest, TheReferencesFaultsAreTheTasks) {
  for (const char* reference :
       {"import os; os._exit(3)", "while True: pass", "import ctypes; ctypes.string_at(8)"}) {
    ExecLimits limits;
    limits.set_wall_seconds(0.5);
    const ExecResult result =
        RunJob({{"role", "oracle"}, {"reference_source", reference}, {"calls", {0}}},
               JobRole::kReference, limits);
    EXPECT_EQ(result.outcome().reason(), Outcome::REFERENCE_FAILED) << result.ShortDebugString();
    EXPECT_EQ(result.outcome().status(), Outcome::STATUS_TASK_FAILED);
  }
}

TEST_F(MisbehaviourTest, AManyFilesLimit) {
  EXPECT_EQ(Ask(Try("fs = [open('/dev/null') for i in range(1000)]")), "OSError");
}

}  // namespace
}  // namespace tritonrl
