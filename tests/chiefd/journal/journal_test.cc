#include "chiefd/journal/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "chiefd/journal/codec.h"
#include "chiefd/journal/limits.h"

namespace disttrain::chiefd {
namespace {

class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    std::string pattern = testing::TempDir() + "disttrain-journal-XXXXXX";
    directory_ = root_ = ::mkdtemp(pattern.data());
  }
  ~JournalTest() override { std::filesystem::remove_all(root_); }

  std::string path() const { return directory_ + "/journal"; }

  JournalFile::Opened open() {
    Result<JournalFile::Opened> opened = JournalFile::open(directory_);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  Error open_error() {
    const Result<JournalFile::Opened> opened = JournalFile::open(directory_);
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
  }
  static void append(JournalFile::Opened& opened, const Record& record) {
    const Status status = opened.file.append(std::span(&record, 1));
    EXPECT_TRUE(status) << status.error().message;
  }
  std::string content() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void replace(const std::string& bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }

  std::string root_;
  std::string directory_;
};

constexpr int kKinds = 13;
static_assert(kKinds == std::variant_size_v<Record>);

Record some_record(int i) {
  const JobId job(static_cast<std::uint32_t>(i));
  const Member borrower{TaskId{Role::kWorker, 3}, Incarnation(9)};
  switch (i % kKinds) {
    case 0:
      return TermRecord{JournalId(77), Term(static_cast<std::uint64_t>(i) + 1), Incarnation(5)};
    case 1:
      return SubmittedRecord{job, "name", "[job]\nname = \"name\"\n", 3, 64};
    case 2:
      return StateRecord{job, JobState::kRunning, "trains"};
    case 3:
      return GenerationRecord{job,
                              Generation(5),
                              77,
                              {Owner{Member{TaskId{Role::kPs, 1}, Incarnation(4)}, "host:1"}},
                              Roster{RosterVersion(2), {borrower}},
                              "/checkpoints/step-10",
                              Step(10),
                              3,
                              {std::chrono::seconds(4), 90, 900},
                              "/models/first",
                              4,
                              true};
    case 4:
      return DescribedRecord{JobDescribed{
          job, ModelSpec{{VariableSpec{"w", {784, 10}, VariableKind::kTrainable, {}, 784, 10}}, {}, {}, {}}, 60000, 5,
          10000}};
    case 5:
      return TrainingRecord{job, Generation(5)};
    case 6:
      return RosterRecord{job, Generation(5), Roster{RosterVersion(3), {borrower}}};
    case 7:
      return OpenGrantsRecord{job, Generation(5), {LeaseId(1), LeaseId(9)}};
    case 8:
      return CheckpointRecord{job, Generation(5), Step(20), "/checkpoints/step-20"};
    case 9:
      return EventRecord{1'700'000'000'000'000'000,
                         job,
                         "task_lost",
                         "ps/1",
                         20,
                         "ps/1 is dead",
                         job.value % 2 == 0 ? "it is gone" : "",
                         77'000'000'000};
    case 10: {
      EndRecord end;
      end.job = job;
      end.state = JobState::kFailed;
      end.reason = "ps/1: out of memory";
      end.generation = Generation(5);
      end.step = Step(20);
      end.steps_target = 90;
      end.examples = 2000;
      end.training = {std::chrono::seconds(4), 90, 900};
      end.epochs = 2;
      end.late = 3;
      end.skipped = 4;
      end.staleness = 1.5;
      end.loss = 0.25;
      end.evaluation = EvaluationStatus{Step(20), 0.5, {{"accuracy", 0.75}}, 100, true, 77};
      end.code = ErrorCode::kUnavailable;
      end.root_cause = RootCause{TaskId{Role::kPs, 1}, "out of memory"};
      end.metrics = {{"accuracy", 0.5}};
      return end;
    }
    case 11: {
      EvaluationsRecord evaluations;
      evaluations.job = job;
      evaluations.newest = EvaluationStatus{Step(20), 0.5, {{"accuracy", 0.75}}, 100, false, 77};
      evaluations.evaluated = {{Generation(5), Step(10), "/checkpoints/step-10"},
                               {Generation(5), Step(20), "/checkpoints/step-20"}};
      evaluations.best = {{evaluations.evaluated[0], 0.8}, {evaluations.evaluated[1], 0.75}};
      evaluations.best_value = 0.8;
      evaluations.best_step = Step(10);
      evaluations.counted = Step(20);
      evaluations.without_progress = 1;
      evaluations.exported = "/checkpoints/step-10";
      evaluations.early_end = job.value % 2 == 0 ? "no progress" : "";
      return evaluations;
    }
    default:
      return GrantRecord{job,
                         Generation(2),
                         {borrower},
                         Lease{LeaseId(4), 1, {{0, 5}, {7, 9}}, Step(1), 2, 3, RosterVersion(4), Rank(0)}};
  }
}

TEST_F(JournalTest, MissingDirectoryIsMadeAndTheJournalIsNew) {
  directory_ += "/a/b";
  EXPECT_EQ(open().state, JournalState());
}

TEST_F(JournalTest, StateSurvivesReopening) {
  JournalState expected;
  {
    JournalFile::Opened opened = open();
    for (int i = 0; i < 10; ++i) {
      append(opened, some_record(i));
      chiefd::apply(expected, some_record(i));
    }
  }
  EXPECT_EQ(open().state, expected);
  EXPECT_EQ(open().state, expected);  // rewritten once
}

TEST_F(JournalTest, JournalThatHasGrownFarIsRewrittenAndLosesNothing) {
  JournalState expected;
  std::uint64_t longest = 0;
  {
    JournalFile::Opened opened = open();
    const Record submitted = SubmittedRecord{JobId(1), "name", std::string(10'000, 'x'), 3};
    append(opened, submitted);
    chiefd::apply(expected, submitted);
    for (std::uint64_t written = 0; written < 2 * JournalFile::kLeastRewritten; written += 10'000) {
      const Record record =
          SubmittedRecord{JobId(1), "name", std::string(10'000, static_cast<char>('a' + written % 26)), 3};
      append(opened, record);
      const auto put_off = opened.file.rewrite_if_far_grown();
      ASSERT_TRUE(put_off.has_value());
      ASSERT_FALSE(put_off->has_value());
      chiefd::apply(expected, record);
      longest = std::max<std::uint64_t>(longest, std::filesystem::file_size(path()));
    }
  }
  EXPECT_LE(longest, kJournalHeadBytes + JournalFile::kLeastRewritten + 20'000);
  EXPECT_LT(std::filesystem::file_size(path()), longest);
  EXPECT_EQ(open().state, expected);
}

TEST_F(JournalTest, OtherVersionIsRefusedWithASentenceThatSaysWhatToDo) {
  open();
  const std::string ours = content();
  for (const int step : {-1, 1}) {
    std::string bytes = ours;
    bytes[8] = static_cast<char>(static_cast<int>(kJournalVersion) + step);
    bytes[12] = static_cast<char>(bytes[12] ^ 1);  // its checksum, too
    replace(bytes);
    const Error error = open_error();
    EXPECT_EQ(error.code, ErrorCode::kConfig);
    EXPECT_NE(error.message.find(step > 0 ? "a newer chiefd" : "an older chiefd"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("install that version again"), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find(path() + ".mark away") != std::string::npos, step < 0) << error.message;
    EXPECT_EQ(content(), bytes) << "nothing was changed";
  }
}

TEST_F(JournalTest, ForeignFileIsNotOverwritten) {
  replace("something of a user's that is longer than a header");
  EXPECT_EQ(open_error().code, ErrorCode::kData);
  EXPECT_EQ(content().substr(0, 9), "something");
}

TEST_F(JournalTest, FileThatNoChiefHasWrittenIsRefusedBeforeItFillsTheMemory) {
  {
    JournalFile::Opened opened = open();
    append(opened, TermRecord{JournalId(77), Term(1), Incarnation(5)});
  }
  const std::string ours = content();
  const std::string large = directory_ + "/journal";
  std::filesystem::resize_file(large, kMaxJournalBytes + 1);  // a hole, which takes no space
  const Error error = open_error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_NE(error.message.find(large + " has more than the " + std::to_string(kMaxJournalBytes) + " bytes"),
            std::string::npos)
      << error.message;
  std::filesystem::resize_file(large, ours.size());
  EXPECT_EQ(content(), ours) << "nothing was changed";
}

TEST_F(JournalTest, MarkThatNoChiefHasWrittenIsWrittenAgainBeforeItFillsTheMemory) {
  {
    JournalFile::Opened opened = open();
    append(opened, TermRecord{JournalId(77), Term(1), Incarnation(5)});  // makes the mark, too
  }
  const std::string mark = directory_ + "/journal.mark";
  const std::uint64_t size = std::filesystem::file_size(mark);
  std::filesystem::resize_file(mark, kMaxJournalBytes);  // a hole, which takes no space
  const JournalFile::Opened opened = open();
  ASSERT_EQ(opened.told.size(), 1u);
  EXPECT_NE(opened.told[0].find(mark + " was damaged"), std::string::npos) << opened.told[0];
  EXPECT_EQ(std::filesystem::file_size(mark), size);
}

TEST_F(JournalTest, SecondChiefOnOneDirectoryIsRefused) {
  const JournalFile::Opened first = open();
  const Error error = open_error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_NE(error.message.find(directory_), std::string::npos);
  EXPECT_NE(error.message.find("(process " + std::to_string(::getpid()) + ")"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace disttrain::chiefd
