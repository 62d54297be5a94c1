#include "transport/wire/control_messages.h"

namespace disttrain::wire {

void write(const SubmitJob& m, schema::SubmitJob::Builder b) {
  b.setJobToml(write_bytes(m.job_toml, kMaxJobTomlBytes, "job file"));
  b.setWarmupSteps(m.warmup_steps);
  b.setGoesOn(m.goes_on);
  b.setAwaitedWorkers(m.awaited_workers);
}

SubmitJob read(schema::SubmitJob::Reader r) {
  return SubmitJob{read_bytes(r.getJobToml(), kMaxJobTomlBytes, "job file"), r.getWarmupSteps(), r.getGoesOn(),
                   r.getAwaitedWorkers()};
}

void write(const JobSubmitted& m, schema::JobSubmitted::Builder b) {
  b.setJob(m.job.value);
  b.setAhead(m.ahead);
  b.setWasThere(m.was_there);
}

JobSubmitted read(schema::JobSubmitted::Reader r) {
  return JobSubmitted{JobId(r.getJob()), r.getAhead(), r.getWasThere()};
}

void write(const StatusRequest& m, schema::StatusRequest::Builder b) {
  b.setJob(write_name(m.job, "job"));
  b.setAll(m.all);
  b.setWaitForEnd(m.wait_for_end.count());
}

StatusRequest read(schema::StatusRequest::Reader r) {
  return StatusRequest{read_name(r.getJob(), "job"), r.getAll(), read_duration(r.getWaitForEnd(), "the time to wait")};
}

void write(const StatusAnswer& m, schema::StatusAnswer::Builder b) {
  b.setJson(write_bytes(m.json, kMaxJsonBytes, "answer"));
}

StatusAnswer read(schema::StatusAnswer::Reader r) {
  return StatusAnswer{read_bytes(r.getJson(), kMaxJsonBytes, "answer")};
}

void write(const StopRequest& m, schema::StopRequest::Builder b) {
  b.setJob(write_name(m.job, "job"));
  b.setKill(m.kill);
}

StopRequest read(schema::StopRequest::Reader r) {
  return StopRequest{read_name(r.getJob(), "job"), r.getKill()};
}

void write(const ResubmitRequest& m, schema::ResubmitRequest::Builder b) {
  b.setJob(write_name(m.job, "job"));
}

ResubmitRequest read(schema::ResubmitRequest::Reader r) {
  return ResubmitRequest{read_name(r.getJob(), "job")};
}

void write(const LogsRequest& m, schema::LogsRequest::Builder b) {
  b.setJob(write_name(m.job, "job"));
  auto tasks = b.initTasks(list_size(m.tasks, kMaxMembers, "tasks"));
  for (unsigned i = 0; i < tasks.size(); ++i) {
    auto task = tasks[i];
    write_task(m.tasks[i], task);
  }
  b.setLevel(m.level);
  b.setSinceWallNanoseconds(m.since_wall_nanoseconds);
  b.setFollow(m.follow);
}

LogsRequest read(schema::LogsRequest::Reader r) {
  LogsRequest m;
  m.job = read_name(r.getJob(), "job");
  for (auto task : bounded(r.getTasks(), kMaxMembers, "tasks")) m.tasks.push_back(read_task(task));
  m.level = read_level(r.getLevel());
  m.since_wall_nanoseconds = r.getSinceWallNanoseconds();
  m.follow = r.getFollow();
  return m;
}

void write(const SaveRequest& m, schema::SaveRequest::Builder b) {
  b.setJob(write_name(m.job, "job"));
}

SaveRequest read(schema::SaveRequest::Reader r) {
  return SaveRequest{read_name(r.getJob(), "job")};
}

void write(const CheckpointSaved& m, schema::CheckpointSaved::Builder b) {
  b.setPath(write_path(m.path, "path"));
  b.setStep(m.step.value);
}

CheckpointSaved read(schema::CheckpointSaved::Reader r) {
  return CheckpointSaved{read_path(r.getPath(), "path"), Step(r.getStep())};
}

void write(const EventsRequest& m, schema::EventsRequest::Builder b) {
  b.setJob(write_name(m.job, "job"));
  b.setAll(m.all);
  b.setFollow(m.follow);
  b.setMost(m.most);
}

EventsRequest read(schema::EventsRequest::Reader r) {
  return EventsRequest{read_name(r.getJob(), "job"), r.getAll(), r.getFollow(), r.getMost()};
}

void write(const EventsAnswer& m, schema::EventsAnswer::Builder b) {
  b.setJson(write_bytes(m.json, kMaxJsonBytes, "answer"));
}

EventsAnswer read(schema::EventsAnswer::Reader r) {
  return EventsAnswer{read_bytes(r.getJson(), kMaxJsonBytes, "answer")};
}

}  // namespace disttrain::wire
