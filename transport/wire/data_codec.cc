// Codecs of the messages that every step sends. Each message is built in the caller's scratch buffer, as an 8-byte
// segment table and one segment. capnp::messageToFlatArray would make the same bytes, but with three allocations and a
// copy.
#include <algorithm>

#include "common/check.h"
#include "common/mutant.h"
#include "transport/wire/pieces.h"

namespace disttrain::wire {
namespace {

// Builds a message in the scratch buffer as its only segment. The limits on our own messages make sure that they fit.
class ScratchBuilder final : public capnp::MessageBuilder {
 public:
  explicit ScratchBuilder(std::span<std::uint64_t> words) : words_(words) {}

  kj::ArrayPtr<capnp::word> allocateSegment(capnp::uint minimum) override {
    DISTTRAIN_CHECK(!given_);
    DISTTRAIN_CHECK_LE(minimum, words_.size());
    given_ = true;
    return {reinterpret_cast<capnp::word*>(words_.data()), words_.size()};
  }

 private:
  std::span<std::uint64_t> words_;
  bool given_ = false;
};

template <typename Root, typename Fill>
Bytes build_in(ScratchBuffer& scratch, Fill fill) {
  const std::span<std::uint64_t> words = scratch.words();
  std::fill_n(words.begin(), scratch.used_words, 0);  // a builder needs its segment zeroed
  scratch.used_words = words.size();                  // if this call throws, the next call clears all words
  ScratchBuilder builder(words.subspan(1));
  fill(builder.initRoot<Root>());
  const std::size_t size = builder.getSegmentsForOutput()[0].size();
  words[0] = static_cast<std::uint64_t>(size) << 32;  // segment table: number of segments minus one (0), and their size
  scratch.used_words = size + 1;
  return std::as_bytes(words.first(size + 1));
}

template <typename List>
unsigned checked_size(const List& list, std::size_t max) {
  DISTTRAIN_CHECK_LE(list.size(), max);
  return static_cast<unsigned>(list.size());
}

template <typename Builder>
void write_ranks(const RankSet& ranks, Builder builder) {
  auto words = builder.initRanks(static_cast<unsigned>(ranks.used_words()));
  for (unsigned i = 0; i < words.size(); ++i) words.set(i, ranks.words()[i]);
}

template <typename Reader>
RankSet read_ranks(Reader reader) {
  RankSet ranks;
  const auto words = bounded(reader.getRanks(), ranks.words().size(), "words of ranks");
  for (unsigned i = 0; i < words.size(); ++i) ranks.words()[i] = words[i];
  return ranks;
}

PushOutcome read_outcome(schema::PushOutcome outcome) {
  return read_enum(outcome, PushOutcome::kVetoed, "outcome");
}

}  // namespace

Bytes encode(const Push& m, ScratchBuffer& scratch) {
  return build_in<schema::Push>(scratch, [&m](schema::Push::Builder b) {
    b.setBucket(m.bucket.value);
    b.setExamples(m.examples);
    b.setClock(m.clock.value);
    b.setPullVersion(m.pull_version.value);
    b.setLoss(m.loss);
    b.setEpoch(m.epoch);
    b.setLease(m.lease.value);
    b.setWant(write_enum<schema::Want>(m.want));
    b.setLast(m.last);
    b.setSkipped(m.skipped);
    b.setFinal(m.final);
    b.setInitial(m.initial);
    b.setRoster(m.roster.value);
    if (!m.visited.empty()) write_list(b.initVisited(checked_size(m.visited, kMaxVisited)), m.visited);
  });
}

Status decode_push(Bytes control, Push& into) {
  const auto read = parse<schema::Push>("Push", control, [&m = into](schema::Push::Reader r) {
    m.bucket = BucketId(r.getBucket());
    m.clock = Step(r.getClock());
    m.pull_version = Step(r.getPullVersion());
    m.want = read_enum(r.getWant(), Want::kAll, "want");
    m.last = r.getLast();
    m.skipped = r.getSkipped();
    m.examples = r.getExamples();
    m.loss = r.getLoss();
    m.lease = LeaseId(r.getLease());
    m.epoch = r.getEpoch();
    m.final = r.getFinal();
    m.initial = r.getInitial();
    m.roster = RosterVersion(r.getRoster());
    m.visited.clear();
    for (auto interval : bounded(r.getVisited(), kMaxVisited, "visited positions"))
      m.visited.push_back(wire::read(interval));
    if (DISTTRAIN_MUTANT(kRecordsLostOnTheWire) && m.epoch > 0) m.visited.clear();
    return std::monostate();
  });
  if (!read) return tl::unexpected(read.error());
  return {};
}

Result<Push> decode_push(Bytes control) {
  Push push;
  if (Status read = decode_push(control, push); !read) return tl::unexpected(std::move(read).error());
  return push;
}

Bytes encode(const Pull& m, ScratchBuffer& scratch) {
  return build_in<schema::Pull>(scratch, [&m](schema::Pull::Builder b) {
    b.setId(m.id);
    b.setBegins(m.begins);
    b.setClock(m.clock.value);
    b.setAverages(m.averages);
  });
}

Result<Pull> decode_pull(Bytes control) {
  return parse<schema::Pull>("Pull", control, [](schema::Pull::Reader r) {
    return Pull{r.getId(), r.getBegins(), Step(r.getClock()), r.getAverages()};
  });
}

Bytes encode(const Parameters& m, ScratchBuffer& scratch) {
  return build_in<schema::Parameters>(scratch, [&m](schema::Parameters::Builder b) {
    b.setVersion(m.version.value);
    b.setRoster(m.roster.value);
    b.setPullId(m.pull_id);
    b.setAcknowledged(m.acknowledged.value);
    b.setBucket(m.bucket.value);
    b.setOutcome(write_enum<schema::PushOutcome>(m.outcome));
    b.setLast(m.last);
    b.setFinished(m.finished);
    b.setClock(m.clock.value);
    b.setAverages(m.averages);
  });
}

Result<Parameters> decode_parameters(Bytes control) {
  return parse<schema::Parameters>("Parameters", control, [](schema::Parameters::Reader r) {
    Parameters m;
    m.bucket = BucketId(r.getBucket());
    m.version = Step(r.getVersion());
    m.outcome = read_outcome(r.getOutcome());
    m.last = r.getLast();
    m.finished = r.getFinished();
    m.roster = RosterVersion(r.getRoster());
    m.pull_id = r.getPullId();
    m.acknowledged = Sequence(r.getAcknowledged());
    m.clock = Step(r.getClock());
    m.averages = r.getAverages();
    return m;
  });
}

Bytes encode(const Acknowledge& m, ScratchBuffer& scratch) {
  return build_in<schema::Acknowledge>(scratch, [&m](schema::Acknowledge::Builder b) {
    b.setAcknowledged(m.acknowledged.value);
    b.setOutcome(write_enum<schema::PushOutcome>(m.outcome));
    b.setFinished(m.finished);
    b.setWantsValues(m.wants_values);
  });
}

Result<Acknowledge> decode_acknowledge(Bytes control) {
  return parse<schema::Acknowledge>("Acknowledge", control, [](schema::Acknowledge::Reader r) {
    return Acknowledge{Sequence(r.getAcknowledged()), read_outcome(r.getOutcome()), r.getFinished(),
                       r.getWantsValues()};
  });
}

Bytes encode(const Staged& m, ScratchBuffer& scratch) {
  return build_in<schema::Staged>(scratch, [&m](schema::Staged::Builder b) {
    b.setShard(m.shard.value);
    b.setNonfinite(m.nonfinite);
    b.setStep(m.step.value);
    b.setNorm2(m.norm2);
    b.setRoster(m.roster.value);
    write_ranks(m.members, b);
  });
}

Result<Staged> decode_staged(Bytes control) {
  return parse<schema::Staged>("Staged", control, [](schema::Staged::Reader r) {
    Staged m;
    m.shard = ShardId(r.getShard());
    m.step = Step(r.getStep());
    m.members = read_ranks(r);
    m.nonfinite = r.getNonfinite();
    m.norm2 = r.getNorm2();
    m.roster = RosterVersion(r.getRoster());
    return m;
  });
}

Bytes encode(const Commit& m, ScratchBuffer& scratch) {
  return build_in<schema::Commit>(scratch, [&m](schema::Commit::Builder b) {
    b.setStep(m.step.value);
    b.setScale(m.scale);
    b.setSkip(m.skip);
    b.setRosterVersion(m.roster.value);
    write_ranks(m.members, b);
  });
}

Result<Commit> decode_commit(Bytes control) {
  return parse<schema::Commit>("Commit", control, [](schema::Commit::Reader r) {
    Commit m;
    m.step = Step(r.getStep());
    m.roster = RosterVersion(r.getRosterVersion());
    m.members = read_ranks(r);
    m.scale = r.getScale();
    m.skip = r.getSkip();
    return m;
  });
}

Bytes encode(const PacerNews& m, ScratchBuffer& scratch) {
  return build_in<schema::PacerNews>(scratch, [&m](schema::PacerNews::Builder b) {
    b.setFinished(m.finished);
    checked_size(m.roster.members, kMaxMembers);
    write(m.roster, b.initRoster());
  });
}

Result<PacerNews> decode_pacer_news(Bytes control) {
  return parse<schema::PacerNews>("PacerNews", control, [](schema::PacerNews::Reader r) {
    PacerNews m;
    m.roster = read(r.getRoster());
    m.finished = r.getFinished();
    return m;
  });
}

Bytes encode(const Mark& m, ScratchBuffer& scratch) {
  return build_in<schema::Mark>(scratch, [&m](schema::Mark::Builder b) { b.setAttempt(m.attempt); });
}

Result<Mark> decode_mark(Bytes control) {
  return parse<schema::Mark>("Mark", control, [](schema::Mark::Reader r) { return Mark{r.getAttempt()}; });
}

Bytes encode(const MarkTaken& m, ScratchBuffer& scratch) {
  return build_in<schema::MarkTaken>(scratch, [&m](schema::MarkTaken::Builder b) { b.setAttempt(m.attempt); });
}

Result<MarkTaken> decode_mark_taken(Bytes control) {
  return parse<schema::MarkTaken>("MarkTaken", control,
                                  [](schema::MarkTaken::Reader r) { return MarkTaken{r.getAttempt()}; });
}

Bytes encode(const Cut& m, ScratchBuffer& scratch) {
  return build_in<schema::Cut>(scratch, [&m](schema::Cut::Builder b) { b.setAttempt(m.attempt); });
}

Result<Cut> decode_cut(Bytes control) {
  return parse<schema::Cut>("Cut", control, [](schema::Cut::Reader r) { return Cut{r.getAttempt()}; });
}

}  // namespace disttrain::wire
