// Trainers that end, hang, fork, or send garbage: each of them gives one clear error and harms nobody else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>

#include "engine/trainer/trainer_engine.h"
#include "tests/engine/trainer/bad_trainer.h"

namespace disttrain::workerd::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kNumpyLoop[] = R"(
import disttrain, numpy as np
job = disttrain.init(metrics=[])
job.wrap({"w": np.zeros((2, 3), "f4")})
for x in job.batches(range(100)):
)";

TEST_F(BadTrainerTest, AScriptThatRaisesInAStep) {
  write(std::string(kNumpyLoop) + "    raise ValueError(f'bad label in step {job.step_number}')\n");
  const Error error = step_error();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("the trainer ended with exit code 1 (in this worker's step 1000); its last lines:\n"),
                    HasSubstr("train.py\", line 6"), EndsWith("ValueError: bad label in step 1000")));
}

TEST_F(BadTrainerTest, AFunctionThatRaisesInAnEvaluation) {
  for (const auto& [failure, code] : {std::pair("raise ValueError('bad label')", ErrorCode::kFailed),
                                      std::pair("raise SystemExit()", ErrorCode::kConfig),
                                      std::pair("os.kill(os.getpid(), signal.SIGKILL)", ErrorCode::kUnavailable)}) {
    write(R"(
import disttrain, numpy as np, os, signal
job = disttrain.init(metrics=[])
job.wrap({"w": np.zeros((2, 3), "f4")})
@job.on_evaluate
def evaluate(batch):
    )" + std::string(failure) +
          R"(
for x in job.batches(range(100)):
    job.push_pull({"w": np.zeros((2, 3))}, loss=0)
)");
    ASSERT_TRUE(make().has_value());
    ASSERT_TRUE(open().has_value());
    const auto result = run(Program::kEvaluate, {1});
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, code) << result.error().message;
    EXPECT_THAT(result.error().message, HasSubstr("(while it evaluated)"));
  }
}

TEST_F(BadTrainerTest, GradientsOfAnotherShape) {
  write(std::string(kNumpyLoop) + "    job.push_pull({'w': np.zeros((3, 2))}, loss=0)\n");
  const Error error = step_error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, HasSubstr("the trainer can't go on: the gradient of \"w\" has the shape [3, 2]; expected "
                                       "[2, 3], as the variable has (in this worker's step 1000)"));
}

TEST_F(BadTrainerTest, GradientsOfOtherVariables) {
  write(std::string(kNumpyLoop) + "    job.push_pull({'v': np.zeros((2, 3))}, loss=0)\n");
  EXPECT_THAT(step_error().message, HasSubstr("it lacks ['w']; ['v'] are new"));
}

TEST_F(BadTrainerTest, ALoopWithoutAStep) {
  write(std::string(kNumpyLoop) + "    pass\n");
  const Error error = step_error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, HasSubstr("went on to the next batch without job.step()"));
}

TEST_F(BadTrainerTest, ALoopThatEndsEarly) {
  write(std::string(kNumpyLoop) + "    break\n");
  const Error error = step_error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);  // another trainer would do the same
  EXPECT_THAT(error.message,
              HasSubstr("the trainer ended with exit code 0 before the job was over; its loop must run until "
                        "job.batches() ends by itself: to end a job earlier, set train.steps, train.epochs or "
                        "evaluate.stop_after (in this worker's step 1000)"));
}

TEST_F(BadTrainerTest, AKilledTrainer) {
  write_raw("describe()\nreceive()\nreceive()\nos.kill(os.getpid(), signal.SIGSEGV)\n");
  const Error error = step_error();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("was killed by signal 11 (Segmentation fault) (in this worker's step 1000)"));
}

// Python closes the socket before its process ends, and PyTorch's end takes longer than a moment.
constexpr char kSlowEnd[] = R"(
connection.close()
begin = time.process_time()
while time.process_time() < begin + 0.5: pass
raise ValueError("bad label")
)";

TEST_F(BadTrainerTest, AScriptThatRaisesAndTakesTimeToEnd) {
  write_raw("describe()\nreceive()\nreceive()\n" + std::string(kSlowEnd));
  const Error error = step_error();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("the trainer ended with exit code 1 (in this worker's step 1000); its last lines:\n"),
                    EndsWith("ValueError: bad label")));
}

TEST_F(BadTrainerTest, AScriptThatRaisesBeforeItDescribesItsModelAndTakesTimeToEnd) {
  write_raw("send(type='hello', protocol=1, sdk='raw')\nreceive()\n" + std::string(kSlowEnd));
  const Error error = start_error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, AllOf(HasSubstr("the trainer ended with exit code 1 (before job.batches() began)"),
                                   EndsWith("ValueError: bad label")));
}

// The next step begins while the process is ending.
TEST_F(BadTrainerTest, ASlowEndBetweenTwoSteps) {
  write_raw("describe()\nreceive()\nsend(type='finished', number=receive()['number'], loss_sum=0, metrics=[0, 0])\n" +
            std::string(kSlowEnd));
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(run(Program::kStep, {1}).has_value());
  EXPECT_THAT(run(Program::kStep, {1}, 2).error().message,
              AllOf(HasSubstr("the trainer ended with exit code 1 ("), EndsWith("ValueError: bad label")));
}

// What the trainer said before it closed its socket counts, also if the next step has begun since.
TEST_F(BadTrainerTest, AFailureIsReadFromAClosedSocket) {
  write_raw(R"(
describe()
receive()
send(type="finished", number=receive()["number"], loss_sum=0, metrics=[0, 0])
send(type="failed", message="no more labels")
connection.close()
open("closed", "w").close()
signal.pause()
)");
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(run(Program::kStep, {1}).has_value());
  while (!std::filesystem::exists(folder / "closed")) continue;
  const auto result = run(Program::kStep, {1}, 2);
  EXPECT_EQ(result.error().code, ErrorCode::kConfig);
  EXPECT_THAT(result.error().message, HasSubstr("the trainer can't go on: no more labels"));
}

TEST_F(BadTrainerTest, AClosedSocket) {
  write_raw("describe()\nreceive()\nreceive()\nconnection.close()\nsignal.pause()\n");
  // The engine gives up when the process doesn't end, or when the step takes too long.
  for (const Duration limit : {Duration(1h), Duration(500ms)}) {
    options.answer_timeout = limit;
    const Error error = step_error();
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    EXPECT_THAT(error.message, HasSubstr("the trainer closed its socket (in this worker's step 1000)"));
  }
}

TEST_F(BadTrainerTest, AnAnswerThatNeverComes) {
  options.answer_timeout = 500ms;
  write(std::string(kNumpyLoop) + "    import threading\n    threading.Event().wait()\n");
  const Error error = step_error();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, AllOf(HasSubstr("the trainer hasn't answered for 500 ms (in this worker's step 1000)"),
                                   HasSubstr("most recent call first"), HasSubstr("train.py\", line 7 in <module>")));
}

// The chief waits longer for an evaluation than for a step, and so does the engine for its batch.
TEST_F(BadTrainerTest, AnEvaluationThatNeverEndsHasTenTimesTheLimit) {
  options.answer_timeout = 50ms;
  write_raw("describe()\nreceive()\nreceive()\nsignal.pause()\n");
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  const auto result = run(Program::kEvaluate, {1});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(result.error().message, HasSubstr("the trainer hasn't answered for 500 ms (while it evaluated)"));
}

// The child has the socket and the pipes, too. It must not keep the engine waiting, and must not live on.
TEST_F(BadTrainerTest, AForkedChildThatOutlivesTheTrainer) {
  write_raw(R"(
describe()
receive(); receive()
child = os.fork()
if child == 0:
    while True: signal.pause()
print("the child is", child, flush=True)
sys.exit(3)
)");
  const Error error = step_error();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("ended with exit code 3 (in this worker's step 1000)"));
  ASSERT_THAT(lines, SizeIs(1));
  const pid_t child = std::stoi(lines[0].substr(lines[0].rfind(' ')));
  // The kernel may need a moment to end it. A zombie that its new parent hasn't reaped yet has ended, too.
  for (;;) {
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string number, name, state;
    if (!(stat >> number >> name >> state) || state == "Z" || state == "X") break;
  }
}

// Processes in a session or a group of their own aren't in the trainer's process group. They are gone when the error is
// there.
TEST_F(BadTrainerTest, ADaemonThatTheTrainerStarted) {
  write_raw(R"(
describe()
receive(); receive()
begun, begins = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if os.fork() > 0: os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(1, b"the daemon is %d\n" % os.getpid())  # in one piece, because two processes write
        os.write(begins, b"1")
        while True: signal.pause()
    os._exit(0)
os.wait()
import subprocess
child = subprocess.Popen(["sleep", "1000"], preexec_fn=os.setpgrp)
os.write(1, b"a group of its own has %d\n" % child.pid)
os.read(begun, 1); os.read(begun, 1)
sys.exit(3)
)");
  const Error error = step_error();
  EXPECT_THAT(error.message, HasSubstr("ended with exit code 3"));
  ASSERT_THAT(lines, SizeIs(3));
  for (const std::string& line : lines) EXPECT_EQ(::kill(std::stoi(line.substr(line.rfind(' '))), 0), -1) << line;
}

// Otherwise a trainer that leaves a process in each step would fill the table of processes.
TEST_F(BadTrainerTest, AnOrphanThatHasEndedIsReapedWhileTheTrainerRuns) {
  write(std::string(kNumpyLoop) + R"(
    import os, time
    told, tells = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            os.write(tells, b"%d" % os.getpid())
        os._exit(0)
    os.wait()
    orphan = os.read(told, 20).decode()
    def has_ended():
        try:
            return open(f"/proc/{orphan}/stat").read().split()[2] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True  # it is reaped already
    while not has_ended(): time.sleep(0.001)
    print("the orphan is", orphan)
    job.push_pull({"w": np.zeros((2, 3))}, loss=0)
)");
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(run(Program::kStep, {1, 2}).has_value());
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(::kill(std::stoi(lines[0].substr(lines[0].rfind(' '))), 0), -1) << lines[0];
}

TEST_F(BadTrainerTest, AForkedChildThatUsesTheJob) {
  write(std::string(kNumpyLoop) + R"(
    import os, sys
    if os.fork() == 0:
        try:
            job.push_pull({"w": np.zeros((2, 3))}, loss=0)
        except disttrain.DisttrainError as error:
            print(error, flush=True)
            os._exit(0)
    os.wait()
    job.push_pull({"w": np.ones((2, 3))}, loss=1)
)");
  const Error error = step_error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, HasSubstr("can't go on: a child process of the trainer called job.push_pull(); only "));
}

TEST_F(BadTrainerTest, AnswersThatDontFit) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"send(type='finished', number=1, loss_sum=1, metrics=[1])", "returned metrics of 1 numbers, expected 2"},
      {"send(type='finished', number=1, loss_sum='big', metrics=[1, 2])", "with loss_sum that isn't a number"},
      {"send(type='ready', number=1, end=7)", "announced the gradients of the words 0 to 7 of 6"},
      {"send(type='ready', number=1, end=0)", "expected ascending ranges"},
      {"send(type='values')", "sent a message without being asked, or twice"},
      {"[send(type='checkpoint') for i in range(100)]", "asked for more than 16 checkpoints in one step"},
      {"[send(type='finished', number=1, loss_sum=1, metrics=[1, 2]) for i in range(2)]", ""},
  };
  for (const auto& [answer, expected] : cases) {
    write_raw("describe()\nreceive()\nreceive()\n" + answer + "\nsignal.pause()\n");
    ASSERT_TRUE(make().has_value());
    ASSERT_TRUE(open().has_value());
    auto result = run(Program::kStep, {1, 2});
    if (expected.empty()) {
      // The second answer shows at the next step.
      ASSERT_TRUE(result.has_value());
      result = run(Program::kStep, {1, 2});
      EXPECT_THAT(result.error().message, HasSubstr("sent the end of a computation without being asked, or twice"));
    } else {
      EXPECT_EQ(result.error().code, ErrorCode::kConfig);
      EXPECT_THAT(result.error().message, HasSubstr(expected));
    }
  }
}

TEST_F(BadTrainerTest, OutputsThatDontFit) {
  write_raw(
      "describe()\nreceive()\nreceive()\nsend(type='finished', number=1, loss_sum=0, metrics=[])\nsignal.pause()\n");
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  EXPECT_THAT(run(Program::kPredict, {1}).error().message, HasSubstr("returned 0 outputs for 1 records"));
}

// But no gradient leaves: all of them are skipped, or none.
TEST_F(BadTrainerTest, ALossThatIsntFiniteIsNoError) {
  write(std::string(kNumpyLoop) + "    job.push_pull({'w': np.zeros((2, 3))}, loss=float('nan'))\n");
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  const auto result = run(Program::kStep, {1});
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(std::isnan(result->loss_sum));
  EXPECT_THAT(ranges, IsEmpty());
}

// ---- after a failure ----

TEST_F(BadTrainerTest, AfterAFailureAnotherTrainerGoesOn) {
  write(std::string(kNumpyLoop) + R"(
    import os
    if not os.path.exists("failed"):
        open("failed", "w").close()
        os._exit(5)
    job.push_pull({"w": np.full((2, 3), job.step_number)}, loss=0)
)");
  EXPECT_THAT(step_error().message, HasSubstr("ended with exit code 5"));
  const auto result = run(Program::kStep, {1}, 1001);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_THAT(gradients->floats(), Each(1001));
}

TEST_F(BadTrainerTest, AnotherModelAfterAFailure) {
  write(R"(
import disttrain, numpy as np, os
job = disttrain.init(metrics=[])
job.wrap({"w": np.zeros(3 if os.path.exists("failed") else 2)})
for x in job.batches(range(100)):
    open("failed", "w").close()
    os._exit(5)
)");
  EXPECT_THAT(step_error().message, HasSubstr("ended with exit code 5"));
  const auto result = run(Program::kStep, {1}, 1001);
  EXPECT_EQ(result.error().code, ErrorCode::kConfig);
  EXPECT_THAT(result.error().message, HasSubstr("describes another model than the trainer before it"));
}

TEST_F(BadTrainerTest, ADeathBetweenTwoStepsIsReportedOnce) {
  write_raw(R"(
describe()
receive()
send(type="finished", number=receive()["number"], loss_sum=0, metrics=[0, 0])
if not os.path.exists("failed"):
    open("failed", "w").close()
    sys.exit(6)
signal.pause()
)");
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(run(Program::kStep, {1}).has_value());
  EXPECT_THAT(run(Program::kStep, {1}).error().message, HasSubstr("ended with exit code 6"));
  EXPECT_TRUE(run(Program::kStep, {1}).has_value());
}

TEST_F(BadTrainerTest, AnAbortedTrainerThatHangsIsKilled) {
  write_raw("describe()\nreceive()\nreceive()\nsignal.pause()\n");
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  const std::int64_t record = 1;
  const ColumnValues column{std::as_bytes(std::span(&record, 1)), {}};
  engine->start({Program::kStep, Batch{1, std::span(&column, 1)}, StepSeed{}}, *this);
  cancelled = true;  // the job is being closed
  engine->abort();
  EXPECT_FALSE(output.has_value());
}

// The arrays may be used for something else only after the end of this computation, and not of another one.
TEST_F(BadTrainerTest, AnAbortedTrainerWhoseAnswersDontFit) {
  for (const std::string answer : {
           "send(type='finished', number=99, loss_sum=1, metrics=[1, 2])",
           "send(type='ready', number=99, end=6)",
           "send(type='values')",
           // Without end:
           "while True: send(type='ready', number=1, end=3)",
           "while True: send(type='checkpoint')",
       }) {
    SCOPED_TRACE(answer);
    write_raw("describe()\nreceive()\nreceive()\n" + answer + "\nsignal.pause()\n");
    ASSERT_TRUE(make().has_value());
    ASSERT_TRUE(open().has_value());
    const std::int64_t record = 1;
    const ColumnValues column{std::as_bytes(std::span(&record, 1)), {}};
    engine->start({Program::kStep, Batch{1, std::span(&column, 1)}, StepSeed{}}, *this);
    engine->abort();
    const auto result = run(Program::kStep, {1});
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kConfig);
    EXPECT_THAT(result.error().message, HasSubstr("without being asked, or twice (in this worker's step 0)"));
  }
}

TEST_F(BadTrainerTest, ATrainerThatIgnoresTheEndIsKilled) {
  write_raw(R"(
signal.signal(signal.SIGTERM, lambda *args: open("terminated", "w").close())
describe()
while True: signal.pause()
)");
  ASSERT_TRUE(make().has_value());
  engine.reset();
  EXPECT_TRUE(std::filesystem::exists(folder / "terminated"));
}

// ---- what it prints ----

TEST_F(BadTrainerTest, AFloodOfOutputDoesntStopTheSteps) {
  write(std::string(kNumpyLoop) + R"(
    for i in range(20000): print("x" * 100)
    job.push_pull({"w": np.zeros((2, 3))}, loss=job.step_number)
)");
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  EXPECT_EQ(run(Program::kStep, {1}, 4)->loss_sum, 4);
  // The log gets a part of the lines, and the number of the others.
  engine.reset();
  std::uint64_t logged = 0;
  for (const std::string& line : lines) logged += line.front() == '(' ? std::stoull(line.substr(1)) : 1;
  EXPECT_EQ(logged, 20000U);
  EXPECT_LT(lines.size(), 10000U);
}

TEST_F(BadTrainerTest, AFloodRightBeforeTheEndIsCounted) {
  write(std::string(kNumpyLoop) + R"(
    import os
    for i in range(20000): print("x" * 100)
    os._exit(3)
)");
  EXPECT_THAT(step_error().message, HasSubstr("the trainer ended with exit code 3 (in this worker's step 1000)"));
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines.back(), HasSubstr("lines are left out, because it prints too fast for the log)"));
  std::uint64_t logged = 0;
  for (const std::string& line : lines) logged += line.front() == '(' ? std::stoull(line.substr(1)) : 1;
  EXPECT_EQ(logged, 20000U);
}

}  // namespace
}  // namespace disttrain::workerd::test
