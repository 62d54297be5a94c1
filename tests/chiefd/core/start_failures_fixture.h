// A job that starts. Its tasks don't obey by themselves, so a test chooses which of them fail, and when.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {

class StartFailuresTest : public TrainingTest {
 protected:
  void begin(std::uint32_t workers = 3) {
    start_chief(1, workers);
    hello_all();
    obedient_ = false;
  }
  JobId begin_job(JobConfig config, std::uint32_t workers = 3) {
    begin(workers);
    return submit(config);
  }
  JobDescribed described(JobId job) const {
    return JobDescribed{.job = job, .model = model_, .train_records = records_};
  }
  // worker/0 has described the job, and the ps has made its shards. The workers were told to open the job.
  JobId begin_opening(JobConfig config, std::uint32_t workers = 3) {
    const JobId job = begin_job(config, workers);
    say(worker(0), described(job));
    say(ps(0), ShardsCreated{job, generation(job)});
    EXPECT_EQ(sent<OpenJob>(worker(1)).size(), 1u);
    return job;
  }
  // The same, but the last worker hasn't come yet.
  JobId begin_opening_without_last(JobConfig config, std::uint32_t workers) {
    begin(workers);
    kill(worker(workers - 1));
    pass(std::chrono::seconds(1));
    const JobId job = submit(config);
    pass(std::chrono::seconds(10));
    say(worker(0), described(job));
    say(ps(0), ShardsCreated{job, generation(job)});
    return job;
  }
  void open(JobId job, TaskId task) { say(task, JobOpened{job, generation(job)}); }
  void fail(JobId job, TaskId task, ErrorCode code, const std::string& why) {
    say(task, TaskFailed{job, generation(job), code, why});
  }
  void fail_description(JobId job, TaskId task, ErrorCode code, const std::string& why) {
    say(task, TaskFailed{job, Generation(), code, why});
  }
  // The last worker opens the job. From now on all tasks obey.
  void open_last(JobId job, TaskId task) {
    obedient_ = true;
    open(job, task);
    pass(std::chrono::seconds(2));
  }
  // Another process of the task, with another number. It takes the place of the dead one.
  void restart_anew(TaskId task) {
    kill(task);
    pid_of_[task] = 5000 + ++last_incarnation_;
    restart(task);
  }
  std::vector<Member> roster() const { return sent<SetRoster>(ps(0)).back().roster.members; }
  std::string reason_of(JobId job, TaskId task) {
    for (const TaskStatus& one : status(job).tasks)
      if (one.task == task) return one.reason;
    return "";
  }
};

}  // namespace disttrain::chiefd
