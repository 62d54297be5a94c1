// Codecs of the messages about checkpoints between the chief and the tasks.
#include "transport/wire/control_messages.h"

namespace disttrain::wire {

// For messages that begin with job, generation and attempt.
template <typename Message, typename Builder>
static void write_attempt(const Message& m, Builder& b) {
  write_job(m, b);
  b.setAttempt(m.attempt);
}

template <typename Message, typename Reader>
static Message read_attempt(Reader& r) {
  auto m = read_job<Message>(r);
  m.attempt = r.getAttempt();
  return m;
}

void write(const PrepareCheckpoint& m, schema::PrepareCheckpoint::Builder b) {
  write_attempt(m, b);
  b.setFolder(write_path(m.folder, "folder"));
  b.setHolds(m.holds);
}

PrepareCheckpoint read(schema::PrepareCheckpoint::Reader r) {
  auto m = read_attempt<PrepareCheckpoint>(r);
  m.folder = read_path(r.getFolder(), "folder");
  m.holds = r.getHolds();
  return m;
}

void write(const CheckpointPrepared& m, schema::CheckpointPrepared::Builder b) {
  write_attempt(m, b);
}

CheckpointPrepared read(schema::CheckpointPrepared::Reader r) {
  return read_attempt<CheckpointPrepared>(r);
}

void write(const TakeCut& m, schema::TakeCut::Builder b) {
  write_attempt(m, b);
  b.setAt(m.at.value);
}

TakeCut read(schema::TakeCut::Reader r) {
  auto m = read_attempt<TakeCut>(r);
  m.at = Step(r.getAt());
  return m;
}

void write(const MarkChannels& m, schema::MarkChannels::Builder b) {
  write_attempt(m, b);
}

MarkChannels read(schema::MarkChannels::Reader r) {
  return read_attempt<MarkChannels>(r);
}

void write(const AbandonCheckpoint& m, schema::AbandonCheckpoint::Builder b) {
  write_attempt(m, b);
}

AbandonCheckpoint read(schema::AbandonCheckpoint::Reader r) {
  return read_attempt<AbandonCheckpoint>(r);
}

void write(const CheckpointFailed& m, schema::CheckpointFailed::Builder b) {
  write_attempt(m, b);
  b.setCode(write(m.code));
  b.setReason(write_sentence(m.reason));
}

CheckpointFailed read(schema::CheckpointFailed::Reader r) {
  auto m = read_attempt<CheckpointFailed>(r);
  m.code = read(r.getCode());
  m.reason = read_sentence(r.getReason(), "reason");
  return m;
}

static void write(const WorkerEntry& m, schema::WorkerEntry::Builder b) {
  write(m.worker, b.initWorker());
  b.setLast(m.last.value);
  b.setClock(m.clock.value);
  b.setBatches(m.batches.value);
}

static WorkerEntry read(schema::WorkerEntry::Reader r) {
  return WorkerEntry{read(r.getWorker()), Sequence(r.getLast()), Step(r.getClock()), Step(r.getBatches())};
}

static void write(const FileEntry& m, schema::ShardWritten::File::Builder b) {
  b.setName(write_name(m.name, "name of a file"));
  b.setBytes(m.bytes);
  b.setDataBegin(m.data_begin);
  b.setChecksum(m.checksum);
  write_numbers(b.initChunks(list_size(m.chunks, kMaxChunks, "chunks")), m.chunks);
}

static FileEntry read(schema::ShardWritten::File::Reader r) {
  return FileEntry{read_name(r.getName(), "name of a file"), r.getBytes(), r.getDataBegin(), r.getChecksum(),
                   read_numbers(r.getChunks(), kMaxChunks, "chunks")};
}

void write(const ShardWritten& m, schema::ShardWritten::Builder b) {
  write_attempt(m, b);
  b.setShard(m.shard.value);
  b.setVersion(m.entry.version.value);
  b.setWords(m.entry.words);
  auto workers = b.initWorkers(list_size(m.entry.workers, kMaxMembers, "workers"));
  for (unsigned i = 0; i < workers.size(); ++i) write(m.entry.workers[i], workers[i]);
  write(m.file, b.initFile());
  if (m.pacer) write(*m.pacer, b.initPacer());
  b.setCut(m.cut.count());
  b.setParked(m.parked.count());
  b.setWriting(m.writing.count());
}

ShardWritten read(schema::ShardWritten::Reader r) {
  auto m = read_attempt<ShardWritten>(r);
  m.shard = ShardId(r.getShard());
  m.entry.version = Step(r.getVersion());
  m.entry.words = r.getWords();
  for (auto worker : bounded(r.getWorkers(), kMaxMembers, "workers")) m.entry.workers.push_back(read(worker));
  m.file = read(r.getFile());
  if (r.hasPacer()) m.pacer = read(r.getPacer());
  m.cut = read_duration(r.getCut(), "the time of the cut");
  m.parked = read_duration(r.getParked(), "the time parked");
  m.writing = read_duration(r.getWriting(), "the time of writing");
  return m;
}

}  // namespace disttrain::wire
