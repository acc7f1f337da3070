#include "exec/workers/worker_pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "exec/testing/pool_options.h"
#include "exec/workers/worker.h"

namespace tritonrl {
namespace {

std::string Job(const std::string& candidate) {
  return nlohmann::json{{"reference_source", "pass"}, {"candidate_source", candidate}}.dump();
}

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

// A pipe that tells the test when a job runs the statement `kTell`.
class Told {
 public:
  static constexpr char kTell[] = "import os, time; os.write(job['fds']['told'], b'x'); ";

  Told() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
  ~Told() {
    for (const int end : ends_) close(end);
  }
  std::vector<JobFd> fds() const { return {{"told", ends_[1]}}; }
  // Waits until a job has written; false after a minute.
  bool Wait() const {
    pollfd read_end = {ends_[0], POLLIN, 0};
    return poll(&read_end, 1, 60000) == 1;
  }

 private:
  int ends_[2] = {-1, -1};
};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Processes with `word` in their command line.
std::vector<pid_t> ProcessesWith(const std::string& word) {
  std::vector<pid_t> found;
  const auto names = ListDirectory("/proc");
  for (const std::string& name : *names) {
    const auto command = ReadFile(absl::StrCat("/proc/", name, "/cmdline"));
    if (command.ok() && Contains(*command, word)) found.push_back(atoi(name.c_str()));
  }
  return found;
}

// Whether `pid` descends from this process, unlike the workers of other tests.
bool IsOurs(pid_t pid) {
  while (pid > 1 && pid != getpid()) {
    const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
    if (!stat.ok()) return false;
    // "pid (name) state parent ..."; the name may contain any characters, even brackets.
    const std::vector<std::string> rest = absl::StrSplit(stat->substr(stat->rfind(')') + 2), ' ');
    pid = atoi(rest[1].c_str());
  }
  return pid == getpid();
}

// All processes of this test's workers: bubblewrap, launcher, zygote, jobs.
std::vector<pid_t> OurWorkers() {
  std::vector<pid_t> ours;
  for (const pid_t pid : ProcessesWith("fake_runner")) {
    if (IsOurs(pid)) ours.push_back(pid);
  }
  return ours;
}

TEST(FrameTest, EveryCutOfAStreamGivesTheSameFrames) {
  const std::string big(70000, 'b');
  std::string stream;
  for (const std::string& payload : {std::string("one"), std::string(), big}) {
    auto frame = EncodeFrame(payload, 1 << 20);
    ASSERT_TRUE(frame.ok());
    stream += *frame;
  }
  for (const size_t piece : {size_t{1}, size_t{3}, size_t{4096}, stream.size()}) {
    FrameReader reader(1 << 20);
    std::vector<std::string> frames;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.Add(stream.substr(at, piece));
      while (true) {
        auto next = reader.Next();
        ASSERT_TRUE(next.ok());
        if (!next->has_value()) break;
        frames.push_back(**next);
      }
    }
    EXPECT_EQ(frames, (std::vector<std::string>{"one", "", big}));
  }
}

TEST(FrameTest, RefusesWhatIsTooLong) {
  EXPECT_EQ(EncodeFrame("12345", 4).status().code(), absl::StatusCode::kInvalidArgument);
  FrameReader reader(4);
  reader.Add(std::string("\0\0\0\5", 4));
  EXPECT_EQ(reader.Next().status().code(), absl::StatusCode::kDataLoss);
}

TEST(WorkerPoolTest, ManyCallersEachGetTheirOwnReport) {
  auto pool = WorkerPool::Start(FakePoolOptions(2));
  ASSERT_TRUE(pool.ok()) << pool.status();
  std::vector<std::thread> callers;
  std::vector<JobReport> reports(24);
  for (int i = 0; i < 24; ++i) {
    callers.emplace_back([&, i] {
      // Every third job kills itself, which must not affect the other jobs.
      const std::string source = i % 3 == 0 ? "import os; os.kill(os.getpid(), 9)"
                                            : absl::StrCat("result['message'] = 'job ", i, "'");
      reports[i] = (*pool)->Run(Job(source), ExecLimits(), Soon());
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (int i = 0; i < 24; ++i) {
    EXPECT_EQ(reports[i].end, JobEnd::kExit);
    if (i % 3 == 0) {
      EXPECT_EQ(reports[i].signal, 9) << i;
    } else {
      EXPECT_TRUE(Contains(reports[i].channel, absl::StrCat("\"job ", i, "\""))) << i;
    }
  }
  EXPECT_EQ((*pool)->counts().jobs, 24);
  EXPECT_EQ((*pool)->counts().workers_lost, 0);
}

TEST(WorkerPoolTest, DeadWorkersAreReplaced) {
  WorkerPoolOptions options = FakePoolOptions(1);
  auto pool = WorkerPool::Start(options);
  ASSERT_TRUE(pool.ok()) << pool.status();
  // An idle worker dies: the next job runs as usual.
  const std::vector<pid_t> all = OurWorkers();
  ASSERT_FALSE(all.empty());
  for (const pid_t pid : all) kill(pid, SIGKILL);
  JobReport report = (*pool)->Run(Job("pass"), ExecLimits(), Soon());
  EXPECT_EQ(report.end, JobEnd::kExit) << report.detail;
  EXPECT_EQ((*pool)->counts().workers_lost, 1);
  ASSERT_EQ(OurWorkers().size(), all.size());
  // A worker dies while a job runs: the job's report says so.
  const Told runs;
  std::thread killer([&] {
    EXPECT_TRUE(runs.Wait());
    for (const pid_t pid : OurWorkers()) kill(pid, SIGKILL);
  });
  report = (*pool)->Run(Job(absl::StrCat(Told::kTell, "time.sleep(30)")), ExecLimits(), Soon(),
                        runs.fds());
  killer.join();
  EXPECT_EQ(report.end, JobEnd::kWorkerDied);
  EXPECT_EQ((*pool)->Run(Job("pass"), ExecLimits(), Soon()).end, JobEnd::kExit);
}

TEST(WorkerPoolTest, AStoppedWorkerIsKilledAndReplaced) {
  WorkerPoolOptions options = FakePoolOptions(1);
  options.kill_grace = absl::Seconds(1.5);
  auto pool = WorkerPool::Start(options);
  ASSERT_TRUE(pool.ok()) << pool.status();
  for (const pid_t pid : OurWorkers()) kill(pid, SIGSTOP);
  // The stopped worker does not take the job, so the pool gives the job to a new worker.
  EXPECT_EQ((*pool)->Run(Job("pass"), ExecLimits(), Soon()).end, JobEnd::kExit);
  EXPECT_EQ((*pool)->counts().workers_lost, 1);
}

TEST(WorkerPoolTest, ADeadlineHoldsWhileALargeJobIsSent) {
  auto pool = WorkerPool::Start(FakePoolOptions(1));
  ASSERT_TRUE(pool.ok()) << pool.status();
  for (const pid_t pid : OurWorkers()) kill(pid, SIGSTOP);
  // More bytes than the socket holds while the worker does not read.
  const std::string job = Job(std::string(4 << 20, '#'));
  const absl::Time begin = absl::Now();
  EXPECT_EQ((*pool)->Run(job, ExecLimits(), begin + absl::Milliseconds(200)).end,
            JobEnd::kDeadline);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
  EXPECT_EQ((*pool)->Run(Job("pass"), ExecLimits(), Soon()).end, JobEnd::kExit);
}

TEST(WorkerPoolTest, DeadlinesOfTheCaller) {
  auto pool = WorkerPool::Start(FakePoolOptions(1));
  ASSERT_TRUE(pool.ok()) << pool.status();
  const Told runs;
  std::thread busy([&] {
    const JobReport report = (*pool)->Run(Job(absl::StrCat(Told::kTell, "time.sleep(30)")),
                                          ExecLimits(), absl::Now() + absl::Seconds(3), runs.fds());
    EXPECT_EQ(report.end, JobEnd::kDeadline);  // the deadline is before the job's limit of 10 s
  });
  EXPECT_TRUE(runs.Wait());
  EXPECT_EQ((*pool)->Run(Job("pass"), ExecLimits(), absl::Now()).end, JobEnd::kQueueTimeout);
  busy.join();
  EXPECT_EQ((*pool)->Run(Job("pass"), ExecLimits(), Soon()).end, JobEnd::kExit);
}

TEST(WorkerPoolTest, AJobThatServesEndsWhenItIsCancelled) {
  WorkerPoolOptions options = FakePoolOptions(1);
  options.limits.set_wall_seconds(0.3);
  auto pool = WorkerPool::Start(options);
  ASSERT_TRUE(pool.ok()) << pool.status();
  const int cancel = eventfd(0, EFD_CLOEXEC);
  const Told outlived;  // the job writes here after its limit has passed
  std::thread canceller([&] {
    EXPECT_TRUE(outlived.Wait());
    EXPECT_EQ(eventfd_write(cancel, 1), 0);
  });
  const std::string serves =
      absl::StrCat("import time; time.sleep(1); ", Told::kTell, "time.sleep(60)");
  const JobReport report = (*pool)->Run(Job(serves), ExecLimits(), Soon(), outlived.fds(),
                                        {.cancel_fd = cancel, .serves = true});
  canceller.join();
  close(cancel);
  EXPECT_EQ(report.end, JobEnd::kDeadline);
  EXPECT_GE(report.wall_seconds, 1);  // no time limit was in force
  EXPECT_LT(report.wall_seconds, 50);
  EXPECT_EQ((*pool)->Run(Job("pass"), ExecLimits(), Soon()).end, JobEnd::kExit);
}

TEST(WorkerPoolTest, StoppingEndsWhatRunsAndWhatWaits) {
  auto pool = WorkerPool::Start(FakePoolOptions(1));
  ASSERT_TRUE(pool.ok()) << pool.status();
  const Told runs;
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      const JobReport report = (*pool)->Run(Job(absl::StrCat(Told::kTell, "time.sleep(30)")),
                                            ExecLimits(), Soon(), runs.fds());
      EXPECT_EQ(report.end, JobEnd::kStopped);
    });
  }
  EXPECT_TRUE(runs.Wait());
  (*pool)->Stop();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ((*pool)->Run(Job("pass"), ExecLimits(), Soon()).end, JobEnd::kStopped);
  pool->reset();
  EXPECT_TRUE(OurWorkers().empty());
}

TEST(WorkerPoolTest, LimitsCanBeLoweredNotRaised) {
  WorkerPoolOptions options = FakePoolOptions(1);
  options.limits.set_wall_seconds(0.3);
  auto pool = WorkerPool::Start(options);
  ASSERT_TRUE(pool.ok()) << pool.status();
  ExecLimits more;
  more.set_wall_seconds(100);
  const JobReport report = (*pool)->Run(Job("import time; time.sleep(30)"), more, Soon());
  EXPECT_EQ(report.end, JobEnd::kTimeout);
  EXPECT_LT(report.wall_seconds, 30);
}

TEST(WorkerPoolTest, SaysWhyAWorkerDoesNotStart) {
  WorkerPoolOptions options = FakePoolOptions(2);
  options.runner = "no_such_module";
  const auto pool = WorkerPool::Start(options);
  ASSERT_FALSE(pool.ok());
  EXPECT_TRUE(Contains(std::string(pool.status().message()), "No module named 'no_such_module'"))
      << pool.status();
  options.workers = 0;
  EXPECT_EQ(WorkerPool::Start(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(WorkerPoolTest, WithoutASandboxJobsAreStillKilledAsATree) {
  WorkerPoolOptions options = FakePoolOptions(1);
  options.sandbox = SandboxKind::kNone;
  auto pool = WorkerPool::Start(options);
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_TRUE(Contains((*pool)->sandbox_description(), "NO sandbox"));
  // The daemon's sleep time in seconds, which identifies the daemon.
  const std::string mark = absl::StrCat("7", getpid(), ".125");
  const JobReport report = (*pool)->Run(Job(absl::StrCat("import subprocess, os\n"
                                                         "subprocess.Popen(['sleep', '",
                                                         mark,
                                                         "'], start_new_session=True)\n"
                                                         "open('file', 'w').write(os.getcwd())\n"
                                                         "result['message'] = os.getcwd()")),
                                        ExecLimits(), Soon());
  EXPECT_EQ(report.end, JobEnd::kExit);
  EXPECT_TRUE(Contains(report.channel, "/tmp/job-")) << report.channel;
  EXPECT_TRUE(ProcessesWith(mark).empty());
  const size_t at = report.channel.find("/tmp/job-");
  const std::string folder = report.channel.substr(at, report.channel.find('"', at) - at);
  EXPECT_FALSE(FileExists(folder)) << folder;
  // Without a sandbox a candidate can kill its worker; the pool still runs the next job.
  (void)(*pool)->Run(Job("import os; os.kill(os.getppid(), 9)"), ExecLimits(), Soon());
  ExecLimits few;
  few.set_wall_seconds(3);
  EXPECT_EQ((*pool)
                ->Run(Job("import os, time\nwhile True:\n  try: os.fork()\n"
                          "  except OSError: time.sleep(0.01)\n"),
                      few, Soon())
                .end,
            JobEnd::kProcessLimit);
  EXPECT_EQ((*pool)->Run(Job("pass"), ExecLimits(), Soon()).end, JobEnd::kExit);
}

}  // namespace
}  // namespace tritonrl
