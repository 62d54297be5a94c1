#include "tests/sim/mishaps.h"

#include <algorithm>

namespace disttrain::sim {

using std::chrono::milliseconds;

void Mishaps::draw(JobConfig& job) {
  if (one_in(12)) job.job.max_restarts = static_cast<std::uint32_t>(between(0, 3));
}

void Mishaps::begin(const JobConfig& job, Duration within, std::function<ChiefNode*()> chief,
                    std::function<void()> lose_a_ps, EndTask end_a_task) {
  chief_ = std::move(chief);
  end_a_task_ = std::move(end_a_task);
  lose_a_ps_ = [this, lose = std::move(lose_a_ps)] {
    if (!is_over_) lose();
  };
  draw_leaves(within);
  draw_claims(within);
  draw_ps_leaves(job.job.name, within / 4);
  for (const Storage::Reach how : {Storage::Reach::kUnreadable, Storage::Reach::kAway, Storage::Reach::kUnmounted})
    for (std::uint64_t times = one_in(8) ? between(1, 3) : 0; times > 0; --times)
      at_some_time(within, [this, how] { lose_folder(how); });
  for (std::uint64_t times = one_in(5) ? between(1, 3) : 0; times > 0; --times)
    at_some_time(within, [this, job] { damage(job); });
  for (std::uint64_t times = one_in(4) ? between(1, 5) : 0; times > 0; --times)
    at_some_time(within, [this, name = job.job.name] {
      if (ChiefNode* const node = chief_()) node->save(name);
    });
  if (!one_in(12)) return;
  at_some_time(within, [this, name = job.job.name, kill = one_in(2)] {
    ChiefNode* const node = chief_();
    if (node == nullptr || !node->cluster().find(name)) return;
    world_.tell(kill ? "a client kills the job" : "a client stops the job");
    is_stopped_ = true;
    world_.count(Happening::kClientStops);
    node->stop(name, kill);
  });
}

void Mishaps::at_some_time(Duration within, std::function<void()> work) {
  const Duration when(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(within.count()))));
  world_.after(when, [this, work = std::move(work)] {
    if (!is_over_) work();
  });
}

// An operator restarts tasks and changes the heartbeat timeout.
void Mishaps::draw_leaves(Duration within) {
  for (std::uint64_t times = leaves_.below(3) == 0 ? 1 + leaves_.below(5) : 0; times > 0; --times)
    later(within, [this] { end_a_task(std::nullopt); });
  for (std::uint64_t times = leaves_.below(8) == 0 ? 1 + leaves_.below(3) : 0; times > 0; --times)
    later(within, [this, timeout = milliseconds(500 + leaves_.below(1500))] {
      ChiefNode* const node = chief_();
      if (node == nullptr) return;
      world_.count(Happening::kTimeoutChanged);
      node->reconfigure(timeout);
    });
}

// A process claims the place of a task. It was started with a wrong index, or it lies.
void Mishaps::draw_claims(Duration within) {
  for (std::uint64_t times = claims_.below(4) == 0 ? 1 + claims_.below(6) : 0; times > 0; --times) {
    const Duration when(static_cast<std::int64_t>(claims_.below(static_cast<std::uint64_t>(within.count()))));
    world_.after(when, [this, drawn = claims_.below(std::uint64_t{1} << 40)] {
      if (ChiefNode* const node = is_over_ ? nullptr : chief_()) node->claim_a_place(drawn);
    });
  }
}

// A checkpoint is saved before a ps leaves, but only if the job trains. Most jobs train only for a short part of a run,
// so these mishaps wait until the job trains. Sometimes a second mishap follows soon: it comes while that checkpoint is
// being taken, or while the shards apply nothing after its cut.
void Mishaps::draw_ps_leaves(const std::string& job, Duration within) {
  for (std::uint64_t times = leaves_.below(3) == 0 ? 1 + leaves_.below(4) : 0; times > 0; --times) {
    later(within, [this, job] {
      once_it_trains(job, [this, job] {
        end_a_task(Role::kPs);
        switch (leaves_.below(6)) {
          case 0:
            return later(milliseconds(200), [this] { end_a_task(Role::kPs); });
          case 1:
            return later(milliseconds(200), [this] { end_a_task(Role::kWorker); });
          case 2:
            return later(milliseconds(200), lose_a_ps_);
          case 3:
            return later(milliseconds(200), [this, job] {
              if (ChiefNode* const node = chief_()) node->save(job);
            });
          default:
            return;
        }
      });
    });
  }
}

void Mishaps::end_a_task(std::optional<Role> role) {
  const std::uint64_t number = leaves_.below(1000);
  end_a_task_(role, number, milliseconds(1 + leaves_.below(3000)));
}

void Mishaps::later(Duration within, std::function<void()> work) {
  const Duration when(static_cast<std::int64_t>(leaves_.below(static_cast<std::uint64_t>(within.count()))));
  world_.after(when, [this, work = std::move(work)] {
    if (!is_over_) work();
  });
}

void Mishaps::once_it_trains(const std::string& job, std::function<void()> work) {
  if (is_over_) return;
  ChiefNode* const node = chief_();
  const std::optional<JobId> id = node == nullptr ? std::nullopt : node->cluster().find(job);
  if (id && node->cluster().state_of(*id) == chiefd::JobState::kRunning)
    return later(milliseconds(300), std::move(work));
  world_.after(milliseconds(20), [this, job, work = std::move(work)] { once_it_trains(job, work); });
}

void Mishaps::lose_folder(Storage::Reach how) {
  // Before the first commit, the chief can't notice that a file system isn't mounted: the job's folder in the empty
  // mount point looks like the folder of a new job. So in this case the disk is away instead.
  const auto is_known = [](const auto& entry) { return entry.second.checkpoint.has_value(); };
  const auto& known = journal_.journal.jobs;
  if (how == Storage::Reach::kUnmounted && std::none_of(known.begin(), known.end(), is_known))
    how = Storage::Reach::kAway;
  storage_.lose(how);
  world_.after(milliseconds(between(1, one_in(2) ? 100 : 4000)), [this] { storage_.lose(Storage::Reach::kHere); });
  if (one_in(2)) world_.after(milliseconds(between(0, 500)), lose_a_ps_);
}

// With a probability of 1/2, a ps dies soon after the damage, so that the checkpoint is needed.
void Mishaps::damage(const JobConfig& job) {
  const std::optional<std::string> path = storage_.damage(job.checkpoint.directory + "/" + job.job.name, random_);
  if (!path) return;
  laws_.damaged(*path);
  world_.count(Happening::kCheckpointDamaged);
  if (one_in(2)) world_.after(milliseconds(between(0, 500)), lose_a_ps_);
}

}  // namespace disttrain::sim
