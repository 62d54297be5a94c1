// Codecs of the reports that tasks send to the chief without being asked: failures, heartbeats, log lines.
#include "transport/wire/control_messages.h"

namespace disttrain::wire {

void write(const TaskFailed& m, schema::TaskFailed::Builder b) {
  write_job(m, b);
  b.setCode(write(m.code));
  b.setReason(write_sentence(m.reason));
}

TaskFailed read(schema::TaskFailed::Reader r) {
  auto m = read_job<TaskFailed>(r);
  m.code = read(r.getCode());
  m.reason = read_sentence(r.getReason(), "reason");
  return m;
}

void write(const Accusation& m, schema::Accusation::Builder b) {
  write_job(m, b);
  write_task(m.accused, b);
  b.setReason(write_sentence(m.reason));
  b.setLasts(m.lasts.count());
  b.setWithdrawn(m.withdrawn);
}

Accusation read(schema::Accusation::Reader r) {
  auto m = read_job<Accusation>(r);
  m.accused = read_task(r);
  m.reason = read_sentence(r.getReason(), "reason");
  m.lasts = read_duration(r.getLasts(), "the time since the accused task was heard");
  m.withdrawn = r.getWithdrawn();
  return m;
}

static void write(const EpochLedger& epoch, schema::EpochLedger::Builder b) {
  b.setEpoch(epoch.epoch);
  write_list(b.initVisited(list_size(epoch.visited, kMaxIntervals, "visited positions")), epoch.visited);
}

static EpochLedger read(schema::EpochLedger::Reader r) {
  EpochLedger epoch{r.getEpoch(), read_list<Interval>(r.getVisited(), kMaxIntervals, "visited positions")};
  for (std::size_t i = 0; i < epoch.visited.size(); ++i) {
    if (epoch.visited[i].begin == epoch.visited[i].end || (i > 0 && epoch.visited[i].begin <= epoch.visited[i - 1].end))
      malformed("the visited intervals of epoch " + std::to_string(epoch.epoch) +
                " must not be empty, and must ascend with gaps between them");
  }
  return epoch;
}

void write(const PacerReport& m, schema::PacerReport::Builder b) {
  b.setGlobalStep(m.global_step.value);
  b.setExamples(m.examples);
  b.setTraining(m.training.count());
  b.setMeasuredSteps(m.measured_steps);
  b.setMeasuredExamples(m.measured_examples);
  b.setLoss(m.loss);
  b.setLate(m.late);
  b.setSkipped(m.skipped);
  b.setSkippedInRow(m.skipped_in_row);
  b.setCompleteEpochs(m.complete_epochs);
  auto ledger = b.initLedger(list_size(m.ledger, kMaxEpochs, "epochs"));
  for (unsigned i = 0; i < ledger.size(); ++i) write(m.ledger[i], ledger[i]);
  b.setFinished(m.finished);
  b.setStaleness(m.staleness);
  b.setSlowestClock(m.slowest_clock.value);
  b.setLearningRate(m.learning_rate);
}

PacerReport read(schema::PacerReport::Reader r) {
  PacerReport m;
  m.global_step = Step(r.getGlobalStep());
  m.examples = r.getExamples();
  m.training = read_duration(r.getTraining(), "the time of training");
  m.measured_steps = r.getMeasuredSteps();
  m.measured_examples = r.getMeasuredExamples();
  m.loss = r.getLoss();
  m.late = r.getLate();
  m.skipped = r.getSkipped();
  m.skipped_in_row = r.getSkippedInRow();
  m.complete_epochs = r.getCompleteEpochs();
  std::size_t intervals = 0;
  for (auto epoch : bounded(r.getLedger(), kMaxEpochs, "epochs")) {
    m.ledger.push_back(read(epoch));
    if (!may_be_in_ledger(m.ledger.back().epoch, m.complete_epochs))
      malformed("a ledger with " + std::to_string(m.complete_epochs) + " complete epochs has epoch " +
                std::to_string(m.ledger.back().epoch));
    intervals += m.ledger.back().visited.size();
    read_number(intervals, kMaxIntervals, "the number of intervals in a ledger");
  }
  m.finished = r.getFinished();
  m.staleness = r.getStaleness();
  m.slowest_clock = Step(r.getSlowestClock());
  m.learning_rate = r.getLearningRate();
  return m;
}

void write(const RosterApplied& m, schema::RosterApplied::Builder b) {
  write_job(m, b);
  b.setVersion(m.version.value);
  b.setStep(m.step.value);
  write(m.pacer, b.initPacer());
  auto batches = b.initBatches(list_size(m.batches, kMaxMembers, "workers with an order of their own"));
  for (unsigned i = 0; i < batches.size(); ++i) {
    auto own = batches[i];
    write_task(m.batches[i].worker, own);
    own.setBatches(m.batches[i].batches.value);
  }
}

RosterApplied read(schema::RosterApplied::Reader r) {
  auto m = read_job<RosterApplied>(r);
  m.version = RosterVersion(r.getVersion());
  m.step = Step(r.getStep());
  m.pacer = read(r.getPacer());
  for (auto own : bounded(r.getBatches(), kMaxMembers, "workers with an order of their own"))
    m.batches.push_back({read_task(own), Step(own.getBatches())});
  return m;
}

static void write(const ShardLoad& load, schema::ShardLoad::Builder b) {
  b.setShard(load.shard.value);
  b.setLived(load.lived.count());
  b.setBusy(load.busy.count());
  b.setApplying(load.applying.count());
}

static ShardLoad read(schema::ShardLoad::Reader r) {
  return {ShardId(r.getShard()), read_duration(r.getLived(), "the time lived"),
          read_duration(r.getBusy(), "the time busy"), read_duration(r.getApplying(), "the time of applying")};
}

void write(const Heartbeat& m, schema::Heartbeat::Builder b) {
  write_job(m, b);
  b.setPhase(write_enum<schema::Phase>(m.phase));
  b.setInPhase(m.in_phase.count());
  b.setSteps(m.steps);
  b.setExamples(m.examples);
  b.setLoss(m.loss);
  auto times = b.initPhaseTimes(list_size(m.phase_times, kPhases, "phase times"));
  for (unsigned i = 0; i < times.size(); ++i) times.set(i, m.phase_times[i].count());
  write_numbers(b.initTurns(list_size(m.turns, kMaxTurns, "turns")), m.turns);
  if (m.pacer) write(*m.pacer, b.initPacer());
  auto shards = b.initShards(list_size(m.shards, kMaxShards, "shards"));
  for (unsigned i = 0; i < shards.size(); ++i) write(m.shards[i], shards[i]);
  b.setWork(m.work);
  write_list(b.initMetrics(list_size(m.metrics, kMaxMetrics, "metrics")), m.metrics);
  b.setClock(m.clock.time_since_epoch().count());
  auto stages = b.initDataTimes(list_size(m.data_times, kDataStages.size(), "data times"));
  for (unsigned i = 0; i < stages.size(); ++i) stages.set(i, m.data_times[i].count());
  b.setWires(m.wires);
}

Heartbeat read(schema::Heartbeat::Reader r) {
  auto m = read_job<Heartbeat>(r);
  m.phase = read_enum(r.getPhase(), Phase::kEvaluate, "phase");
  m.in_phase = read_duration(r.getInPhase(), "the time in a phase");
  m.steps = r.getSteps();
  m.examples = r.getExamples();
  m.loss = r.getLoss();
  for (std::int64_t time : bounded(r.getPhaseTimes(), kPhases, "phase times"))
    m.phase_times.push_back(read_duration(time, "the time in a phase"));
  m.turns = read_numbers(r.getTurns(), kMaxTurns, "turns");
  if (r.hasPacer()) m.pacer = read(r.getPacer());
  for (auto load : bounded(r.getShards(), kMaxShards, "shards")) m.shards.push_back(read(load));
  m.work = r.getWork();
  m.metrics = read_metrics(r.getMetrics());
  m.clock = read_instant(r.getClock(), "the clock");
  for (std::int64_t time : bounded(r.getDataTimes(), kDataStages.size(), "data times"))
    m.data_times.push_back(read_duration(time, "the time in a stage of making batches"));
  m.wires = r.getWires();
  return m;
}

void write(const HeartbeatAnswer& m, schema::HeartbeatAnswer::Builder b) {
  b.setTerm(m.term.value);
  b.setHeartbeatTimeout(m.heartbeat_timeout.count());
  b.setHeartbeatClock(m.heartbeat_clock.time_since_epoch().count());
  b.setChiefClock(m.chief_clock.time_since_epoch().count());
  b.setHeartbeatPause(m.heartbeat_pause.count());
}

HeartbeatAnswer read(schema::HeartbeatAnswer::Reader r) {
  return HeartbeatAnswer{Term(r.getTerm()), read_duration(r.getHeartbeatTimeout(), "the heartbeat timeout"),
                         read_instant(r.getHeartbeatClock(), "the task's clock"),
                         read_instant(r.getChiefClock(), "the chief's clock"),
                         read_duration(r.getHeartbeatPause(), "the time between two heartbeats")};
}

void write(const LogLines& m, schema::LogLines::Builder b) {
  auto lines = b.initLines(list_size(m.lines, kMaxLogLines, "log lines"));
  for (unsigned i = 0; i < lines.size(); ++i) {
    auto line = lines[i];
    line.setWallNanoseconds(m.lines[i].wall_nanoseconds);
    write_task(m.lines[i].task, line);
    line.setLevel(m.lines[i].level);
    line.setText(write_lines(m.lines[i].text, kMaxTextBytes));
  }
  b.setDropped(m.dropped);
}

LogLines read(schema::LogLines::Reader r) {
  LogLines m;
  const auto lines = bounded(r.getLines(), kMaxLogLines, "log lines");
  m.lines.reserve(lines.size());
  for (auto line : lines)
    m.lines.push_back(LogLine{line.getWallNanoseconds(), read_task(line), read_level(line.getLevel()),
                              read_lines(line.getText(), kMaxTextBytes, "log line")});
  m.dropped = r.getDropped();
  return m;
}

}  // namespace disttrain::wire
