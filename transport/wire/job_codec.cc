#include <algorithm>
#include <cmath>

#include "transport/wire/control_messages.h"

namespace disttrain::wire {

// --- A job's start.

void write(const DescribeJob& m, schema::DescribeJob::Builder b) {
  b.setJob(m.job.value);
  write(*m.config, b.initConfig());
  write_list(b.initReach(list_size(m.reach, kMaxShards, "ps tasks to reach")), m.reach);
}

DescribeJob read(schema::DescribeJob::Reader r) {
  return DescribeJob{JobId(r.getJob()), std::make_shared<const JobConfig>(read(r.getConfig())),
                     read_list<Owner>(r.getReach(), kMaxShards, "ps tasks to reach")};
}

void write(const JobDescribed& m, schema::JobDescribed::Builder b) {
  b.setJob(m.job.value);
  write(m.model, b.initModel());
  b.setTrainRecords(m.train_records);
  b.setTrainHash(m.train_hash);
  b.setEvaluationRecords(m.evaluation_records);
  write_list(b.initUnreachable(list_size(m.unreachable, kMaxShards, "unreachable ps tasks")), m.unreachable);
  auto columns = b.initColumns(list_size(m.columns, kMaxKeptColumnsBytes, "bytes of columns"));
  std::copy(m.columns.begin(), m.columns.end(), columns.begin());
  b.setNotice(write_sentence(m.notice));
}

static std::string read_columns(capnp::Data::Reader bytes) {
  const auto bounded_bytes = bounded(bytes, kMaxKeptColumnsBytes, "bytes of columns");
  return {bounded_bytes.begin(), bounded_bytes.end()};
}

JobDescribed read(schema::JobDescribed::Reader r) {
  return JobDescribed{JobId(r.getJob()),
                      read(r.getModel()),
                      read_number(r.getTrainRecords(), kMaxRecords, "the number of records"),
                      r.getTrainHash(),
                      read_number(r.getEvaluationRecords(), kMaxRecords, "the number of records"),
                      read_list<Member>(r.getUnreachable(), kMaxShards, "unreachable ps tasks"),
                      read_columns(r.getColumns()),
                      read_sentence(r.getNotice(), "notice")};
}

// For the fields that CreateShards and OpenJob have in common.
template <typename Message, typename Builder>
static void write_placed(const Message& m, Builder& b) {
  write_job(m, b);
  b.setToken(m.token);
  write(*m.config, b.initConfig());
  write(m.layout, b.initLayout());
  write_list(b.initOwners(list_size(m.owners, kMaxShards, "owners")), m.owners);
  write(m.roster, b.initRoster());
  b.setTrainRecords(m.train_records);
}

template <typename Message, typename Reader>
static Message read_placed(Reader& r) {
  auto m = read_job<Message>(r);
  m.token = r.getToken();
  m.config = std::make_shared<const JobConfig>(read(r.getConfig()));
  m.layout = read(r.getLayout());
  m.owners = read_list<Owner>(r.getOwners(), kMaxShards, "owners");
  m.roster = read(r.getRoster());
  m.train_records = read_number(r.getTrainRecords(), kMaxRecords, "the number of records");
  if (m.owners.size() != m.layout.shards)
    malformed("it names " + std::to_string(m.owners.size()) + " owners of " + std::to_string(m.layout.shards) +
              " shards; expected one owner per shard");
  return m;
}

void write(const CreateShards& m, schema::CreateShards::Builder b) {
  write_placed(m, b);
  b.setWarmupSteps(m.warmup_steps);
  b.setPlaces(m.places);
  b.setCheckpointFolder(write_path(m.checkpoint_folder, "checkpoint folder"));
  b.setCheckpointMark(m.checkpoint_mark);
  b.setRestorePath(write_path(m.restore_path, "checkpoint"));
  b.setInitPath(write_path(m.init_path, "path of initial values"));
}

CreateShards read(schema::CreateShards::Reader r) {
  auto m = read_placed<CreateShards>(r);
  m.warmup_steps = r.getWarmupSteps();
  m.places = r.getPlaces();
  m.checkpoint_folder = read_path(r.getCheckpointFolder(), "checkpoint folder");
  m.checkpoint_mark = r.getCheckpointMark();
  m.restore_path = read_path(r.getRestorePath(), "checkpoint");
  m.init_path = read_path(r.getInitPath(), "path of initial values");
  return m;
}

void write(const ShardsCreated& m, schema::ShardsCreated::Builder b) {
  write_job(m, b);
}

ShardsCreated read(schema::ShardsCreated::Reader r) {
  return read_job<ShardsCreated>(r);
}

void write(const OpenJob& m, schema::OpenJob::Builder b) {
  write_placed(m, b);
  b.setEvaluates(m.evaluates);
  b.setClock(m.clock.value);
  b.setTrainHash(m.train_hash);
  b.setBatches(m.batches);
}

OpenJob read(schema::OpenJob::Reader r) {
  auto m = read_placed<OpenJob>(r);
  m.evaluates = r.getEvaluates();
  m.clock = Step(r.getClock());
  m.train_hash = r.getTrainHash();
  m.batches = r.getBatches();
  return m;
}

void write(const JobOpened& m, schema::JobOpened::Builder b) {
  write_job(m, b);
  b.setWires(m.wires);
}

JobOpened read(schema::JobOpened::Reader r) {
  auto m = read_job<JobOpened>(r);
  m.wires = r.getWires();
  return m;
}

void write(const StartJob& m, schema::StartJob::Builder b) {
  write_job(m, b);
}

StartJob read(schema::StartJob::Reader r) {
  return read_job<StartJob>(r);
}

void write(const PauseJob& m, schema::PauseJob::Builder b) {
  write_job(m, b);
  b.setPaused(m.paused);
  b.setReason(write_sentence(m.reason));
}

PauseJob read(schema::PauseJob::Reader r) {
  auto m = read_job<PauseJob>(r);
  m.paused = r.getPaused();
  m.reason = read_sentence(r.getReason(), "reason");
  return m;
}

// --- Workers come and go.

void write(const SetRoster& m, schema::SetRoster::Builder b) {
  write_job(m, b);
  write(m.roster, b.initRoster());
  b.setEnds(m.ends);
}

SetRoster read(schema::SetRoster::Reader r) {
  auto m = read_job<SetRoster>(r);
  m.roster = read(r.getRoster());
  m.ends = r.getEnds();
  return m;
}

void write(const FenceWorker& m, schema::FenceWorker::Builder b) {
  write_job(m, b);
  write(m.worker, b.initWorker());
}

FenceWorker read(schema::FenceWorker::Reader r) {
  auto m = read_job<FenceWorker>(r);
  m.worker = read(r.getWorker());
  return m;
}

void write(const WorkerFenced& m, schema::WorkerFenced::Builder b) {
  write_job(m, b);
  b.setShard(m.shard.value);
  write(m.worker, b.initWorker());
  b.setLastSequence(m.last_sequence.value);
  b.setLastClock(m.last_clock.value);
}

WorkerFenced read(schema::WorkerFenced::Reader r) {
  auto m = read_job<WorkerFenced>(r);
  m.shard = ShardId(r.getShard());
  m.worker = read(r.getWorker());
  m.last_sequence = Sequence(r.getLastSequence());
  m.last_clock = Step(r.getLastClock());
  return m;
}

// --- Data.

void write(const LeaseRequest& m, schema::LeaseRequest::Builder b) {
  write_job(m, b);
  b.setRecordsPerSecond(m.records_per_second);
}

LeaseRequest read(schema::LeaseRequest::Reader r) {
  auto m = read_job<LeaseRequest>(r);
  const double rate = r.getRecordsPerSecond();
  m.records_per_second = std::isfinite(rate) && rate > 0.0 ? rate : 0.0;  // unknown
  return m;
}

void write(const Lease& lease, schema::Lease::Builder b) {
  b.setId(lease.id.value);
  b.setEpoch(lease.epoch);
  write_list(b.initPositions(list_size(lease.positions, kMaxIntervals, "positions")), lease.positions);
  b.setFirstStep(lease.first_step.value);
  b.setSteps(lease.steps);
  b.setRanks(lease.ranks);
  b.setRoster(lease.roster.value);
  b.setRank(lease.rank.value);
}

Lease read(schema::Lease::Reader r) {
  Lease lease;
  lease.id = LeaseId(r.getId());
  lease.epoch = r.getEpoch();
  lease.positions = read_list<Interval>(r.getPositions(), kMaxIntervals, "positions");
  lease.first_step = Step(r.getFirstStep());
  lease.steps = r.getSteps();
  lease.ranks = r.getRanks();
  lease.roster = RosterVersion(r.getRoster());
  lease.rank = Rank(r.getRank());
  return lease;
}

void write(const LeaseGrant& m, schema::LeaseGrant::Builder b) {
  write_job(m, b);
  if (m.lease) write(*m.lease, b.initLease());
  b.setLast(m.last);
  b.setRoster(m.roster.value);
}

LeaseGrant read(schema::LeaseGrant::Reader r) {
  auto m = read_job<LeaseGrant>(r);
  if (r.hasLease()) m.lease = read(r.getLease());
  m.last = r.getLast();
  m.roster = RosterVersion(r.getRoster());
  return m;
}

// --- A job's end.

void write(const CheckpointRequest& m, schema::CheckpointRequest::Builder b) {
  write_job(m, b);
}

CheckpointRequest read(schema::CheckpointRequest::Reader r) {
  return read_job<CheckpointRequest>(r);
}

void write(const WorkerFinished& m, schema::WorkerFinished::Builder b) {
  write_job(m, b);
  b.setSteps(m.steps);
}

WorkerFinished read(schema::WorkerFinished::Reader r) {
  auto m = read_job<WorkerFinished>(r);
  m.steps = r.getSteps();
  return m;
}

void write(const StopJob& m, schema::StopJob::Builder b) {
  write_job(m, b);
}

StopJob read(schema::StopJob::Reader r) {
  return read_job<StopJob>(r);
}

void write(const SetEvaluator& m, schema::SetEvaluator::Builder b) {
  write_job(m, b);
}

SetEvaluator read(schema::SetEvaluator::Reader r) {
  return read_job<SetEvaluator>(r);
}

void write(const Evaluate& m, schema::Evaluate::Builder b) {
  write_job(m, b);
}

Evaluate read(schema::Evaluate::Reader r) {
  return read_job<Evaluate>(r);
}

void write(const Evaluated& m, schema::Evaluated::Builder b) {
  write_job(m, b);
  b.setStep(m.step.value);
  b.setFinal(m.final);
  b.setLoss(m.loss);
  b.setExamples(m.examples);
  b.setTook(m.took.count());
  b.setStalledTraining(m.stalled_training);
  b.setParametersHash(m.parameters_hash);
  write_list(b.initMetrics(list_size(m.metrics, kMaxMetrics, "metrics")), m.metrics);
  b.setPath(write_path(m.path, "checkpoint"));
  b.setNotice(write_sentence(m.notice));
}

Evaluated read(schema::Evaluated::Reader r) {
  auto m = read_job<Evaluated>(r);
  m.step = Step(r.getStep());
  m.final = r.getFinal();
  m.loss = r.getLoss();
  m.metrics = read_evaluation_metrics(r);
  m.examples = r.getExamples();
  m.took = read_duration(r.getTook(), "the time it took");
  m.stalled_training = r.getStalledTraining();
  m.parameters_hash = r.getParametersHash();
  m.path = read_path(r.getPath(), "checkpoint");
  m.notice = read_sentence(r.getNotice(), "notice");
  return m;
}

void write(const EvaluateCheckpoint& m, schema::EvaluateCheckpoint::Builder b) {
  write_job(m, b);
  write(*m.config, b.initConfig());
  b.setPath(write_path(m.path, "checkpoint"));
}

EvaluateCheckpoint read(schema::EvaluateCheckpoint::Reader r) {
  auto m = read_job<EvaluateCheckpoint>(r);
  m.config = std::make_shared<const JobConfig>(read(r.getConfig()));
  m.path = read_path(r.getPath(), "checkpoint");
  return m;
}

void write(const EvaluationFailed& m, schema::EvaluationFailed::Builder b) {
  write_job(m, b);
  b.setPath(write_path(m.path, "checkpoint"));
  b.setCode(write(m.code));
  b.setReason(write_sentence(m.reason));
}

EvaluationFailed read(schema::EvaluationFailed::Reader r) {
  auto m = read_job<EvaluationFailed>(r);
  m.path = read_path(r.getPath(), "checkpoint");
  m.code = read(r.getCode());
  m.reason = read_sentence(r.getReason(), "reason");
  return m;
}

void write(const CloseJob& m, schema::CloseJob::Builder b) {
  write_job(m, b);
  b.setReason(write_sentence(m.reason));
  b.setRemoved(m.removed);
}

CloseJob read(schema::CloseJob::Reader r) {
  auto m = read_job<CloseJob>(r);
  m.reason = read_sentence(r.getReason(), "reason");
  m.removed = r.getRemoved();
  return m;
}

void write(const JobClosed& m, schema::JobClosed::Builder b) {
  b.setJob(m.job.value);
}

JobClosed read(schema::JobClosed::Reader r) {
  return JobClosed{JobId(r.getJob())};
}

}  // namespace disttrain::wire
