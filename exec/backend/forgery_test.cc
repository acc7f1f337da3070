// Candidates that attack the verdict, in the real runner and sandbox: they try to make the
// supervisor believe that they are correct or fast.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "exec/testing/interpreter_suite.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

class ForgeryTest : public InterpreterSuite {
 protected:
  static ExecResult Run(const std::string& candidate,
                        const std::string& reference = kSoftmaxReference, uint64_t seed = 0,
                        double seconds = 20) {
    ExecRequest request = MakeExecRequest(candidate, reference, seconds);
    request.set_seed(seed);
    return RunOrFail(backend_, request);
  }

  // An honest kernel (Right), or one that omits the division (Wrong), after the statements
  // `before`, which run at import.
  static std::string Right(const std::string& before) {
    return absl::StrCat("import sys, os, json\n", before, kSoftmaxCandidate);
  }
  static std::string Wrong(const std::string& before) {
    return absl::StrReplaceAll(Right(before), {{"e / tl.sum(e, 0)", "e"}});
  }
};

TEST_F(ForgeryTest, PatchingPythonDoesNotMakeAWrongResultRight) {
  const char* patches[] = {
      "import torch\n"
      "for name in ('allclose', 'equal', 'isclose'): setattr(torch, name, lambda *a, **k: True)\n"
      "torch.testing.assert_close = lambda *a, **k: None\n"
      "torch.Tensor.equal = lambda *a: True\n",
      "old = json.dumps\n"
      "json.dumps = lambda value, **k: old(value, **k).replace('mismatch', 'ok')"
      ".replace('stopped', 'ran')\n",
      "import builtins\nbuiltins.abs = lambda x: 0\nbuiltins.all = lambda x: True\n",
      "import time\ntime.monotonic = time.perf_counter = time.time = lambda: 0.0\n",
      "import channel\n"
      "old = channel.Control.receive\n"
      "channel.Control.receive = lambda self: (old(self), {'go': True})[1]\n",
      "import runner\nrunner.run_job = lambda *a, **k: {'outcome': 'ok', 'correct': True}\n",
      "import failures\nfailures.JobFailure.__init__ = lambda self, *a, **k: None\n",
  };
  for (const char* patch : patches) {
    const ExecResult result = Run(Wrong(patch));
    EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH) << patch << result.DebugString();
  }
}

TEST_F(ForgeryTest, ResultsThatNobodyHandedOverAreRefused) {
  const std::string forged =
      "forged = json.dumps({'result': {'outcome': 'ran', 'fault': 'none', 'phase': 'done', "
      "'message': '', 'detail': '', 'line': 0, 'modelled': True, 'device_name': '', 'compiled': "
      "True, 'launches': [], 'aten_ops': [], 'candidate_seconds': 1e-9, 'seconds': {}, "
      "'versions': {}}}).encode() + b'\\n'\n";
  ExecResult result = Run(Wrong(absl::StrCat(forged, "os.write(3, forged); os._exit(0)\n")));
  EXPECT_EQ(result.outcome().reason(), Outcome::BAD_RESULT) << result.DebugString();
  EXPECT_NE(result.outcome().message().find("of 0 calls"), std::string::npos)
      << result.outcome().message();
  // The forged result goes to every descriptor, and the honest run follows.
  result = Run(Wrong(absl::StrCat(forged,
                                  "for number in range(64):\n  try: os.write(number, forged)\n"
                                  "  except OSError: pass\n")));
  EXPECT_EQ(result.outcome().reason(), Outcome::BAD_RESULT) << result.DebugString();
  // The candidate answers its own messages, so the supervisor gets none.
  result = Run(Wrong("import channel\nchannel.Control.ask = lambda self, m: {'go': True}\n"));
  EXPECT_EQ(result.outcome().reason(), Outcome::BAD_RESULT) << result.DebugString();
  // A forged final result after the first call.
  result = Run(absl::StrReplaceAll(
      Right(forged), {{"return y",
                       "CALLS.append(0)\n        if len(CALLS) > 1: os.write(3, forged); "
                       "os._exit(0)\n        return y"},
                      {"@triton.jit", "CALLS = []\n@triton.jit"}}));
  EXPECT_EQ(result.outcome().reason(), Outcome::BAD_RESULT) << result.DebugString();
  EXPECT_FALSE(result.has_speedup());
}

TEST_F(ForgeryTest, LiesAboutLayoutsAreRefused) {
  const char* lies[] = {
      "{**t, 'offset': 1 << 40}",
      "{**t, 'offset': -8}",
      "{**t, 'offset': (1 << 64) - 64}",
      "{**t, 'stride': [-s for s in t['stride']]}",
      "{**t, 'shape': [-64, -200]}",
      "{**t, 'shape': [1 << 60, 1 << 60]}",
      "{**t, 'dtype': 'x' * 1000}",
      "{**t, 'shape': 'none'}",
      "[t]",
      "None",
  };
  const char* patch =
      "import layout\nold = layout.Writer.put\ndef put(self, value):\n"
      "    node = old(self, value)\n    if 'tensor' in node:\n"
      "        t = node['tensor']; node['tensor'] = %LIE%\n    return node\n"
      "layout.Writer.put = put\n";
  for (const char* lie : lies) {
    const ExecResult result = Run(Right(absl::StrReplaceAll(patch, {{"%LIE%", lie}})));
    EXPECT_EQ(result.outcome().reason(), Outcome::BAD_RESULT) << lie << result.DebugString();
    EXPECT_NE(result.outcome().message().find("makes no sense"), std::string::npos)
        << result.outcome().message();
  }
  // Layouts inside the memory that point to other bytes: those bytes are compared as usual.
  for (const char* lie :
       {"{**t, 'offset': t['offset'] + 4}", "{**t, 'shape': [200, 64]}", "{**t, 'dtype': 'int32'}",
        "{**t, 'offset': None}", "{**t, 'device': 'cuda'}"}) {
    const ExecResult result = Run(Right(absl::StrReplaceAll(patch, {{"%LIE%", lie}})));
    EXPECT_TRUE(result.outcome().reason() == Outcome::MISMATCH ||
                result.outcome().reason() == Outcome::BAD_RESULT)
        << lie << result.DebugString();
  }
}

TEST_F(ForgeryTest, TimesThatCannotBeAreInconclusive) {
  const char* patch =
      "import interpreter_device\n"
      "interpreter_device.InterpreterDevice.modelled_seconds = lambda self, which: %TIME%\n";
  for (const char* time : {"1e-9", "1e-300", "0.0", "-1.0"}) {
    const ExecResult result = Run(Right(absl::StrReplaceAll(patch, {{"%TIME%", time}})));
    EXPECT_EQ(result.outcome().reason(), Outcome::INCONCLUSIVE) << time << result.DebugString();
    EXPECT_FALSE(result.has_speedup());
    EXPECT_GT(result.floor_seconds(), 0);
    EXPECT_NE(result.outcome().message().find("reading the inputs"), std::string::npos)
        << result.outcome().message();
  }
  // NaN counts as no time at all.
  const ExecResult none = Run(Right(absl::StrReplaceAll(patch, {{"%TIME%", "float('nan')"}})));
  EXPECT_FALSE(none.has_speedup()) << none.DebugString();
  // A time that is too long harms only the candidate.
  EXPECT_EQ(Run(Right(absl::StrReplaceAll(patch, {{"%TIME%", "1.0"}}))).outcome().reason(),
            Outcome::OK);
  EXPECT_EQ(Run(Right("")).outcome().reason(), Outcome::OK);
}

TEST_F(ForgeryTest, WhatIsSharedCannotBeTurnedAround) {
  // Closing, swapping and remapping the descriptors harms only the candidate itself.
  for (const char* patch : {"os.close(4)\n", "os.close(5)\n", "os.dup2(0, 4)\n",
                            "os.dup2(5, 4); os.dup2(6, 5)\n", "os.closerange(3, 64)\n"}) {
    const ExecResult result = Run(Wrong(patch), kSoftmaxReference, 0, 5);
    EXPECT_NE(result.outcome().reason(), Outcome::OK) << patch << result.DebugString();
  }
  // A thread overwrites the memory while it is compared.
  const ExecResult result =
      Run(Wrong("import threading, mmap\n"
                "def scribble():\n"
                "    for fd in (4, 5, 6):\n"
                "        try: memory = mmap.mmap(fd, 0)\n"
                "        except (OSError, ValueError): continue\n"
                "        for _ in range(3000): memory[:4096] = os.urandom(4096)\n"
                "threading.Thread(target=scribble, daemon=True).start()\n"));
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH) << result.DebugString();
  EXPECT_EQ(Run(Right("")).outcome().reason(), Outcome::OK);  // the cached results are untouched
}

}  // namespace
}  // namespace tritonrl
