#include "transport/wire/control_messages.h"

namespace disttrain::wire {

void write(const SubmitJob& m, schema::SubmitJob::Builder b) {
  b.setJobToml(text(m.job_toml));
  b.setWarmupSteps(m.warmup_steps);
  b.setGoesOn(m.goes_on);
  b.setAwaitedWorkers(m.awaited_workers);
}

SubmitJob read(schema::SubmitJob::Reader r) {
  return SubmitJob{string(r.getJobToml()), r.getWarmupSteps(), r.getGoesOn(), r.getAwaitedWorkers()};
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
  b.setJob(text(m.job));
  b.setAll(m.all);
  b.setWaitForEnd(m.wait_for_end.count());
}

StatusRequest read(schema::StatusRequest::Reader r) {
  return StatusRequest{string(r.getJob()), r.getAll(), Duration(r.getWaitForEnd())};
}

void write(const StatusAnswer& m, schema::StatusAnswer::Builder b) {
  b.setJson(text(m.json));
}

StatusAnswer read(schema::StatusAnswer::Reader r) {
  return StatusAnswer{string(r.getJson())};
}

void write(const StopRequest& m, schema::StopRequest::Builder b) {
  b.setJob(text(m.job));
  b.setKill(m.kill);
}

StopRequest read(schema::StopRequest::Reader r) {
  return StopRequest{string(r.getJob()), r.getKill()};
}

void write(const LogsRequest& m, schema::LogsRequest::Builder b) {
  b.setJob(text(m.job));
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
  m.job = string(r.getJob());
  for (auto task : bounded(r.getTasks(), kMaxMembers, "tasks")) m.tasks.push_back(read_task(task));
  m.level = read_level(r.getLevel());
  m.since_wall_nanoseconds = r.getSinceWallNanoseconds();
  m.follow = r.getFollow();
  return m;
}

void write(const SaveRequest& m, schema::SaveRequest::Builder b) {
  b.setJob(text(m.job));
}

SaveRequest read(schema::SaveRequest::Reader r) {
  return SaveRequest{string(r.getJob())};
}

void write(const CheckpointSaved& m, schema::CheckpointSaved::Builder b) {
  b.setPath(text(m.path));
  b.setStep(m.step.value);
}

CheckpointSaved read(schema::CheckpointSaved::Reader r) {
  return CheckpointSaved{string(r.getPath()), Step(r.getStep())};
}

void write(const EventsRequest& m, schema::EventsRequest::Builder b) {
  b.setJob(text(m.job));
  b.setAll(m.all);
  b.setFollow(m.follow);
  b.setMost(m.most);
}

EventsRequest read(schema::EventsRequest::Reader r) {
  return EventsRequest{string(r.getJob()), r.getAll(), r.getFollow(), r.getMost()};
}

void write(const EventsAnswer& m, schema::EventsAnswer::Builder b) {
  b.setJson(text(m.json));
}

EventsAnswer read(schema::EventsAnswer::Reader r) {
  return EventsAnswer{string(r.getJson())};
}

void write(const Refused& m, schema::Refused::Builder b) {
  b.setCode(write(m.code));
  b.setReason(text(m.reason));
}

Refused read(schema::Refused::Reader r) {
  return Refused{read(r.getCode()), string(r.getReason())};
}

}  // namespace disttrain::wire
