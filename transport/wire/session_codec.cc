#include "common/check.h"
#include "transport/wire/pieces.h"

namespace disttrain::wire {
// The overloads below are static, because in an unnamed namespace they would hide the overloads of pieces.h.

static void write(const TaskHello& m, schema::TaskHello::Builder b) {
  write(m.member, b.initMember());
  b.setAddress(write_name(m.address, "address"));
  b.setHost(write_name(m.host, "host"));
  b.setPid(m.pid);
  b.setProcess(m.process.value);
  b.setShards(m.shards);
  b.setMemoryBytes(m.memory_bytes);
  b.setThreads(m.threads);
  b.setDevice(write_name(m.device, "device"));
  b.setJournal(m.journal.value);
  b.setJob(m.job.value);
  b.setGeneration(m.generation.value);
  b.setMetrics(write_name(m.metrics, "address of metrics"));
  b.setToken(m.token);
  b.setTerm(m.term.value);
  b.setChief(m.chief.value);
}

static TaskHello read(schema::TaskHello::Reader r) {
  TaskHello m;
  m.member = read(r.getMember());
  m.address = read_name(r.getAddress(), "address");
  m.host = read_name(r.getHost(), "host");
  m.pid = r.getPid();
  m.process = Incarnation(r.getProcess());
  m.shards = static_cast<std::uint32_t>(read_number(r.getShards(), kMaxOfferedShards, "the number of shards offered"));
  m.memory_bytes = r.getMemoryBytes();
  m.threads = r.getThreads();
  m.device = read_name(r.getDevice(), "device");
  m.journal = JournalId(r.getJournal());
  m.job = JobId(r.getJob());
  m.generation = Generation(r.getGeneration());
  m.metrics = read_name(r.getMetrics(), "address of metrics");
  m.token = r.getToken();
  m.term = Term(r.getTerm());
  m.chief = Incarnation(r.getChief());
  return m;
}

static void write(const ChannelHello& m, schema::ChannelHello::Builder b) {
  write_job(m, b);
  b.setShard(m.shard.value);
  write(m.worker, b.initWorker());
  b.setToken(m.token);
}

static ChannelHello read(schema::ChannelHello::Reader r) {
  auto m = read_job<ChannelHello>(r);
  m.shard = ShardId(r.getShard());
  m.worker = read(r.getWorker());
  m.token = r.getToken();
  return m;
}

static void write(const ShardPeerHello& m, schema::ShardPeerHello::Builder b) {
  write_job(m, b);
  b.setFrom(m.from.value);
  write(m.ps, b.initPs());
  b.setToken(m.token);
}

static ShardPeerHello read(schema::ShardPeerHello::Reader r) {
  auto m = read_job<ShardPeerHello>(r);
  m.from = ShardId(r.getFrom());
  m.ps = read(r.getPs());
  m.token = r.getToken();
  return m;
}

namespace {
struct WriteWho {
  schema::Hello::Who::Builder who;

  void operator()(const TaskHello& m) { write(m, who.initTask()); }
  void operator()(const ClientHello& m) { who.initClient().setUser(write_sentence(m.user)); }
  void operator()(const ChannelHello& m) { write(m, who.initChannel()); }
  void operator()(const ShardPeerHello& m) { write(m, who.initShardPeer()); }
};
}  // namespace

static Hello read(schema::Hello::Reader r) {
  Hello hello;
  hello.oldest_version = r.getOldestVersion();
  hello.newest_version = r.getNewestVersion();
  hello.cluster = read_name(r.getCluster(), "cluster");
  hello.cluster_hash = r.getClusterHash();
  const auto who = r.getWho();
  switch (who.which()) {
    case schema::Hello::Who::TASK:
      hello.who = read(who.getTask());
      return hello;
    case schema::Hello::Who::CLIENT:
      hello.who = ClientHello{read_sentence(who.getClient().getUser(), "user")};
      return hello;
    case schema::Hello::Who::CHANNEL:
      hello.who = read(who.getChannel());
      return hello;
    case schema::Hello::Who::SHARD_PEER:
      hello.who = read(who.getShardPeer());
      return hello;
  }
  malformed("it is of kind " + std::to_string(who.which()) + ", which this version doesn't know");
}

static Welcome read(schema::Welcome::Reader r) {
  Welcome welcome;
  welcome.version = r.getVersion();
  welcome.term = Term(r.getTerm());
  welcome.journal = JournalId(r.getJournal());
  welcome.heartbeat_timeout = read_duration(r.getHeartbeatTimeout(), "the heartbeat timeout");
  welcome.last_sequence = Sequence(r.getLastSequence());
  for (auto warning : bounded(r.getWarnings(), kMaxWarnings, "warnings"))
    welcome.warnings.push_back(read_sentence(warning, "warning"));
  welcome.chief = Incarnation(r.getChief());
  for (auto chief : bounded(r.getFormer(), kMaxFormerChiefs, "former chiefs"))
    welcome.former.push_back(Incarnation(chief));
  return welcome;
}

// Checks that a hello or its answer fits into a control part. The ones that we write always fit, so a failed check is a
// bug.
static std::vector<std::byte> small(Result<std::vector<std::byte>> bytes) {
  DISTTRAIN_CHECK(bytes.has_value());
  DISTTRAIN_CHECK_LE(bytes->size(), kMaxControlBytes);
  return std::move(*bytes);
}

std::vector<std::byte> encode(const Hello& hello) {
  return small(build<schema::Hello>("Hello", [&hello](schema::Hello::Builder b) {
    b.setOldestVersion(hello.oldest_version);
    b.setNewestVersion(hello.newest_version);
    b.setCluster(write_name(hello.cluster, "cluster"));
    b.setClusterHash(hello.cluster_hash);
    std::visit(WriteWho{b.initWho()}, hello.who);
  }));
}

std::vector<std::byte> encode(const Welcome& welcome) {
  return small(build<schema::Welcome>("Welcome", [&welcome](schema::Welcome::Builder b) {
    b.setVersion(welcome.version);
    b.setTerm(welcome.term.value);
    b.setJournal(welcome.journal.value);
    b.setHeartbeatTimeout(welcome.heartbeat_timeout.count());
    b.setLastSequence(welcome.last_sequence.value);
    auto warnings = b.initWarnings(list_size(welcome.warnings, kMaxWarnings, "warnings"));
    for (unsigned i = 0; i < warnings.size(); ++i) warnings.set(i, write_sentence(welcome.warnings[i]));
    b.setChief(welcome.chief.value);
    auto former = b.initFormer(list_size(welcome.former, kMaxFormerChiefs, "former chiefs"));
    for (unsigned i = 0; i < former.size(); ++i) former.set(i, welcome.former[i].value);
  }));
}

std::vector<std::byte> encode(const Refused& refused) {
  return small(build<schema::Refused>("Refused", [&refused](schema::Refused::Builder b) { write(refused, b); }));
}

Result<Hello> decode_hello(Bytes control) {
  return parse<schema::Hello>("Hello", control, [](schema::Hello::Reader r) { return read(r); });
}

Result<HelloAnswer> decode_hello_answer(FrameType type, Bytes control) {
  if (type == FrameType::kWelcome)
    return parse<schema::Welcome>("Welcome", control, [](schema::Welcome::Reader r) -> HelloAnswer { return read(r); });
  if (type == FrameType::kRefused)
    return parse<schema::Refused>("Refused", control, [](schema::Refused::Reader r) -> HelloAnswer { return read(r); });
  return fail(ErrorCode::kData, "a hello was answered by a frame of type " +
                                    std::to_string(static_cast<unsigned>(type)) +
                                    "; expected welcome (2) or refused (3)");
}

}  // namespace disttrain::wire
