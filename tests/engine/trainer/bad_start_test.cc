// Trainers that go wrong before their first step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>

#include "engine/trainer/output_lines.h"
#include "engine/trainer/trainer_process.h"
#include "tests/engine/trainer/bad_trainer.h"

namespace disttrain::workerd::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST_F(BadTrainerTest, AProgramThatDoesntExist) {
  options.command.argv = {"no-such-python", "train.py"};
  const Error error = start_error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, HasSubstr("can't start the trainer \"no-such-python\": No such file or directory; "
                                       "model.trainer must begin with a program"));
}

TEST_F(BadTrainerTest, AFolderThatDoesntExist) {
  options.command.folder = (folder / "none").string();
  const Error error = start_error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, HasSubstr("none\" can't be used: No such file or directory"));
}

TEST_F(BadTrainerTest, AScriptThatRaisesWhileItStarts) {
  write("import disttrain\njob = disttrain.init()\nraise ValueError('no data here')\n");
  const Error error = start_error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, AllOf(HasSubstr("the trainer ended with exit code 1 (before job.batches() began)"),
                                   HasSubstr("Traceback"), EndsWith("ValueError: no data here")));
}

TEST_F(BadTrainerTest, AScriptThatNeverCallsInit) {
  write("print('hello')\n");
  const Error error = start_error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("ended with exit code 0 before it had called disttrain.init()"), EndsWith("hello")));
}

TEST_F(BadTrainerTest, AScriptThatIsKilledWhileItStarts) {
  write_raw("os.kill(os.getpid(), signal.SIGKILL)\n");
  const Error error = start_error();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, AllOf(HasSubstr("was killed by signal 9 (SIGKILL); possibly by the kernel for this host's "
                                             "memory or a cgroup's limit: see `dmesg | tail`"),
                                   EndsWith("it has printed nothing")));
}

TEST_F(BadTrainerTest, AScriptThatNeverDescribesItsModel) {
  options.start_timeout = 300ms;
  write_raw("print('waiting', flush=True)\nsignal.pause()\n");
  const Error error = start_error();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, AllOf(HasSubstr("hasn't answered for 300 ms"), HasSubstr("while it started")));
}

TEST_F(BadTrainerTest, AnotherProtocol) {
  write_raw("send(type='hello', protocol=2, sdk='9.1')\nsignal.pause()\n");
  const Error error = start_error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, HasSubstr("of protocol 2 (package disttrain 9.1), but this worker speaks protocol 1: "
                                       "install the package disttrain of this workerd's version"));
}

TEST_F(BadTrainerTest, ADeeplyNestedMessage) {
  write_raw(R"(
n = 1_900_000
text = ('{"type": "hello", "sdk": "x", "protocol": ' + "[" * n + "]" * n + "}").encode()
connection.sendall(struct.pack("<II", len(text), 0) + text)
signal.pause()
)");
  const Error error = start_error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, HasSubstr("sent bytes on its socket that aren't a message of the package disttrain"));
}

TEST_F(BadTrainerTest, GarbageOnTheSocket) {
  for (const char* const bytes :
       {"'GET / HTTP/1.0\\r\\n\\r\\n'.encode()", "struct.pack('<II', 4, 0) + b'oops'",
        "struct.pack('<II', 2, 0) + b'[]'", "b'\\xff' * 100", "struct.pack('<II', 2, 0xffffffff) + b'{}'"}) {
    write_raw("connection.sendall(" + std::string(bytes) + ")\nsignal.pause()\n");
    const Error error = start_error();
    EXPECT_EQ(error.code, ErrorCode::kConfig) << bytes;
    EXPECT_THAT(error.message, HasSubstr("sent bytes on its socket that aren't a message of the package disttrain"));
  }
}

TEST_F(BadTrainerTest, ModelsThatCantBe) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"variables=[]", "without a trainable variable"},
      {"variables=[['w', [2, 0], 'trainable']]",
       "the variable \"w\", which has no elements (a dimension is 0); expected a model without"},
      {"variables=[['w', [2**32, 2**32], 'trainable']]", "the variable \"w\", which has more than"},
      {"variables=[['w', [-1], 'trainable']]", "with a dimension of the variable \"w\" = -1, expected a whole number"},
      {"variables=[['w', [1], 'frozen']]", "of kind \"frozen\", expected \"trainable\" or \"state\""},
      {"variables=[['w', [1], 'trainable'], ['w', [1], 'trainable']]", "with two variables named \"w\""},
      {"variables=[['', [1], 'trainable']]", "is empty or can't be printed"},
      {"variables=[['w', [1], 'trainable', 'float32', 1]]", "that isn't [name, shape, kind, dtype], and maybe its two"},
      {"variables=[['w', [1], 'trainable', 'float32', 1, 0]]", "with bounds of the variable \"w\"; expected"},
      {"variables=[['w', [1], 'trainable', 'float32', 'nan', 0]]", "with bounds of the variable \"w\"; expected"},
      {"variables=[['w', [1], 'trainable', 'float32', 0, 0.1]]", "with bounds of the variable \"w\"; expected"},
      {"variables=[['w', [1], 'trainable', 'float32', 0, 1e300]]", "with bounds of the variable \"w\"; expected"},
      {"variables=[['w', [1], 'trainable'], ['s', [1], 'state', 'float32', 0, 1]]",
       "with bounds of the variable \"s\"; expected them for a trainable variable"},
      {"variables={}", "with \"variables\" that isn't a list"},
      {"metrics=[str(i) for i in range(100_000)]", "with 100000 metrics, expected at most 64"},
      {"metrics=['a', 'a']", "with two metrics named \"a\"; expected different names"},
      {"metrics=['a b']", "a metric can't be named \"a b\"; expected 1 to 100 of the characters A-Z"},
      {"metrics=['loss']", "a metric can't be named \"loss\", because the status shows a figure of the job under this"},
      {"records='many'", "with records = \"many\", expected a whole number"},
      {"records=0", "has no data set of its own, and the job has none"},
      {"evaluates=1", "with evaluates that is neither true nor false"},
      {"type='undescribe'", "of the unknown type \"undescribe\""},
      {"type='finished'", "without the key \"number\""},
  };
  for (const auto& [change, expected] : cases) {
    write_raw("describe(**dict(" + change + "))\nsignal.pause()\n");
    const Error error = start_error();
    EXPECT_EQ(error.code, ErrorCode::kConfig) << change;
    EXPECT_THAT(error.message, HasSubstr(expected)) << change;
  }
}

TEST_F(BadTrainerTest, InitialValuesThatArentFinite) {
  write(R"(
import disttrain, numpy as np
job = disttrain.init(metrics=[])
job.wrap({"w": np.zeros((2, 3)), "b": np.array([0, 1, np.nan, -np.inf])})
for x in job.batches(range(100)): pass
)");
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  const auto values = engine->initial_values();
  ASSERT_FALSE(values.has_value());
  EXPECT_EQ(values.error().code, ErrorCode::kConfig);
  EXPECT_THAT(values.error().message,
              HasSubstr("the trainer gave initial values that are NaN or infinite: the variable "
                        "\"b\" has one at index 2 of its 4 values in row-major order; let the "
                        "script of model.trainer give the model finite values before its loop "
                        "(while it gave"));
  EXPECT_THAT(values.error().message, Not(HasSubstr("persistent=False")));
}

TEST_F(BadTrainerTest, StateThatBeginsInfinite) {
  write(R"(
import disttrain, numpy as np
job = disttrain.init(metrics=[])
job.wrap({"w": np.zeros((2, 3))}, state={"mask": np.array([0, -np.inf])})
for x in job.batches(range(100)): pass
)");
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  const auto values = engine->initial_values();
  ASSERT_FALSE(values.has_value());
  EXPECT_THAT(values.error().message, HasSubstr("finite values before job.wrap(), or keep a constant out of the state "
                                                "(a torch buffer by persistent=False)"));
}

TEST_F(BadTrainerTest, CancellingEndsTheWait) {
  write_raw("signal.pause()\n");
  cancelled = true;
  EXPECT_EQ(start_error().code, ErrorCode::kTemporary);
}

TEST_F(BadTrainerTest, WhatItPrintsIsCutAndMadeSafe) {
  write_raw(R"(
sys.stdout.write("x" * 100_000 + "\n")
sys.stdout.buffer.write(b"\x1b[31mred\xff\n")
sys.stdout.write("\n  \r\n50%\r100%\n")
for i in range(1000): print("line", i)
sys.stdout.write("no newline")
sys.stdout.flush()
)");
  const Error error = start_error();
  EXPECT_LT(error.message.size(), 4096U);
  EXPECT_THAT(error.message, AllOf(Not(HasSubstr("line 960")), HasSubstr("line 999\n"), EndsWith("no newline")));
  ASSERT_GT(lines.size(), 1000U);
  EXPECT_EQ(lines[0], std::string(kMaxOutputLineBytes, 'x') + " (the rest is left out)");
  EXPECT_EQ(lines[1], "\\x1b[31mred\\xff");
  EXPECT_EQ(lines[2], "50%");
  EXPECT_EQ(lines[3], "100%");
  EXPECT_EQ(lines[4], "line 0");
}

TEST(LastLines, FitTheErrorAlsoIfTheyAreShownLonger) {
  LastLines lines;
  for (int i = 0; i < 30; ++i) lines.add(std::string(90, '\xff'));
  lines.add("the last");
  EXPECT_LE(lines.text().size(), kKeptOutputBytes);
  EXPECT_THAT(lines.text(), AllOf(HasSubstr("\n  \\xff"), EndsWith("\n  the last")));
}

TEST(LineLimit, FillsAgainWithTime) {
  Instant now(1s);
  LineLimit limit;
  for (int i = 0; i < kLoggedLinesAtOnce; ++i) EXPECT_TRUE(limit.admits(now));
  EXPECT_FALSE(limit.admits(now));
  EXPECT_FALSE(limit.admits(now += 5ms));
  EXPECT_EQ(limit.take_dropped(), 2U);
  EXPECT_TRUE(limit.admits(now += 1s));
  for (int i = 0; i < kLoggedLinesPerSecond; ++i) limit.admits(now);
  EXPECT_EQ(limit.take_dropped(), 1U);
  now += 1h;
  for (int i = 0; i < kLoggedLinesAtOnce + 1; ++i) limit.admits(now);
  EXPECT_EQ(limit.take_dropped(), 1U);
}

TEST(OomKills, AreReadFromVmstat) {
  EXPECT_EQ(oom_kills_in("nr_free_pages 5\noom_kill 12\nother 3\n"), 12U);
  EXPECT_EQ(oom_kills_in("nr_free_pages 5\n"), 0U);
  EXPECT_EQ(oom_kills_in(""), 0U);
}

TEST(TrainerEnd, NamesAKillForMemory) {
  EXPECT_EQ((TrainerEnd{0, SIGKILL, false}).sentence(),
            "was killed by signal 9 (SIGKILL); possibly by the kernel for this host's memory or a cgroup's limit: see "
            "`dmesg | tail`");
  EXPECT_EQ((TrainerEnd{0, SIGTERM, false}).sentence(), "was killed by signal 15 (Terminated)");
  EXPECT_EQ((TrainerEnd{0, SIGKILL, true}).sentence(),
            "was killed by signal 9 (SIGKILL) while the kernel killed for memory, of this host or of a cgroup with a "
            "limit: see `dmesg | tail`");
}

}  // namespace
}  // namespace disttrain::workerd::test
