// Every record is encoded and decoded with all its fields. Damaged bytes give an error or another valid value.
#include "chiefd/journal/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "chiefd/journal/limits.h"
#include "common/bounds.h"
#include "tests/transport/wire/every_field.h"

namespace disttrain::wire {
template <>
inline constexpr std::size_t kFields<chiefd::EndRecord> = 17;
}  // namespace disttrain::wire

namespace disttrain::chiefd {

// fill() in every_field.h calls this. A record about a job's end may only hold a final state.
void fill_enum(JobState& state) {
  state = JobState::kStopped;
}

namespace {

using Bytes = std::vector<std::byte>;

template <std::size_t... I>
std::vector<Record> filled_records(std::index_sequence<I...>) {
  return {wire::filled<std::variant_alternative_t<I, Record>>()...};
}

// One record of each kind, with every field filled.
std::vector<Record> filled_records() {
  return filled_records(std::make_index_sequence<std::variant_size_v<Record>>());
}

Bytes encoded(const Record& record) {
  Result<Bytes> bytes = encode_record(record);
  EXPECT_TRUE(bytes) << bytes.error().message;
  return bytes.value_or(Bytes());
}

// Writes the record and reads it back.
Record trip(const Record& record) {
  const Result<Record> decoded = decode_record(encoded(record));
  EXPECT_TRUE(decoded) << decoded.error().message;
  return decoded.value_or(Record());
}

Error refused(const Record& record) {
  const Result<Bytes> bytes = encode_record(record);
  EXPECT_FALSE(bytes);
  return bytes ? Error{} : bytes.error();
}

TEST(JournalCodec, EveryFieldOfEveryRecordComesBack) {
  for (const Record& record : filled_records()) EXPECT_EQ(trip(record), record) << "record " << record.index();
}

template <std::size_t... I>
std::vector<Record> empty_records(std::index_sequence<I...>) {
  return {std::variant_alternative_t<I, Record>()...};
}

TEST(JournalCodec, EveryRecordOfDefaultsComesBack) {
  for (const Record& record : empty_records(std::make_index_sequence<std::variant_size_v<Record>>()))
    EXPECT_EQ(trip(record), record) << "record " << record.index();
}

// The fields `hasAccuracy` and `accuracy` of an evaluation are retired, so encode_record() doesn't write them. This
// test writes them into the encoded record. They are at fixed distances from `loss`.
TEST(JournalCodec, AccuracyThatAnOlderChiefWroteIsAMetric) {
  EndRecord end;
  end.evaluation = EvaluationStatus{.step = Step(7), .loss = 1.2345, .metrics = {}};
  Bytes bytes = encoded(end);
  const auto loss = std::as_bytes(std::span(&end.evaluation->loss, 1));
  const auto at = std::search(bytes.begin(), bytes.end(), loss.begin(), loss.end());
  ASSERT_NE(at, bytes.end());
  *(at + 8) |= std::byte{1};
  const double accuracy = 0.75;
  std::memcpy(&*(at + 16), &accuracy, sizeof accuracy);
  end.evaluation->metrics = {{"accuracy", 0.75}};
  const Result<Record> decoded = decode_record(bytes);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, Record(end));
}

TEST(JournalCodec, MetricsThatCouldNotBeReadAreNotWritten) {
  EndRecord end;
  end.state = JobState::kFinished;
  end.metrics.resize(kMaxMetrics + 1);
  EXPECT_EQ(refused(end).code, ErrorCode::kSoftware);
}

TEST(JournalCodec, TextsAreBytes) {
  const std::string odd("a\0\n\xff\x1b", 5);
  SubmittedRecord submitted{JobId(1), odd, odd, 0};
  EXPECT_EQ(trip(submitted), Record(submitted));
  const EventRecord event{1, JobId(1), odd, odd, 2, odd, odd, 3};
  EXPECT_EQ(trip(event), Record(event));
}

TEST(JournalCodec, EachStateOfAJobComesBackAndAnEndTakesFinalOnes) {
  for (auto i = static_cast<int>(JobState::kQueued); i <= static_cast<int>(JobState::kStopped); ++i) {
    const auto state = static_cast<JobState>(i);
    const StateRecord record{JobId(1), state, "why"};
    EXPECT_EQ(trip(record), Record(record));
    EndRecord end;
    end.state = state;
    const Result<Record> decoded = decode_record(encoded(end));
    EXPECT_EQ(decoded.has_value(), is_final(state)) << to_string(state);
    if (!decoded) {
      EXPECT_NE(decoded.error().message.find(to_string(state)), std::string::npos);
    }
  }
  const Result<Record> unknown = decode_record(encoded(StateRecord{JobId(1), static_cast<JobState>(9), ""}));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kData);
  EXPECT_EQ(unknown.error().message, "can't read a record of the journal: the job's state is 9; expected 0 to 8");
}

TEST(JournalCodec, RecordBeyondALimitIsNotWritten) {
  const StateRecord state{JobId(1), JobState::kRunning, std::string(kMaxJournalTextBytes + 1, 'x')};
  EXPECT_EQ(refused(state).code, ErrorCode::kSoftware);
  EXPECT_EQ(refused(state).message,
            "can't write a record of the journal: its reason has 4097 bytes; at most 4096 are allowed");
  EXPECT_EQ(refused(SubmittedRecord{JobId(1), "a", std::string(kMaxJournalTomlBytes + 1, 'x'), 0}).code,
            ErrorCode::kSoftware);
  EXPECT_EQ(refused(OpenGrantsRecord{JobId(1), Generation(1), std::vector<LeaseId>(kMaxOpenGrants + 1)}).code,
            ErrorCode::kSoftware);
  RosterRecord roster;
  roster.roster.members.resize(kMaxMembers + 1);
  EXPECT_EQ(refused(roster).code, ErrorCode::kSoftware);
  GenerationRecord generation;
  generation.before.time = Duration(-1);
  EXPECT_EQ(refused(generation).code, ErrorCode::kSoftware);
}

TEST(JournalCodec, CutRecordsAreRefused) {
  for (const Record& record : filled_records()) {
    const Bytes bytes = encoded(record);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(decode_record(std::span(bytes).first(size))) << "record " << record.index() << " cut to " << size;
  }
}

TEST(JournalCodec, ForeignBytesAreRefused) {
  const auto words = [](std::initializer_list<std::uint64_t> list) {
    Bytes bytes;
    for (const std::uint64_t word : list)
      for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(word >> (8 * i)));
    return bytes;
  };
  for (const Bytes& bytes : {Bytes(), Bytes(7), Bytes(8), Bytes(16), Bytes(4096), words({std::uint64_t{1} << 32, 0})}) {
    const Result<Record> decoded = decode_record(bytes);
    ASSERT_FALSE(decoded) << bytes.size();
    EXPECT_EQ(decoded.error().code, ErrorCode::kData);
  }
  // The bytes of a struct of one data word and one pointer. The word names a kind of record that this version doesn't
  // know.
  const Result<Record> newer = decode_record(words({std::uint64_t{3} << 32, 0x0001'0001'0000'0000, 99, 0}));
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, ErrorCode::kConfig);
  EXPECT_NE(newer.error().message.find("the record is of kind 99"), std::string::npos) << newer.error().message;
}

// Changes a few of the bytes. Sometimes also shortens or extends them.
Bytes damaged(Bytes bytes, std::mt19937_64& random) {
  if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 64), static_cast<std::byte>(random()));
  for (unsigned n = 1 + random() % 6; n > 0 && !bytes.empty(); --n) {
    if (random() % 2 == 0)
      bytes[random() % bytes.size()] ^= static_cast<std::byte>(1u << (random() % 8));
    else  // the first words hold pointers and sizes
      bytes[random() % std::min<std::size_t>(bytes.size(), 64)] = static_cast<std::byte>(random());
  }
  return bytes;
}

TEST(JournalCodec, DamagedRecordsAreAnErrorOrAValue) {
  std::mt19937_64 random(7);  // the same seed repeats a failing round
  for (const Record& record : filled_records()) {
    int read = 0;
    int refusals = 0;
    for (int round = 0; round < 3000; ++round) {
      const Result<Record> decoded = decode_record(damaged(encoded(record), random));
      if (!decoded) {
        const bool is_newer = decoded.error().message.ends_with("which this version doesn't know");
        ASSERT_EQ(decoded.error().code, is_newer ? ErrorCode::kConfig : ErrorCode::kData) << decoded.error().message;
        ++refusals;
        continue;
      }
      ++read;
      // Compares bytes, because NaN differs from itself.
      const Bytes once = encoded(*decoded);
      const Result<Record> again = decode_record(once);
      ASSERT_TRUE(again) << "round " << round << ": " << again.error().message;
      ASSERT_EQ(encoded(*again), once) << "round " << round;
    }
    EXPECT_GT(read, 0) << "record " << record.index();
    EXPECT_GT(refusals, 0) << "record " << record.index();
  }
}

}  // namespace
}  // namespace disttrain::chiefd
