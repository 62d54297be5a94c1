#include "chiefd/journal_codec.h"

#include <string>

namespace disttrain::chiefd {
namespace {

enum class Type : std::uint8_t { kTerm = 1, kSubmitted = 2, kState = 3, kGeneration = 4, kGrant = 5 };

class Writer {
 public:
  template <typename Integer>
  void number(Integer value) {
    for (std::size_t i = 0; i < sizeof(Integer); ++i)
      bytes_.push_back(static_cast<std::byte>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xff));
  }
  void text(const std::string& value) {
    number(static_cast<std::uint32_t>(value.size()));
    for (char c : value) bytes_.push_back(static_cast<std::byte>(c));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// After the first read beyond the end all reads give zeros and is_whole() is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename Integer>
  Integer number() {
    if (bytes_.size() < sizeof(Integer)) return end<Integer>();
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(Integer); ++i)
      value |= static_cast<std::uint64_t>(std::to_integer<std::uint8_t>(bytes_[i])) << (8 * i);
    bytes_ = bytes_.subspan(sizeof(Integer));
    return static_cast<Integer>(value);
  }
  std::string text() {
    const auto size = number<std::uint32_t>();
    if (bytes_.size() < size) return end<std::string>();
    std::string value(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return value;
  }
  // The length of a list whose items take at least `item_bytes`.
  std::uint32_t count(std::size_t item_bytes) {
    const auto count = number<std::uint32_t>();
    return count <= bytes_.size() / item_bytes ? count : end<std::uint32_t>();
  }
  bool is_whole() const { return !failed_ && bytes_.empty(); }

 private:
  template <typename T>
  T end() {
    failed_ = true;
    bytes_ = {};
    return T{};
  }

  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

struct Encoder {
  Writer& out;

  void operator()(const TermRecord& record) const {
    out.number(Type::kTerm);
    out.number(record.journal.value);
    out.number(record.term.value);
  }
  void operator()(const SubmittedRecord& record) const {
    out.number(Type::kSubmitted);
    out.number(record.job.value);
    out.text(record.name);
    out.text(record.toml);
    out.number(record.warmup_steps);
  }
  void operator()(const StateRecord& record) const {
    out.number(Type::kState);
    out.number(record.job.value);
    out.number(record.state);
    out.text(record.reason);
  }
  void operator()(const GenerationRecord& record) const {
    out.number(Type::kGeneration);
    out.number(record.job.value);
    out.number(record.generation.value);
  }
  void operator()(const GrantRecord& record) const {
    out.number(Type::kGrant);
    out.number(record.job.value);
    out.number(record.generation.value);
    out.number(static_cast<std::uint32_t>(record.borrowers.size()));
    for (const Member& member : record.borrowers) {
      out.number(member.task.role);
      out.number(member.task.index);
      out.number(member.incarnation.value);
    }
    const Lease& lease = record.lease;
    out.number(lease.id.value);
    out.number(lease.epoch);
    out.number(static_cast<std::uint32_t>(lease.positions.size()));
    for (const Interval& interval : lease.positions) {
      out.number(interval.begin);
      out.number(interval.end);
    }
    out.number(lease.first_step.value);
    out.number(lease.steps);
    out.number(lease.ranks);
    out.number(lease.roster.value);
  }
};

GrantRecord read_grant(Reader& in) {
  GrantRecord record;
  record.job = JobId(in.number<std::uint32_t>());
  record.generation = Generation(in.number<std::uint64_t>());
  record.borrowers.resize(in.count(13));
  for (Member& member : record.borrowers) {
    member.task.role = static_cast<Role>(in.number<std::uint8_t>());
    member.task.index = in.number<std::uint32_t>();
    member.incarnation = Incarnation(in.number<std::uint64_t>());
  }
  Lease& lease = record.lease;
  lease.id = LeaseId(in.number<std::uint64_t>());
  lease.epoch = in.number<std::uint32_t>();
  lease.positions.resize(in.count(16));
  for (Interval& interval : lease.positions) {
    interval.begin = in.number<std::uint64_t>();
    interval.end = in.number<std::uint64_t>();
  }
  lease.first_step = Step(in.number<std::uint64_t>());
  lease.steps = in.number<std::uint64_t>();
  lease.ranks = in.number<std::uint32_t>();
  lease.roster = RosterVersion(in.number<std::uint64_t>());
  return record;
}

}  // namespace

std::vector<std::byte> encode_record(const Record& record) {
  Writer out;
  std::visit(Encoder{out}, record);
  return out.take();
}

Result<Record> decode_record(std::span<const std::byte> bytes) {
  Reader in(bytes);
  const auto type = in.number<std::uint8_t>();
  Record record;
  switch (static_cast<Type>(type)) {
    case Type::kTerm: {
      const JournalId journal(in.number<std::uint64_t>());
      record = TermRecord{journal, Term(in.number<std::uint64_t>())};
      break;
    }
    case Type::kSubmitted: {
      SubmittedRecord submitted;
      submitted.job = JobId(in.number<std::uint32_t>());
      submitted.name = in.text();
      submitted.toml = in.text();
      submitted.warmup_steps = in.number<std::uint64_t>();
      record = std::move(submitted);
      break;
    }
    case Type::kState: {
      StateRecord state;
      state.job = JobId(in.number<std::uint32_t>());
      const auto value = in.number<std::uint8_t>();
      if (value > static_cast<std::uint8_t>(JobState::kStopped))
        return fail(ErrorCode::kData, "a record has job state " + std::to_string(value) + ", which doesn't exist");
      state.state = static_cast<JobState>(value);
      state.reason = in.text();
      record = std::move(state);
      break;
    }
    case Type::kGeneration: {
      const JobId job(in.number<std::uint32_t>());
      record = GenerationRecord{job, Generation(in.number<std::uint64_t>())};
      break;
    }
    case Type::kGrant:
      record = read_grant(in);
      break;
    default:
      return fail(ErrorCode::kData, "a record has type " + std::to_string(type) + ", which this version doesn't know");
  }
  if (!in.is_whole()) return fail(ErrorCode::kData, "a record of type " + std::to_string(type) + " has a wrong length");
  return record;
}

}  // namespace disttrain::chiefd
