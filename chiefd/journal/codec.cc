#include "chiefd/journal/codec.h"

#include <bit>
#include <optional>
#include <span>
#include <string>

#include "transport/wire/codec.h"

namespace disttrain::chiefd {
namespace {

// Never renumbered.
enum class Type : std::uint8_t {
  kOlderTerm = 1,  // without its chief; not written any more
  kSubmitted = 2,
  kState = 3,
  kBareGeneration = 4,  // a number only; not written any more
  kGrant = 5,
  kDescribed = 6,
  kYoungGeneration = 7,  // without what was trained before it, first without recoveries too; not written any more
  kTraining = 8,
  kRoster = 9,
  kOpenGrants = 10,
  kCheckpoint = 11,
  kOlderEvent = 12,       // by the wall clock alone; not written any more
  kOlderGeneration = 13,  // without where its initial values are read; not written any more
  kGeneration = 14,
  kEnd = 15,
  kEvent = 16,
  kTerm = 17,
};

class Writer {
 public:
  template <typename Integer>
  void number(Integer value) {
    for (std::size_t i = 0; i < sizeof(Integer); ++i)
      bytes_.push_back(static_cast<std::byte>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xff));
  }
  void text(const std::string& value) {
    number(static_cast<std::uint32_t>(value.size()));
    const auto bytes = std::as_bytes(std::span(value));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
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
  std::optional<Error>& failure;

  void operator()(const TermRecord& record) const {
    out.number(Type::kTerm);
    out.number(record.journal.value);
    out.number(record.term.value);
    out.number(record.chief.value);
  }
  void operator()(const SubmittedRecord& record) const {
    out.number(Type::kSubmitted);
    out.number(record.job.value);
    out.text(record.name);
    out.text(record.toml);
    out.number(record.warmup_steps);
    out.number(record.awaited_workers);
  }
  void operator()(const StateRecord& record) const {
    out.number(Type::kState);
    out.number(record.job.value);
    out.number(record.state);
    out.text(record.reason);
  }
  void task(TaskId task) const {
    out.number(task.role);
    out.number(task.index);
  }
  void real(double value) const { out.number(std::bit_cast<std::uint64_t>(value)); }
  template <typename T, typename Write>
  void maybe(const std::optional<T>& value, const Write& write) const {
    out.number(static_cast<std::uint8_t>(value.has_value()));
    if (value) write(*value);
  }
  void training(const Training& training) const {
    out.number(static_cast<std::uint64_t>(training.time.count()));
    out.number(training.steps);
    out.number(training.examples);
  }
  void member(const Member& member) const {
    task(member.task);
    out.number(member.incarnation.value);
  }
  void roster(const Roster& roster) const {
    out.number(roster.version.value);
    out.number(static_cast<std::uint32_t>(roster.members.size()));
    for (const Member& m : roster.members) member(m);
  }
  // The wire's codec knows how to write a model.
  void operator()(const DescribedRecord& record) const {
    out.number(Type::kDescribed);
    const Result<wire::EncodedControl> encoded = wire::encode(wire::ControlMessage(record.described));
    if (!encoded) {
      failure = Error{ErrorCode::kSoftware, "the journal can't take a model: " + encoded.error().message};
      return;
    }
    out.number(static_cast<std::uint16_t>(encoded->type));
    out.text(std::string(reinterpret_cast<const char*>(encoded->bytes.data()), encoded->bytes.size()));
  }
  void operator()(const GenerationRecord& record) const {
    out.number(Type::kGeneration);
    out.number(record.job.value);
    out.number(record.generation.value);
    out.number(record.mark);
    out.number(static_cast<std::uint32_t>(record.owners.size()));
    for (const Owner& owner : record.owners) {
      member(owner.ps);
      out.text(owner.address);
    }
    roster(record.roster);
    out.text(record.restore_path);
    out.number(record.restore_step.value);
    out.number(record.recoveries);
    training(record.before);
    out.text(record.init_path);
    out.number(record.places);
  }
  void operator()(const TrainingRecord& record) const {
    out.number(Type::kTraining);
    out.number(record.job.value);
    out.number(record.generation.value);
  }
  void operator()(const RosterRecord& record) const {
    out.number(Type::kRoster);
    out.number(record.job.value);
    out.number(record.generation.value);
    roster(record.roster);
  }
  void operator()(const OpenGrantsRecord& record) const {
    out.number(Type::kOpenGrants);
    out.number(record.job.value);
    out.number(record.generation.value);
    out.number(static_cast<std::uint32_t>(record.open.size()));
    for (const LeaseId id : record.open) out.number(id.value);
  }
  void operator()(const CheckpointRecord& record) const {
    out.number(Type::kCheckpoint);
    out.number(record.job.value);
    out.number(record.generation.value);
    out.number(record.step.value);
    out.text(record.path);
  }
  void operator()(const EndRecord& record) const {
    out.number(Type::kEnd);
    out.number(record.job.value);
    out.number(record.state);
    out.text(record.reason);
    out.number(record.generation.value);
    out.number(record.step.value);
    out.number(record.steps_target);
    out.number(record.examples);
    training(record.training);
    out.number(record.epochs);
    out.number(record.late);
    out.number(record.skipped);
    real(record.staleness);
    maybe(record.loss, [this](double loss) { real(loss); });
    maybe(record.evaluation, [this](const EvaluationStatus& evaluation) {
      out.number(evaluation.step.value);
      real(evaluation.loss);
      maybe(evaluation.accuracy, [this](double accuracy) { real(accuracy); });
      out.number(evaluation.examples);
      out.number(static_cast<std::uint8_t>(evaluation.final));
      out.number(evaluation.parameters_hash);
    });
    maybe(record.code, [this](ErrorCode code) { out.number(static_cast<std::uint8_t>(code)); });
    maybe(record.root_cause, [this](const RootCause& cause) {
      task(cause.task);
      out.text(cause.reason);
    });
  }
  void operator()(const EventRecord& record) const {
    out.number(Type::kEvent);
    out.number(static_cast<std::uint64_t>(record.wall_nanoseconds));
    out.number(record.job.value);
    out.text(record.kind);
    out.text(record.task);
    out.number(record.step);
    out.text(record.text);
    out.text(record.cause);
    out.number(static_cast<std::uint64_t>(record.uptime_nanoseconds));
  }
  void operator()(const GrantRecord& record) const {
    out.number(Type::kGrant);
    out.number(record.job.value);
    out.number(record.generation.value);
    out.number(static_cast<std::uint32_t>(record.borrowers.size()));
    for (const Member& borrower : record.borrowers) member(borrower);
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

constexpr std::size_t kMemberBytes = 13;

TermRecord read_older_term(Reader& in) {
  const JournalId journal(in.number<std::uint64_t>());
  return TermRecord{journal, Term(in.number<std::uint64_t>())};
}

TaskId read_task(Reader& in) {
  TaskId task;
  task.role = static_cast<Role>(in.number<std::uint8_t>());
  task.index = in.number<std::uint32_t>();
  return task;
}

Member read_member(Reader& in) {
  Member member;
  member.task = read_task(in);
  member.incarnation = Incarnation(in.number<std::uint64_t>());
  return member;
}

Roster read_roster(Reader& in) {
  Roster roster;
  roster.version = RosterVersion(in.number<std::uint64_t>());
  roster.members.resize(in.count(kMemberBytes));
  for (Member& member : roster.members) member = read_member(in);
  return roster;
}

// Records that begin with job and generation.
template <typename Record>
Record read_generation_of(Reader& in) {
  Record record;
  record.job = JobId(in.number<std::uint32_t>());
  record.generation = Generation(in.number<std::uint64_t>());
  return record;
}

Training read_training(Reader& in) {
  Training training;
  training.time = Duration(in.number<std::uint64_t>());
  training.steps = in.number<std::uint64_t>();
  training.examples = in.number<std::uint64_t>();
  return training;
}

double read_real(Reader& in) {
  return std::bit_cast<double>(in.number<std::uint64_t>());
}

template <typename Read>
auto read_maybe(Reader& in, const Read& read) -> std::optional<decltype(read(in))> {
  if (in.number<std::uint8_t>() == 0) return std::nullopt;
  return read(in);
}

EvaluationStatus read_evaluation(Reader& in) {
  EvaluationStatus evaluation;
  evaluation.step = Step(in.number<std::uint64_t>());
  evaluation.loss = read_real(in);
  evaluation.accuracy = read_maybe(in, read_real);
  evaluation.examples = in.number<std::uint64_t>();
  evaluation.final = in.number<std::uint8_t>() != 0;
  evaluation.parameters_hash = in.number<std::uint64_t>();
  return evaluation;
}

EndRecord read_end(Reader& in) {
  EndRecord record;
  record.job = JobId(in.number<std::uint32_t>());
  record.state = static_cast<JobState>(in.number<std::uint8_t>());
  record.reason = in.text();
  record.generation = Generation(in.number<std::uint64_t>());
  record.step = Step(in.number<std::uint64_t>());
  record.steps_target = in.number<std::uint64_t>();
  record.examples = in.number<std::uint64_t>();
  record.training = read_training(in);
  record.epochs = in.number<std::uint32_t>();
  record.late = in.number<std::uint64_t>();
  record.skipped = in.number<std::uint64_t>();
  record.staleness = read_real(in);
  record.loss = read_maybe(in, read_real);
  record.evaluation = read_maybe(in, read_evaluation);
  record.code = read_maybe(in, [](Reader& r) { return static_cast<ErrorCode>(r.number<std::uint8_t>()); });
  record.root_cause = read_maybe(in, [](Reader& r) {
    const TaskId task = read_task(r);
    return RootCause{task, r.text()};
  });
  return record;
}

GenerationRecord read_generation_head(Reader& in) {
  auto record = read_generation_of<GenerationRecord>(in);
  record.mark = in.number<std::uint64_t>();
  record.owners.resize(in.count(kMemberBytes + 4));
  for (Owner& owner : record.owners) {
    owner.ps = read_member(in);
    owner.address = in.text();
  }
  record.roster = read_roster(in);
  record.restore_path = in.text();
  record.restore_step = Step(in.number<std::uint64_t>());
  return record;
}

GenerationRecord read_young_generation(Reader& in) {
  GenerationRecord record = read_generation_head(in);
  if (!in.is_whole()) record.recoveries = in.number<std::uint32_t>();
  return record;
}

GenerationRecord read_older_generation(Reader& in) {
  GenerationRecord record = read_generation_head(in);
  record.recoveries = in.number<std::uint32_t>();
  record.before = read_training(in);
  return record;
}

GenerationRecord read_generation(Reader& in) {
  GenerationRecord record = read_older_generation(in);
  record.init_path = in.text();
  if (!in.is_whole()) record.places = in.number<std::uint32_t>();  // the first ones have none
  return record;
}

OpenGrantsRecord read_open_grants(Reader& in) {
  auto record = read_generation_of<OpenGrantsRecord>(in);
  record.open.resize(in.count(sizeof(std::uint64_t)));
  for (LeaseId& id : record.open) id = LeaseId(in.number<std::uint64_t>());
  return record;
}

CheckpointRecord read_checkpoint(Reader& in) {
  auto record = read_generation_of<CheckpointRecord>(in);
  record.step = Step(in.number<std::uint64_t>());
  record.path = in.text();
  return record;
}

EventRecord read_older_event(Reader& in) {
  EventRecord record;
  record.wall_nanoseconds = static_cast<std::int64_t>(in.number<std::uint64_t>());
  record.job = JobId(in.number<std::uint32_t>());
  record.kind = in.text();
  record.task = in.text();
  record.step = in.number<std::uint64_t>();
  record.text = in.text();
  if (!in.is_whole()) record.cause = in.text();
  return record;
}

EventRecord read_event(Reader& in) {
  EventRecord record = read_older_event(in);
  record.uptime_nanoseconds = static_cast<std::int64_t>(in.number<std::uint64_t>());
  return record;
}

Result<DescribedRecord> read_described(Reader& in) {
  const auto type = static_cast<wire::FrameType>(in.number<std::uint16_t>());
  const std::string text = in.text();
  const auto bytes = std::as_bytes(std::span(text));
  const Result<wire::ControlMessage> message = wire::decode_control(type, bytes, bytes);
  if (!message) return fail(ErrorCode::kData, "a record of a model makes no sense: " + message.error().message);
  const auto* described = std::get_if<JobDescribed>(&*message);
  if (described == nullptr) return fail(ErrorCode::kData, "a record of a model holds another message");
  return DescribedRecord{*described};
}

GrantRecord read_grant(Reader& in) {
  GrantRecord record;
  record.job = JobId(in.number<std::uint32_t>());
  record.generation = Generation(in.number<std::uint64_t>());
  record.borrowers.resize(in.count(kMemberBytes));
  for (Member& borrower : record.borrowers) borrower = read_member(in);
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

Result<std::vector<std::byte>> encode_record(const Record& record) {
  Writer out;
  std::optional<Error> failure;
  std::visit(Encoder{out, failure}, record);
  if (failure) return tl::unexpected(std::move(*failure));
  return out.take();
}

Result<Record> decode_record(std::span<const std::byte> bytes) {
  Reader in(bytes);
  const auto type = in.number<std::uint8_t>();
  Record record;
  switch (static_cast<Type>(type)) {
    case Type::kOlderTerm:
      record = read_older_term(in);
      break;
    case Type::kTerm: {
      TermRecord term = read_older_term(in);
      term.chief = Incarnation(in.number<std::uint64_t>());
      record = term;
      break;
    }
    case Type::kSubmitted: {
      SubmittedRecord submitted;
      submitted.job = JobId(in.number<std::uint32_t>());
      submitted.name = in.text();
      submitted.toml = in.text();
      submitted.warmup_steps = in.number<std::uint64_t>();
      submitted.awaited_workers = in.number<std::uint32_t>();
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
    case Type::kDescribed: {
      Result<DescribedRecord> described = read_described(in);
      if (!described) return tl::unexpected(described.error());
      record = std::move(*described);
      break;
    }
    case Type::kBareGeneration:
      record = read_generation_of<GenerationRecord>(in);
      break;
    case Type::kYoungGeneration:
      record = read_young_generation(in);
      break;
    case Type::kOlderGeneration:
      record = read_older_generation(in);
      break;
    case Type::kGeneration:
      record = read_generation(in);
      break;
    case Type::kTraining:
      record = read_generation_of<TrainingRecord>(in);
      break;
    case Type::kRoster: {
      auto roster = read_generation_of<RosterRecord>(in);
      roster.roster = read_roster(in);
      record = std::move(roster);
      break;
    }
    case Type::kOpenGrants:
      record = read_open_grants(in);
      break;
    case Type::kCheckpoint:
      record = read_checkpoint(in);
      break;
    case Type::kEnd: {
      EndRecord end = read_end(in);
      if (!is_final(end.state))
        return fail(ErrorCode::kData, "a record of a job's end has state " + std::string(to_string(end.state)));
      record = std::move(end);
      break;
    }
    case Type::kOlderEvent:
      record = read_older_event(in);
      break;
    case Type::kEvent:
      record = read_event(in);
      break;
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
