#include "chiefd/core/job/facts/faults.h"

#include <gtest/gtest.h>

namespace disttrain::chiefd {
namespace {

struct Failure {
  ErrorCode code;
  std::string reason;
};
std::string fault_of(const Failure& failure) {
  const Fault fault = chiefd::fault_of(failure.code, failure.reason);
  return fault.is_own ? fault.what : "";
}

Failure trainer_error(const std::string& lines, const std::string& step = "1001") {
  return {ErrorCode::kUnavailable,
          "the trainer ended with exit code 1 (in this worker's step " + step + "); its last lines:" + lines};
}

constexpr char kTraceback[] =
    "\n  epoch 3"
    "\n  Traceback (most recent call last):"
    "\n    File \"/job/train.py\", line 10, in <module>"
    "\n      train(batch)"
    "\n    File \"/job/model.py\", line 7, in train"
    "\n      raise ValueError(f\"bad label {label}\")"
    "\n      ^^^^^^^^^^^^^^^^^^^^^^^"
    "\n  ValueError: bad label ";

TEST(Fault, IsTheExceptionAndItsPlaceWithoutValues) {
  EXPECT_EQ(fault_of(trainer_error(kTraceback + std::string("7"))), "ValueError at /job/model.py:7 in train");
  EXPECT_EQ(fault_of(trainer_error(kTraceback + std::string("8"), "17")),
            fault_of(trainer_error(kTraceback + std::string("7"))));
}

// A codec joins the lines of a sentence.
TEST(Fault, IsFoundInOneLineToo) {
  std::string reason = trainer_error(kTraceback).reason;
  for (std::size_t at = reason.find('\n'); at != std::string::npos; at = reason.find('\n'))
    reason.replace(at, 1, "\\n");
  EXPECT_EQ(fault_of({ErrorCode::kUnavailable, reason}), "ValueError at /job/model.py:7 in train");
}

TEST(Fault, IsTheLastOfSeveralExceptions) {
  const std::string second =
      "7\n  During handling of the above exception, another exception occurred:"
      "\n  Traceback (most recent call last):"
      "\n    File \"/job/train.py\", line 12, in <module>"
      "\n  torch.cuda.OutOfMemoryError: tried to allocate 2 GiB"
      "\n  Free: 1 GiB";
  EXPECT_EQ(fault_of(trainer_error(kTraceback + second)),
            "torch.cuda.OutOfMemoryError at /job/train.py:12 in <module>");
}

TEST(Fault, OfAnExceptionWithoutATextOrAFunction) {
  EXPECT_EQ(fault_of(trainer_error("\n    File \"a.py\", line 1, in f\n  KeyboardInterrupt")),
            "KeyboardInterrupt at a.py:1 in f");
  EXPECT_EQ(fault_of(trainer_error("\n    File \"a.py\", line 3\n      x = = 1\n          ^\n  SyntaxError: invalid")),
            "SyntaxError at a.py:3");
}

TEST(Fault, IsEmptyIfAnotherTaskMayBeTheCause) {
  EXPECT_EQ(fault_of({ErrorCode::kUnavailable, "waited 60 s for shard 0"}), "");
  EXPECT_EQ(fault_of(trainer_error("\n  nothing but\n  words")), "");
}

// Its last lines may have a traceback of an exception that the trainer caught.
TEST(Fault, OfAKilledTrainerIsEmpty) {
  EXPECT_EQ(
      fault_of({ErrorCode::kUnavailable, std::string("the trainer was killed by signal 9 (SIGKILL)") + kTraceback}),
      "");
}

TEST(Fault, OfAFailureWithoutATrainerIsItsFirstLine) {
  EXPECT_EQ(fault_of({ErrorCode::kFailed, "computing a step: out of memory\nmore"}), "computing a step: out of memory");
}

TEST(Fault, HasABound) {
  EXPECT_LE(fault_of({ErrorCode::kFailed, std::string(10000, 'x')}).size(), 500u);
}

TEST(Fault, EndOfATrainerMayHaveAnotherCause) {
  for (const std::string end : {"the trainer ended with exit code 3", "the trainer was killed by signal 11"})
    EXPECT_EQ(chiefd::fault_of(ErrorCode::kUnavailable,
                               "computing a step: " + end + " (Segmentation fault); its last " + "lines:\n  " + end),
              (Fault{end, false}));
  EXPECT_EQ(chiefd::fault_of(ErrorCode::kUnavailable, "the trainer was killed by signal 9 (SIGKILL)").what, "");
}

// As Python's faulthandler prints it.
TEST(Fault, OfACrashIsItsSignalAndItsPlace) {
  const std::string stack =
      "; its last lines:\n  Fatal Python error: Segmentation fault\n  \n  Current thread 0x1 (most recent call first):"
      "\n    File \"/job/model.py\", line 11 in step\n    File \"/job/train.py\", line 5 in <module>"
      "\n  Extension modules: numpy.linalg (total: 1)";
  const std::string killed = "the trainer was killed by signal 11";
  EXPECT_EQ(
      chiefd::fault_of(ErrorCode::kUnavailable, killed + " (Segmentation fault) (in this worker's step 3)" + stack),
      (Fault{killed + " at /job/model.py:11 in step", true}));
  EXPECT_EQ(chiefd::fault_of(ErrorCode::kUnavailable, "the trainer was killed by signal 9 (SIGKILL)" + stack).what, "");
}

TEST(Fault, OfACrashIsInTheThreadThatCrashed) {
  const std::string helper = "\n  Thread 0x2 (most recent call first):\n    File \"wait.py\", line 3 in wait";
  const std::string crashed = "\n  Current thread 0x1 (most recent call first):\n    File \"a.py\", line 11 in step";
  const std::string other = "\n  Thread 0x3 (most recent call first):\n    File \"b.py\", line 4 in run";
  const std::string killed = "the trainer was killed by signal 11";
  EXPECT_EQ(chiefd::fault_of(ErrorCode::kUnavailable, killed + helper + crashed).what, killed + " at a.py:11 in step");
  EXPECT_EQ(chiefd::fault_of(ErrorCode::kUnavailable, killed + helper + other), (Fault{killed, false}));
  EXPECT_EQ(chiefd::fault_of(ErrorCode::kUnavailable, killed + other), (Fault{killed, false}))
      << "the rest was cut off";
}

}  // namespace
}  // namespace disttrain::chiefd
