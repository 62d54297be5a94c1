// The bytes of a journal have changed since they were written. Either all acknowledged records are there, or the chief
// reports the damage. The journal never loses its newest records silently.
#include <gtest/gtest.h>

#include <algorithm>

#include "chiefd/journal/file.h"
#include "chiefd/journal/limits.h"
#include "tests/chiefd/journal/memory_disk.h"

namespace disttrain::chiefd {
namespace {

using Bytes = JournalPlatter::Bytes;

Record some_event(std::uint64_t number, std::size_t size = 20) {
  return EventRecord{1, JobId(), "kind", "ps/0", number, std::string(size, 'a')};
}

class JournalDamageTest : public testing::Test {
 protected:
  // Runs a chief once: it takes a term and appends these batches.
  void live(const std::vector<std::vector<Record>>& batches) {
    Result<JournalFile::Opened> opened = open(platter_);
    ASSERT_TRUE(opened) << opened.error().message;
    append(opened->file, {TermRecord{JournalId(77), acknowledged_.term.next()}});
    for (const std::vector<Record>& batch : batches) append(opened->file, batch);
  }
  void append(JournalFile& file, const std::vector<Record>& batch) {
    const Status written = file.append(batch);
    ASSERT_TRUE(written) << written.error().message;
    for (const Record& record : batch) chiefd::apply(acknowledged_, record);
  }
  static Result<JournalFile::Opened> open(JournalPlatter& platter,
                                          std::uint64_t least_rewritten = JournalFile::kLeastRewritten) {
    Result<std::unique_ptr<JournalDisk>> disk = platter.open();
    if (!disk) return tl::unexpected(disk.error());
    return JournalFile::open(std::move(*disk), least_rewritten);
  }
  static Result<JournalFile::Salvaged> salvage(JournalPlatter& platter) {
    return JournalFile::salvage(platter.open().value(), JournalId(88));
  }
  // Returns true if all acknowledged records are there, and false if the damage is reported.
  bool is_all_there(JournalPlatter& platter, const std::string& what) {
    const Result<JournalFile::Opened> opened = open(platter);
    if (opened) {
      EXPECT_EQ(opened->state, acknowledged_) << what;
      return true;
    }
    EXPECT_EQ(opened.error().code, ErrorCode::kData) << what << ": " << opened.error().message;
    EXPECT_NE(opened.error().message.find("/state/journal"), std::string::npos) << opened.error().message;
    return false;
  }
  Bytes journal() { return *platter_.content("journal"); }

  JournalPlatter platter_;
  JournalState acknowledged_;
};

TEST_F(JournalDamageTest, EachFlippedByteIsMendedOrReported) {
  live({{SubmittedRecord{JobId(1), "a", "text", 0}}});
  live({{some_event(1)}, {some_event(2), some_event(3)}, {some_event(4)}, {some_event(5)}});
  for (const std::string name : {"journal", "journal.mark"}) {
    const Bytes whole = *platter_.content(name);
    std::size_t told = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      // Most bytes of the file's head are 0. Only every eighth of these is tried.
      if (whole[at] == std::byte{0} && at % 8 != 0) continue;
      JournalPlatter other = platter_.copied();
      (*other.content(name))[at] ^= std::byte(1 << (at % 8));
      told += is_all_there(other, name + " flipped at byte " + std::to_string(at)) ? 0 : 1;
    }
    // Flips each bit of the format's version number.
    for (std::size_t bit = 0; bit < 32; ++bit) {
      JournalPlatter other = platter_.copied();
      (*other.content(name))[8 + bit / 8] ^= std::byte(1 << (bit % 8));
      is_all_there(other, name + "'s version with bit " + std::to_string(bit) + " flipped");
    }
    EXPECT_EQ(told > 0, name == "journal") << "a mark can be made again, the midst of a journal can't";
  }
}

TEST_F(JournalDamageTest, EachTruncationIsMendedOrReported) {
  live({{SubmittedRecord{JobId(1), "a", "text", 0}}});
  live({{some_event(1)}, {some_event(2), some_event(3)}, {some_event(4)}, {some_event(5)}});
  const Bytes whole = journal();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    JournalPlatter other = platter_.copied();
    other.content("journal")->resize(size);
    is_all_there(other, "cut to " + std::to_string(size));
  }
}

TEST_F(JournalDamageTest, LastAcknowledgedRecordIsMendedFromItsCopy) {
  live({});
  (*platter_.content("journal"))[journal().size() - 1] ^= std::byte{1};
  const Result<JournalFile::Opened> opened = open(platter_);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->state.term, Term(1)) << "the next chief would take term 1 again";
  ASSERT_EQ(opened->told.size(), 1u);
  EXPECT_NE(opened->told[0].find("repaired the end"), std::string::npos);
}

TEST_F(JournalDamageTest, FlippedBitInALargeBatchIsReportedEvenInTheLastBatch) {
  const std::vector<Record> large(1, SubmittedRecord{JobId(1), "a", std::string(3 << 20, 'x'), 0});
  for (const bool is_last : {false, true}) {
    platter_ = JournalPlatter();
    acknowledged_ = JournalState();
    live({large});
    const std::size_t flipped = journal().size() - (2 << 20);
    if (!is_last) live({{some_event(1)}});
    (*platter_.content("journal"))[flipped] ^= std::byte{4};
    const Result<JournalFile::Opened> opened = open(platter_);
    ASSERT_FALSE(opened) << is_last;
    EXPECT_EQ(opened.error().code, ErrorCode::kData);
    EXPECT_NE(opened.error().message.find("chiefd --salvage"), std::string::npos);
    EXPECT_NE(platter_.content("journal"), nullptr) << "nothing was changed";
  }
}

TEST_F(JournalDamageTest, EmptyOrMissingJournalIsDamageWhereOneWasThere) {
  live({});
  for (const std::size_t size : {0u, 11u}) {
    JournalPlatter other = platter_.copied();
    other.content("journal")->resize(size);
    EXPECT_FALSE(is_all_there(other, "cut to " + std::to_string(size)));
    other.remove("journal.mark");
    EXPECT_FALSE(is_all_there(other, "without its mark"));
  }
  platter_.remove("journal");
  EXPECT_FALSE(is_all_there(platter_, "removed"));
  platter_.remove("journal.mark");
  EXPECT_EQ(open(platter_)->state, JournalState()) << "a folder where none ever was";
}

TEST_F(JournalDamageTest, OlderCopyOfTheJournalIsReported) {
  live({});
  const Bytes older = journal();
  live({});
  platter_.put("journal", older);
  const Result<JournalFile::Opened> opened = open(platter_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kData);
  EXPECT_NE(opened.error().message.find("has seen term 2"), std::string::npos) << opened.error().message;
}

// The power fails during each operation of some lives. The bytes that are left on the disk are drawn at random.
TEST_F(JournalDamageTest, TornWritesAreCutAndNothingAcknowledgedIsLost) {
  Random random(1, 2);
  int torn = 0;
  for (std::uint64_t round = 0; round < 250; ++round) {
    platter_ = JournalPlatter();
    acknowledged_ = JournalState();
    JournalState wanted;  // acknowledged_, and the batch that was being appended when the power failed
    for (int life = 0; life < 3; ++life) {
      if (life == 2) platter_.cut_power_after(random.below(60), random);
      Result<JournalFile::Opened> opened = open(platter_, 500);
      for (std::uint64_t i = 0; opened && i < 30; ++i) {
        std::vector<Record> batch(1 + random.below(3), some_event(i, random.below(100)));
        if (i == 0) batch = {TermRecord{JournalId(77), acknowledged_.term.next()}};
        if (random.below(10) == 0) batch.assign(8, some_event(i, 4000));  // too large for a copy
        wanted = acknowledged_;
        for (const Record& record : batch) chiefd::apply(wanted, record);
        if (!opened->file.append(batch)) break;
        acknowledged_ = wanted;
        if (!opened->file.rewrite_if_far_grown().has_value()) break;
      }
    }
    platter_.restart(random);
    const Result<JournalFile::Opened> opened = open(platter_);
    ASSERT_TRUE(opened) << "round " << round << ": " << opened.error().message;
    // A batch may be on the disk in several parts. After a loss of power, only the first parts may be there.
    const bool is_between =
        opened->state.events.size() >= acknowledged_.events.size() &&
        opened->state.events.size() <= wanted.events.size() &&
        std::equal(acknowledged_.events.begin(), acknowledged_.events.end(), opened->state.events.begin());
    ASSERT_TRUE(is_between) << "round " << round;
    ASSERT_GE(opened->state.term, acknowledged_.term) << "round " << round;
    torn += opened->cut_bytes > 0 ? 1 : 0;
  }
  EXPECT_GT(torn, 10);
}

// ---- salvage

TEST_F(JournalDamageTest, SalvageKeepsTheDamagedFileAndPassesOverLostNumbers) {
  live({{SubmittedRecord{JobId(1), "a", "text", 0}}, {some_event(1)}});
  const std::size_t flipped = journal().size() - 1;
  live({{SubmittedRecord{JobId(2), "b", "text", 0}}, {SubmittedRecord{JobId(3), "c", "text", 0}}, {some_event(2)}});
  ASSERT_EQ(acknowledged_.term, Term(2));
  (*platter_.content("journal"))[flipped + 40] ^= std::byte{1};
  const Bytes damaged = journal();
  ASSERT_FALSE(open(platter_));
  for (int again = 0; again < 2; ++again) {
    const Result<JournalFile::Salvaged> salvaged = salvage(platter_);
    ASSERT_TRUE(salvaged) << salvaged.error().message;
    EXPECT_EQ(salvaged->damage.empty(), again == 1);
  }
  EXPECT_EQ(*platter_.content("journal.damaged-1"), damaged);
  EXPECT_EQ(platter_.content("journal.damaged-2"), nullptr);
  const Result<JournalFile::Opened> opened = open(platter_);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->state.journal, JournalId(88));
  EXPECT_GE(opened->state.term, acknowledged_.term);
  EXPECT_GE(opened->state.last_job, acknowledged_.last_job);
  EXPECT_EQ(opened->state.jobs.count(JobId(1)), 1u);
}

TEST_F(JournalDamageTest, SalvageOfALostJournalBeginsBehindTheTermOfItsMark) {
  live({});
  live({});
  platter_.remove("journal");
  ASSERT_TRUE(salvage(platter_));
  const Result<JournalFile::Opened> opened = open(platter_);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_GE(opened->state.term, Term(2));
  EXPECT_EQ(opened->state.journal, JournalId(88));
}

TEST_F(JournalDamageTest, LargeMarkOfAnotherProgramIsADamagedOne) {
  live({{SubmittedRecord{JobId(1), "a", "text", 0}}});
  platter_.put("journal.mark", Bytes(1 << 20, std::byte{'x'}));
  JournalPlatter other = platter_.copied();
  EXPECT_TRUE(is_all_there(other, "with a large mark"));
  platter_.remove("journal");
  EXPECT_FALSE(is_all_there(platter_, "with a large mark alone"));
  const Result<JournalFile::Salvaged> salvaged = salvage(platter_);
  ASSERT_TRUE(salvaged) << salvaged.error().message;
  EXPECT_EQ(platter_.content("journal.mark.damaged-1")->size(), kMaxMarkBytes);
  EXPECT_TRUE(open(platter_));
}

TEST_F(JournalDamageTest, PowerLossAmidSalvageLeavesDamageOrWhatWasSalvaged) {
  Random random(3, 4);
  live({{some_event(1)}});
  live({{SubmittedRecord{JobId(2), "b", "text", 0}}, {some_event(2)}, {some_event(3)}, {some_event(4)}});
  (*platter_.content("journal"))[36864 + 60] ^= std::byte{1};
  ASSERT_FALSE(open(platter_));
  bool has_ended = false;
  for (std::uint64_t operations = 0; !has_ended; ++operations) {
    for (int round = 0; round < 50; ++round) {
      JournalPlatter other = platter_.copied();
      other.cut_power_after(operations, random);
      has_ended = salvage(other).has_value();
      other.restart(random);
      if (const Result<JournalFile::Opened> opened = open(other)) {
        EXPECT_EQ(opened->state.journal, JournalId(88)) << operations;
      } else {
        EXPECT_EQ(opened.error().code, ErrorCode::kData);
        ASSERT_TRUE(salvage(other));
        EXPECT_TRUE(open(other));
      }
    }
  }
}

// ---- a disk that fails

TEST_F(JournalDamageTest, FullDiskPutsTheRewriteOffAndTheAppendIsSafe) {
  Result<JournalFile::Opened> opened = open(platter_);
  ASSERT_TRUE(opened);
  bool is_full = true;
  platter_.fault = [&is_full](JournalPlatter::Op op, const std::string&) -> std::optional<Error> {
    if (!is_full || op != JournalPlatter::Op::kCreate) return std::nullopt;
    return Error{ErrorCode::kUnavailable, "can't write: no space left on device"};
  };
  int put_off = 0;
  const std::vector<Record> large(1, SubmittedRecord{JobId(1), "a", std::string(1 << 19, 'x'), 0});
  for (int i = 0; i < 40; ++i) {
    append(opened->file, large);
    const Result<std::optional<Error>> rewritten = opened->file.rewrite_if_far_grown();
    ASSERT_TRUE(rewritten.has_value()) << rewritten.error().message;
    put_off += *rewritten ? 1 : 0;
    if (i == 20) is_full = false;
  }
  EXPECT_GT(put_off, 2);
  EXPECT_LT(put_off, 10) << "not at each append";
  EXPECT_LT(journal().size(), std::size_t{8} << 20) << "rewritten once there was room";
  opened = fail(ErrorCode::kSoftware, "");
  EXPECT_TRUE(is_all_there(platter_, "after it"));
}

TEST_F(JournalDamageTest, NameThatCantBeMadeDurableIsAnErrorForGood) {
  Result<JournalFile::Opened> opened = open(platter_);
  ASSERT_TRUE(opened);
  append(opened->file, std::vector<Record>(1, SubmittedRecord{JobId(1), "a", std::string(5 << 20, 'x'), 0}));
  platter_.fault = [](JournalPlatter::Op op, const std::string&) -> std::optional<Error> {
    if (op != JournalPlatter::Op::kSyncNames) return std::nullopt;
    return Error{ErrorCode::kUnavailable, "can't make durable"};
  };
  append(opened->file, std::vector<Record>(1, SubmittedRecord{JobId(2), "b", std::string(5 << 20, 'x'), 0}));
  append(opened->file, std::vector<Record>(1, StateRecord{JobId(2), JobState::kRunning, ""}));
  EXPECT_FALSE(opened->file.rewrite_if_far_grown().has_value() && journal().size() < (5u << 20));
}

// ---- what the journal accepts

TEST_F(JournalDamageTest, LongTextsOfPeersAreCutBeforeTheyAreWritten) {
  const std::string huge(std::size_t{8} << 20, 'x');
  {
    Result<JournalFile::Opened> opened = open(platter_);
    ASSERT_TRUE(opened);
    EndRecord end;
    end.job = JobId(1);
    end.state = JobState::kFailed;
    end.reason = huge;
    end.root_cause = RootCause{TaskId{Role::kPs, 0}, huge};
    EvaluationsRecord evaluations;  // its reason has the name of a metric
    evaluations.job = JobId(1);
    evaluations.early_end = huge;
    const std::vector<Record> batch = {TermRecord{JournalId(77), Term(1)},
                                       SubmittedRecord{JobId(1), "a", "text", 0},
                                       EventRecord{1, JobId(1), "failed", "ps/0", 0, huge},
                                       evaluations,
                                       end,
                                       StateRecord{JobId(1), JobState::kFailed, huge}};
    const Status written = opened->file.append(batch);
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_LT(journal().size(), std::size_t{1} << 20);
  }
  const Result<JournalFile::Opened> opened = open(platter_);
  ASSERT_TRUE(opened) << opened.error().message;
  const JournaledJob& job = opened->state.jobs.at(JobId(1));
  EXPECT_EQ(job.reason.size(), kMaxJournalTextBytes);
  EXPECT_NE(job.reason.find("8388608 bytes in all"), std::string::npos);
  EXPECT_EQ(job.ended->root_cause->reason.size(), kMaxJournalTextBytes);
  EXPECT_EQ(opened->state.events.at(0).text.size(), kMaxJournalTextBytes);
}

TEST_F(JournalDamageTest, CutTextEndsAtAWholeCharacter) {
  for (std::size_t before = 0; before < 4; ++before) {
    std::string text(before, 'x');
    while (text.size() < 2 * kMaxJournalTextBytes) text += "\xe2\x82\xac";
    const std::string cut = std::get<StateRecord>(bounded(StateRecord{JobId(1), JobState::kFailed, text})).reason;
    EXPECT_LE(cut.size(), kMaxJournalTextBytes);
    EXPECT_EQ(cut.find(" ... ("), before + (cut.find(" ... (") - before) / 3 * 3);
    EXPECT_EQ(std::get<StateRecord>(bounded(StateRecord{JobId(1), JobState::kFailed, cut})).reason, cut);
  }
}

TEST_F(JournalDamageTest, RecordThatCouldNotBeReadBackIsRefusedAndNothingIsWritten) {
  live({{some_event(1)}});
  {
    Result<JournalFile::Opened> opened = open(platter_);
    ASSERT_TRUE(opened);
    const std::vector<Record> batch = {some_event(2),
                                       SubmittedRecord{JobId(1), "a", std::string(kMaxRecordBytes, 'x'), 0}};
    const Status written = opened->file.append(batch);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::kSoftware);
    append(opened->file, {some_event(3)});
  }
  EXPECT_TRUE(is_all_there(platter_, "without the refused batch"));
}

TEST_F(JournalDamageTest, ManyLargeRecordsAreSplitIntoBatchesThatAreReadBack) {
  std::vector<Record> batch;
  for (std::uint32_t i = 1; i <= 20; ++i)
    batch.push_back(SubmittedRecord{JobId(i), "a" + std::to_string(i), std::string(300'000, 'x'), 0});
  live({batch, {some_event(1)}});
  EXPECT_TRUE(is_all_there(platter_, "split"));
  EXPECT_TRUE(is_all_there(platter_, "rewritten"));
}

TEST_F(JournalDamageTest, SecondChiefOnOneFolderIsRefused) {
  Result<JournalFile::Opened> first = open(platter_);
  ASSERT_TRUE(first);
  const Result<JournalFile::Opened> second = open(platter_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConfig);
}

}  // namespace
}  // namespace disttrain::chiefd
