#include "tests/sim/simulation.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "common/check.h"
#include "tests/sim/chief_node.h"
#include "tests/sim/evaluator_node.h"
#include "tests/sim/forks.h"
#include "tests/sim/job_rules.h"
#include "tests/sim/long_faults.h"
#include "tests/sim/mishaps.h"
#include "tests/sim/ps_node.h"
#include "tests/sim/worker_node.h"

namespace disttrain::sim {
namespace {

struct FailedCheck : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using std::chrono::milliseconds;
using std::chrono::seconds;

// Most seeds take some 10,000 turns.
constexpr std::uint64_t kMostTurns = 1000000;
// Enough time to read the data twice, with the restore of a checkpoint in between.
constexpr Duration kLongestWork = seconds(900);

class Simulation {
 public:
  Simulation(std::uint64_t seed, bool keep_words)
      : world_(seed, keep_words),
        disk_(seed),
        storage_(world_),
        laws_(jobs_),
        network_(world_),
        mishaps_(seed, world_, storage_, laws_, disk_),
        long_faults_(seed, world_, network_, storage_, disk_),
        forks_(seed, world_, network_) {
    jobs_.disk = &storage_;
    network_.on_bad_message = [this](const std::string& problem) { laws_.violated("wire: " + problem); };
    disk_.on_failed = [this] {
      world_.after(Duration(), [this] {
        crash(TaskId{Role::kChief, 0}, false, milliseconds(disk_.random.below(2000)));
      });
    };
    network_.on_violation = [this](const std::string& law) { laws_.violated(law); };
    network_.on_exit = [this](const std::string& where) { exited(where); };
    draw_cluster();
    draw_job();
    draw_faults();
    draw_evaluators(seed);
    mishaps_.draw(jobs_.configs.at("first"));
    draw_doubles(seed, world_, jobs_);
    draw_rules(seed, world_, jobs_, storage_);
    draw_long_work(seed);
    draw_absence(seed);
    draw_lack(seed);
    if (long_faults_.wants_long_job()) make_long(jobs_.configs.at("first"));
  }

  // A check in the code has failed.
  Outcome broken(const std::string& why) {
    Outcome outcome;
    outcome.violation = why;
    outcome.words = world_.words();
    return outcome;
  }

  Outcome run() {
    for (const TaskId task : tasks_) start(task);
    const Instant faults_end = world_.now() + world_.between(seconds(1), seconds(8));
    if (is_faulty_) begin_faults(faults_end);
    until(faults_end, [this] { return is_over("first"); });
    if (loses_ps_at_work_) {
      lose_ps_with_checkpoint();
      until(world_.now() + kLongestWork, [this] { return is_over("first"); });
    }
    // While one long fault lasts, another one may begin.
    for (Instant end = faults_end; end < long_faults_.over_at();) {
      end = long_faults_.over_at();
      until(end, [this] { return is_over("first"); });
    }
    if (absent_until_ > world_.now()) until(absent_until_, [this] { return is_over("first"); });
    heal();
    // If a disk hung when an operation began, the operation ends only when the disk works again.
    until(std::max(storage_.hangs_until(), disk_.hung_until), [] { return false; });
    Outcome outcome;
    expect_end("first", patience());
    if (is_over("first")) judge_first(outcome);
    // The first job must leave nothing behind that disturbs the second. The second job is submitted when the chief has
    // heard from its tasks again.
    wanted_ = "first";
    until(world_.now() + seconds(5), [] { return false; });
    expect_end("second", patience());
    if (is_over("second")) {
      const chiefd::JobStatus status = status_of("second");
      const bool diverged = may_diverge(jobs_.configs.at("second"), status.reason);
      if (status.state == chiefd::JobState::kFailed && diverged)
        world_.tell("the second job has diverged");
      else if (status.state != chiefd::JobState::kFinished)
        laws_.violated("L1: the second job ran without faults, but it is " + std::string(to_string(status.state)) +
                       ": " + status.reason);
      else if (!is_early(status))
        laws_.finished(jobs_.configs.at("second"), status.examples);
      if (status.state == chiefd::JobState::kFinished) laws_.has_evaluated_all(status.job, jobs_.configs.at("second"));
      blames_who_was_hit(jobs_.configs.at("second"), status);
    }
    if (!is_faulty_ && laws_.has_lost_links())
      laws_.violated("L2: the job rolls back because of a link, but no link has failed");
    outcome.violation = laws_.violation();
    outcome.hash = world_.hash();
    outcome.turns = world_.turns();
    for (std::uint64_t n = laws_.applied_by_former_owners(); n > 0; --n) world_.count(Happening::kFrameAtFormerOwner);
    for (std::uint64_t n = laws_.skipped(); n > 0; --n) world_.count(Happening::kSkippedStep);
    outcome.happenings = world_.happenings();
    outcome.words = world_.words();
    return outcome;
  }

 private:
  static bool is_early(const chiefd::JobStatus& status) {
    return status.reason.find("finished early") != std::string::npos;
  }
  void judge_first(Outcome& outcome) {
    const JobConfig& job = jobs_.configs.at("first");
    const chiefd::JobStatus status = status_of("first");
    outcome.finished = status.state == chiefd::JobState::kFinished;
    outcome.reason = status.reason;
    if (outcome.finished && !chief()->knows_by_journal_alone("first")) {
      if (!is_early(status)) laws_.finished(job, status.examples);
      laws_.has_last_checkpoint(job, Step(status.global_step));
      laws_.has_evaluated_all(status.job, job);
    }
    // A client stopped this job, so it must have saved a checkpoint of its last step.
    const bool was_stopped = status.state == chiefd::JobState::kStopped && status.reason == "stopped by sim";
    if (was_stopped && status.global_step > 0 && !chief()->knows_by_journal_alone("first"))
      laws_.has_last_checkpoint(job, Step(status.global_step));
    const bool may_end = outcome.finished || (status.state == chiefd::JobState::kStopped && mishaps_.is_stopped()) ||
                         (status.state == chiefd::JobState::kFailed && may_fail(job, status.reason));
    if (!may_end) laws_.violated("L1: the job is " + std::string(to_string(status.state)) + ": " + status.reason);
    blames_who_was_hit(job, status);
  }
  // The chief may blame only tasks that a fault has hit. It may also blame a task that reported a problem with the data
  // or with a folder.
  void blames_who_was_hit(const JobConfig& job, const chiefd::JobStatus& status) {
    if (!status.root_cause || network_.harm.is_hit(status.root_cause->task)) return;
    const auto says = [&status](const char* what) { return status.reason.find(what) != std::string::npos; };
    if (may_diverge(job, status.reason) || says("the disk is away") || says("input/output error") ||
        says("isn't the folder that the chief sees"))
      return;
    laws_.violated("I26: the job is " + std::string(to_string(status.state)) + " because of " +
                   to_string(status.root_cause->task) + ", but no fault has hit this task: " + status.reason);
  }
  // Returns true if the job's losses or gradients may be infinite or NaN, and the reason says that they were.
  bool may_diverge(const JobConfig& job, const std::string& reason) const {
    return jobs_.nonfinite.count(job.job.name) != 0 && reason.find("finite") != std::string::npos;
  }
  // Returns true if the faults of this seed allow a job to fail for this reason.
  bool may_fail(const JobConfig& job, const std::string& reason) const {
    const auto says = [&reason](const std::string& what) { return reason.find(what) != std::string::npos; };
    // A disk that fails may make a job fail only at its end, when the last checkpoint couldn't be taken. A job may also
    // fail if all its checkpoints were lost or damaged, or if a disk is away when the job begins.
    return may_diverge(job, reason) ||
           (storage_.was_away() && (says("checkpoint.init_from: ") || says("init.safetensors"))) ||
           ((storage_.has_failed() || storage_.was_away()) && says("the last checkpoint couldn't be taken")) ||
           ((storage_.has_lied() || laws_.was_any_damaged()) &&
            (says("is its file system mounted?") || says("can be used any more"))) ||
           (storage_.has_hung() && says("does its file system hang?")) ||
           (disk_.hung_until != Instant() && says("the chief's own disk has written no record")) ||
           (storage_.was_away() && (says("the disk is away") || says("doesn't exist on this host")) &&
            !laws_.has_trained()) ||
           (job.job.ps_timeout != Duration() && says("(job.ps_timeout)")) ||
           (job.job.workers_timeout != Duration() && says("(job.workers_timeout)")) ||
           // If another fault has hit the other workers, too few of them may be left.
           (says("it lacks something") && (is_faulty_ || job.job.on_worker_loss == OnWorkerLoss::kWait)) ||
           says("job.max_restarts is " + std::to_string(job.job.max_restarts)) ||
           says("job.max_restarts (" + std::to_string(job.job.max_restarts) + ")");
  }

  std::uint64_t draw(std::uint64_t least, std::uint64_t most) {
    return least + world_.random().below(most - least + 1);
  }
  std::string address(TaskId task) const { return address_of(jobs_.cluster, task); }

  void draw_cluster() {
    jobs_.cluster.ps.resize(draw(1, 2));
    jobs_.cluster.workers.resize(draw(1, 4));
    jobs_.cluster.chief.address = "chief/0";
    tasks_.push_back(TaskId{Role::kChief, 0});
    for (std::uint32_t i = 0; i < jobs_.cluster.ps.size(); ++i) {
      tasks_.push_back(TaskId{Role::kPs, i});
      jobs_.cluster.ps[i].address = to_string(tasks_.back());
    }
    for (std::uint32_t i = 0; i < jobs_.cluster.workers.size(); ++i) {
      tasks_.push_back(TaskId{Role::kWorker, i});
      jobs_.cluster.workers[i].address = to_string(tasks_.back());
    }
    network_.harm.set_workers(jobs_.cluster.workers.size());
    jobs_.cluster.transport.credits = static_cast<std::uint32_t>(draw(1, 4));
    network_.longest = std::chrono::microseconds(draw(50, 3000));
    disk_.slowest = quick_journal_ = milliseconds(draw(1, 50));
    storage_.slowest = milliseconds(draw(1, 50));
    if (!storage_.truth().make_directory("/c") || !storage_.truth().sync_directory(""))
      laws_.violated("the simulator's disk can't make a folder");
    network_.through_codec = draw(0, 7) == 0;
    jobs_.bucket_elements = draw(0, 2) == 0 ? draw(1, 3) : 0;
    slowest_step_ = milliseconds(draw(0, 3) == 0 ? draw(20, 100) : draw(1, 20));
  }

  void draw_job() {
    jobs_.records = draw(20, 300);
    const auto variables = draw(1, 4);
    for (std::uint64_t v = 0; v < variables; ++v) {
      VariableSpec variable;
      variable.name = "v" + std::to_string(v);
      variable.shape = {draw(1, 5)};
      variable.initializer.kind = InitializerKind::kZeros;
      jobs_.model.variables.push_back(variable);
    }
    jobs_.model.columns = {{.name = "inputs", .shape = {1}}};
    jobs_.model.brings_values = draw(0, 2) == 0;
    const auto workers = static_cast<std::uint32_t>(jobs_.cluster.workers.size());
    for (const char* name : {"first", "second"}) {
      JobConfig config;
      config.job.name = name;
      config.job.shards = static_cast<std::uint32_t>(draw(1, std::min<std::uint64_t>(variables, 3)));
      config.job.shards =
          std::min<std::uint32_t>(config.job.shards, 2 * static_cast<std::uint32_t>(jobs_.cluster.ps.size()));
      config.job.placement = Placement::kRoundRobin;
      config.job.stall_timeout = seconds(15);
      config.job.max_restarts = 10000;
      config.train.mode = std::vector{Mode::kAsync, Mode::kSync, Mode::kSsp}[draw(0, 2)];
      config.train.batch_size = static_cast<std::uint32_t>(draw(1, 16));
      config.train.epochs = draw(1, 3);
      if (draw(0, 4) == 0) config.train.steps = draw(1, 40);
      if (draw(0, 3) == 0) config.train.pipeline = 1;
      if (config.train.mode == Mode::kSync && workers > 1 && draw(0, 2) == 0)
        config.train.aggregate = static_cast<std::uint32_t>(draw(1, workers - 1));
      if (config.train.mode == Mode::kSsp) config.train.staleness = static_cast<std::uint32_t>(draw(0, 4));
      config.train.optimizer.learning_rate = 1.0;
      config.data.sharding = draw(0, 4) == 0 ? Sharding::kNone : Sharding::kLease;
      config.data.prefetch = static_cast<std::uint32_t>(draw(1, 4));
      config.evaluate.files = draw(0, 3) == 0 ? "" : "t";
      if (config.train.mode == Mode::kSync && config.train.aggregate == 0 && draw(0, 2) == 0)
        config.job.on_worker_loss = OnWorkerLoss::kWait;
      if (draw(0, 3) == 0) config.job.min_workers = static_cast<std::uint32_t>(draw(1, workers));
      if (draw(0, 2) != 0) {
        config.checkpoint.directory = "/c";
        config.checkpoint.every_steps = draw(0, 1) == 0 ? 0 : draw(1, 20);
        config.checkpoint.every = draw(0, 2) == 0 ? Duration(milliseconds(draw(20, 1000))) : Duration();
        config.checkpoint.keep = static_cast<std::uint32_t>(draw(1, 3));
        config.checkpoint.at_end = draw(0, 3) != 0;
      }
      jobs_.configs[name] = config;
      tell_job(config);
    }
  }

  // A quarter of the seeds has evaluators. Draws from a random stream of its own, as draw_long_work() does.
  void draw_evaluators(std::uint64_t seed) {
    Random random(seed, stream_of("evaluators"));
    if (random.below(4) != 0) return;
    jobs_.cluster.evaluators.resize(1 + random.below(2));
    for (std::uint32_t i = 0; i < jobs_.cluster.evaluators.size(); ++i) {
      tasks_.push_back(TaskId{Role::kEvaluator, i});
      jobs_.cluster.evaluators[i].address = to_string(tasks_.back());
    }
    slowest_evaluation_ = milliseconds(random.below(3) == 0 ? 3000 : 1 + random.below(300));
    world_.count(Happening::kEvaluators);
    for (auto& [name, job] : jobs_.configs) {
      if (job.checkpoint.directory.empty() || job.evaluate.files.empty()) continue;
      if (random.below(2) == 0) job.evaluate.keep_best = static_cast<std::uint32_t>(1 + random.below(2));
      if (random.below(3) == 0) job.evaluate.stop_after = static_cast<std::uint32_t>(1 + random.below(4));
      world_.tell("job " + name + ": " + std::to_string(jobs_.cluster.evaluators.size()) + " evaluators, keep_best " +
                  std::to_string(job.evaluate.keep_best) + ", stop_after " + std::to_string(job.evaluate.stop_after));
    }
  }

  // Draws from a random stream of its own, as Mishaps does, so that it doesn't change the runs of other seeds.
  void draw_long_work(std::uint64_t seed) {
    Random random(seed, stream_of("long work"));
    if (random.below(64) != 0) return;
    loses_ps_at_work_ = random.below(2) == 0;
    if (loses_ps_at_work_) {
      JobConfig& job = jobs_.configs.at("first");
      job.checkpoint.directory = "/c";
      job.checkpoint.every_steps = 1;
    }
    jobs_.slow_pieces = 20 + random.below(20);
    jobs_.slow_piece = milliseconds(2000 + random.below(5000));
    world_.tell("data and checkpoints are read in " + std::to_string(jobs_.slow_pieces) + " pieces, each for " +
                std::to_string(std::chrono::duration_cast<milliseconds>(jobs_.slow_piece).count()) + " ms");
  }

  // In some seeds, one of several workers can't take part in the first job. Draws from a random stream of its own.
  void draw_lack(std::uint64_t seed) {
    Random random(seed, stream_of("lack"));
    const auto workers = jobs_.cluster.workers.size();
    if (random.below(8) != 0 || workers < 2 || jobs_.configs.at("first").job.min_workers >= workers) return;
    jobs_.lacking = TaskId{Role::kWorker, static_cast<std::uint32_t>(random.below(workers))};
    jobs_.lack = std::vector{Lack::kDescription, Lack::kOpening, Lack::kLife}[random.below(3)];
    jobs_.die = [this, random](TaskId worker) mutable {
      const Duration away = milliseconds(1 + random.below(2000));
      world_.after(Duration(), [this, worker, away] {
        if (jobs_.lack == Lack::kLife && network_.is_alive(address(worker))) crash(worker, false, away);
      });
    };
    network_.harm.hit(address(jobs_.lacking));
    world_.tell(to_string(jobs_.lacking) + " can't take part in a job: lack " +
                std::to_string(static_cast<int>(jobs_.lack)));
  }

  // Kills a ps as soon as the first job runs and has a checkpoint. The restore then takes minutes. In half of the seeds
  // a worker dies in the meantime, and this ends the restore.
  void lose_ps_with_checkpoint() {
    if (faults_are_over_) return;
    const auto job = chief() != nullptr && chief()->listens() ? chief()->cluster().find("first") : std::nullopt;
    const auto journaled = job ? disk_.journal.jobs.find(*job) : disk_.journal.jobs.end();
    const bool has_one = journaled != disk_.journal.jobs.end() && journaled->second.checkpoint.has_value();
    if (!has_one || !is_running("first")) return world_.after(milliseconds(5), [this] { lose_ps_with_checkpoint(); });
    crash(TaskId{Role::kPs, 0}, false, milliseconds(50));
    if (world_.chance(500))
      world_.after(seconds(15), [this] {
        if (!faults_are_over_) crash(TaskId{Role::kWorker, 0}, false, milliseconds(50));
      });
  }

  // In a quarter of the seeds, each job has a limit for the wait for absent tasks. In one of 32 seeds, all tasks of a
  // role, or one of them, stay away for longer than all time limits. Draws from a random stream of its own, as
  // draw_long_work() does.
  void draw_absence(std::uint64_t seed) {
    Random random(seed, stream_of("absence"));
    const bool has_limits = random.below(4) == 0;
    for (auto& [name, job] : jobs_.configs) {
      const Duration ps = seconds(30 + random.below(200));
      const Duration workers = seconds(30 + random.below(200));
      if (!has_limits) continue;
      job.job.ps_timeout = ps;
      job.job.workers_timeout = workers;
    }
    if (random.below(32) != 0) return;
    absent_for_ = seconds(130 + random.below(200));
    const Role role = random.below(2) == 0 ? Role::kPs : Role::kWorker;
    for (const TaskId task : tasks_)
      if (task.role == role) absent_.push_back(task);
    if (random.below(3) == 0) absent_.resize(1);
    is_absent_at_work_ = random.below(4) != 0;
  }

  void begin_absence() {
    if (absent_.empty() || faults_are_over_) return;
    if (is_absent_at_work_ && !is_running("first")) return world_.after(milliseconds(20), [this] { begin_absence(); });
    world_.count(Happening::kAbsence);
    world_.tell("tasks stay away for " + std::to_string(std::chrono::duration_cast<seconds>(absent_for_).count()) +
                " s");
    absent_until_ = world_.now() + absent_for_;
    for (const TaskId task : absent_) crash(task, false, absent_for_);
  }

  // Makes each worker train for about half a minute, without leases.
  void make_long(JobConfig& job) {
    jobs_.records = 300;
    slowest_step_ = milliseconds(60);
    job.data.sharding = Sharding::kNone;
    job.train.batch_size = 1;
    job.train.epochs = 3;
    job.train.steps = 0;
    world_.tell("the first job is made to train for long");
  }

  void tell_job(const JobConfig& job) {
    const TrainSection& train = job.train;
    world_.tell("job " + job.job.name + ": " +
                std::vector{"async", "sync", "ssp"}[static_cast<std::size_t>(train.mode)] + ", " +
                std::to_string(job.job.shards) + " shards, " + std::to_string(jobs_.records) + " records in " +
                std::to_string(train.epochs) + " epochs by " + std::to_string(train.step_records()) + ", steps " +
                std::to_string(train.steps) + ", pipeline " + std::to_string(train.pipeline) + ", aggregate " +
                std::to_string(train.aggregate) + ", staleness " + std::to_string(train.staleness) +
                (job.data.sharding == Sharding::kLease ? ", leases" : ", each worker visits the whole set") +
                (job.job.on_worker_loss == OnWorkerLoss::kWait ? ", waits for lost workers" : "") + ", min_workers " +
                std::to_string(job.job.min_workers) +
                (job.checkpoint.directory.empty()
                     ? std::string(", no checkpoints")
                     : ", checkpoints every " + std::to_string(job.checkpoint.every_steps) + " steps"));
  }

  // Draws the faults of this seed, and how often each kind occurs.
  void draw_faults() {
    is_faulty_ = draw(0, 9) != 0;
    for (std::uint64_t& weight : weights_) weight = draw(0, 2) == 0 ? draw(1, 10) : 0;
    fault_pause_ = milliseconds(draw(20, 2000));
    if (!is_faulty_) return;
    network_.late_breaks = draw(0, 2) == 0 ? draw(100, 1000) : 0;
    network_.ghosts = draw(0, 3) == 0 ? draw(20, 300) : 0;
  }

  void start(TaskId task) {
    if (network_.is_alive(address(task)) || is_absent(task)) return;
    const Incarnation incarnation(++last_incarnation_);
    world_.tell(to_string(task) + " starts");
    std::unique_ptr<Node> node;
    if (task.role == Role::kChief)
      node = std::make_unique<ChiefNode>(world_, network_, incarnation, jobs_, laws_, disk_);
    else if (task.role == Role::kPs)
      node = std::make_unique<PsNode>(world_, network_, Member{task, incarnation}, jobs_, laws_);
    else if (task.role == Role::kEvaluator)
      node = std::make_unique<EvaluatorNode>(world_, network_, Member{task, incarnation}, jobs_, laws_,
                                             slowest_evaluation_);
    else
      node = std::make_unique<WorkerNode>(world_, network_, Member{task, incarnation}, jobs_, laws_, slowest_step_);
    network_.start(address(task), std::move(node));
  }

  bool is_absent(TaskId task) const {
    return !faults_are_over_ && world_.now() < absent_until_ &&
           std::find(absent_.begin(), absent_.end(), task) != absent_.end();
  }

  // Starts a second process of the task on another host, which takes over the task's address. The first process goes on
  // running.
  void start_beside(TaskId task) {
    if (!network_.is_alive(address(task))) return;
    const std::string former = to_string(task) + "." + std::to_string(former_.size() + 1);
    network_.rename(address(task), former);
    former_.insert(former);
    world_.tell(to_string(task) + " is started a second time; the first is " + former);
    start(task);
  }
  void exited(const std::string& where) {
    if (former_.count(where) != 0) return world_.count(Happening::kFormerOwnerEnded);
    if (former_.empty()) laws_.violated("I29: the only process at " + where + " was refused for good, so it has ended");
  }

  ChiefNode* chief() { return static_cast<ChiefNode*>(network_.at(jobs_.cluster.chief.address)); }

  chiefd::JobStatus status_of(const std::string& name) {
    return chief()->cluster().status(*chief()->cluster().find(name), world_.now());
  }
  bool is_running(const std::string& name) {
    if (chief() == nullptr || !chief()->listens()) return false;
    const auto job = chief()->cluster().find(name);
    return job && chief()->cluster().state_of(*job) == chiefd::JobState::kRunning;
  }
  bool is_over(const std::string& name) {
    if (chief() == nullptr || !chief()->listens()) return false;
    const auto job = chief()->cluster().find(name);
    return job && chief()->cluster().has_ended(*job);
  }
  // Submits the job again until the chief knows it. If a chief dies before it has accepted the job, the next chief
  // doesn't know the job.
  void keep_submitting() {
    if (chief() == nullptr || !chief()->listens() || wanted_.empty()) return;
    if (!chief()->cluster().find(wanted_)) chief()->submit(wanted_);
  }

  void watch() {
    if (chief() == nullptr || !chief()->listens()) return;
    if (network_.is_paused(jobs_.cluster.chief.address)) chief_runs_since_ = world_.now();
    chief()->check_clients(chief_runs_since_);
    const auto job = chief()->cluster().find(wanted_);
    if (!job) return;
    if (chief()->cluster().state_of(*job) != chiefd::JobState::kPaused) return laws_.isnt_paused();
    const chiefd::JobStatus status = chief()->cluster().status(*job, world_.now());
    const Happenings& happenings = world_.happenings();
    const std::uint64_t crashes = happenings[static_cast<std::size_t>(Happening::kCrash)] +
                                  happenings[static_cast<std::size_t>(Happening::kHostLost)];
    laws_.is_paused(world_.now(), chief()->cluster().timeouts().silent, crashes, jobs_.configs.at(wanted_), status);
  }

  void until(Instant end, const std::function<bool()>& done) {
    Instant client = world_.now();
    wanted_ = wanted_.empty() ? "first" : wanted_;
    while (laws_.violation().empty() && !done()) {
      if (world_.now() >= client) {
        keep_submitting();
        watch();
        client = world_.now() + milliseconds(100);
        world_.after(milliseconds(100), [] {});
      }
      if (!world_.turn(end)) return;
      if (world_.turns() > kMostTurns) laws_.violated("L2: the simulation doesn't end");
    }
  }

  // How long a job may take to end. It may read data and checkpoints slowly at its start, and again at each recovery.
  Duration patience() const {
    return seconds(400) + 4 * static_cast<std::int64_t>(jobs_.slow_pieces) * jobs_.slow_piece;
  }

  void expect_end(const std::string& name, Duration within) {
    wanted_ = name;
    until(world_.now() + within, [&] { return is_over(name); });
    if (is_over(name) || !laws_.violation().empty()) return;
    std::string state = "unknown to the chief";
    if (const auto job = chief()->cluster().find(name)) {
      const chiefd::JobStatus status = chief()->cluster().status(*job, world_.now());
      state = std::string(to_string(status.state)) + ": " + status.reason + ", at step " +
              std::to_string(status.global_step) + " of " + std::to_string(status.steps_target);
      for (const chiefd::TaskStatus& task : status.tasks)
        state += "; " + to_string(task.task) + " " + to_string(task.state) + " in " + to_string(task.phase) + " at " +
                 std::to_string(task.figures.step);
    }
    laws_.violated("L1: the " + name + " job hasn't ended within " +
                   std::to_string(std::chrono::duration_cast<seconds>(within).count()) + " s after the faults; it is " +
                   state);
  }

  void begin_faults(Instant end) {
    next_fault(end);
    if (!absent_.empty()) begin_absence();
    long_faults_.begin(end - world_.now(),
                       {tasks_, [this](TaskId task) { return address(task); }, [this] { return is_running("first"); },
                        [this](TaskId ps) { start_beside(ps); }});
    forks_.begin(end - world_.now(),
                 {tasks_, [this] { return chief() != nullptr && chief()->listens() ? chief() : nullptr; },
                  [this](TaskId task, Duration away) { crash(task, false, away); }});
    mishaps_.begin(
        jobs_.configs.at("first"), end - world_.now(),
        [this] { return chief() != nullptr && chief()->listens() ? chief() : nullptr; },
        [this] {
          const auto ps = static_cast<std::uint32_t>(world_.random().below(jobs_.cluster.ps.size()));
          crash(TaskId{Role::kPs, ps}, false, world_.between(milliseconds(1), milliseconds(4000)));
        },
        [this](std::optional<Role> role, std::uint64_t number, Duration away) {
          std::vector<TaskId> some = tasks_;
          std::erase_if(some, [role](TaskId t) { return t.role == Role::kChief || t.role != role.value_or(t.role); });
          const TaskId task = some[number % some.size()];
          if (!network_.is_alive(address(task))) return;
          network_.harm.hit(address(task));
          static_cast<TaskNode*>(network_.at(address(task)))->leave([this, task, away] { crash(task, false, away); });
        });
  }

  void next_fault(Instant end) {
    world_.after(world_.between(milliseconds(1), fault_pause_), [this, end] {
      if (world_.now() >= end || faults_are_over_) return;
      one_fault();
      next_fault(end);
    });
  }

  void one_fault() {
    std::uint64_t total = 0;
    for (const std::uint64_t weight : weights_) total += weight;
    if (total == 0) return;
    std::uint64_t lot = world_.random().below(total);
    std::size_t kind = 0;
    for (; lot >= weights_[kind]; ++kind) lot -= weights_[kind];
    const TaskId task = tasks_[world_.random().below(tasks_.size())];
    TaskId other = tasks_[world_.random().below(tasks_.size())];
    const TaskId worker{Role::kWorker, static_cast<std::uint32_t>(world_.random().below(jobs_.cluster.workers.size()))};
    // The task is away for a shorter time than the heartbeat timeout, or for a much longer time.
    const Duration away = world_.between(milliseconds(1), milliseconds(world_.chance(500) ? 100 : 4000));
    switch (static_cast<Fault>(kind)) {
      case Fault::kCut:
        for (std::uint64_t more = draw(0, 4); more > 0; --more)
          world_.after(world_.between(milliseconds(0), milliseconds(50)), [this] { network_.cut_one(); });
        return network_.cut_one();
      case Fault::kWorkerCrash:
        return crash(worker, false, away);
      case Fault::kCrash:
        return crash(task, world_.chance(200), away);
      case Fault::kPause:
        if (!network_.is_alive(address(task))) return;
        world_.count(Happening::kPause);
        network_.pause(address(task));
        return world_.after(away, [this, where = address(task)] { network_.resume(where); });
      case Fault::kPartition:
        // In some of these faults, a task can't reach the chief, but goes on working.
        if (world_.chance(300)) other = TaskId{Role::kChief, 0};
        if (task == other) return;
        world_.tell(to_string(task) + " can't reach " + to_string(other));
        world_.count(Happening::kPartition);
        return part(address(task), address(other), away);
      case Fault::kTrap:
        return network_.trap(address(task), draw(0, 30), world_.chance(500),
                             [this, task, away] { crash(task, false, away); });
      case Fault::kClock:
        return jump_clock(task);
      case Fault::kDisk:
        storage_.begin(static_cast<Storage::Trouble>(draw(1, 5)));
        return world_.after(away, [this] { storage_.end(); });
      case Fault::kPower:
        return storage_.fail_power_in(draw(0, 20), [this, away] { lose_power(away); });
      case Fault::kJournal:
        world_.tell("the chief's own disk gets slow");
        world_.count(Happening::kJournalSlow);
        disk_.slowest = milliseconds(draw(100, 1500));
        return world_.after(away, [this] { disk_.slowest = quick_journal_; });
      case Fault::kFaults:
        return;
    }
  }

  void part(const std::string& one, const std::string& other, Duration heals_after) {
    Network::Links links = {{one, other}};
    if (world_.chance(500)) links.emplace_back(other, one);
    network_.part(links, heals_after);
  }

  void jump_clock(TaskId task) {
    if (!network_.is_alive(address(task))) return;
    world_.count(Happening::kClockJump);
    const Duration by = world_.between(milliseconds(1), milliseconds(world_.chance(500) ? 500 : 30000));
    world_.tell("the clock of " + to_string(task) + " jumps by " +
                std::to_string(std::chrono::duration_cast<milliseconds>(by).count()) + " ms");
    network_.at(address(task))->jump(by);
    network_.harm.hit(address(task));
  }

  // The chief and the ps tasks write to the shared disk. They run on its host, so they lose power too.
  void lose_power(Duration away) {
    for (const TaskId task : tasks_)
      if (task.role != Role::kWorker) crash(task, true, away);
    storage_.lose_power();
    laws_.power_lost();
  }

  void crash(TaskId task, bool with_host, Duration away) {
    network_.crash(address(task), with_host);
    world_.after(away, [this, task] { start(task); });
  }

  void heal() {
    world_.tell("faults end");
    faults_are_over_ = true;
    jobs_.lack = Lack::kNothing;
    long_faults_.end();
    network_.heal_all();
    network_.disarm();
    network_.late_breaks = network_.ghosts = 0;
    mishaps_.end();
    forks_.end();
    disk_.heal();
    storage_.end();
    // Some ps tasks run twice. An operator ends the first process of each.
    for (const std::string& where : former_)
      if (network_.is_alive(where)) network_.crash(where, false);
    storage_.cancel_power_failure();
    disk_.slowest = quick_journal_;
    for (const TaskId task : tasks_) {
      network_.resume(address(task));
      start(task);
    }
  }

  enum class Fault {
    kCut,
    kWorkerCrash,
    kCrash,
    kPause,
    kPartition,
    kTrap,  // a crash right before or right after a message is handled
    kClock,
    kDisk,
    kPower,
    kJournal,
    kFaults  // how many there are
  };

  World world_;
  // Declared before the network, because the processes in it hold files of these disks until the network is destroyed.
  ChiefDisk disk_;
  Storage storage_;
  Jobs jobs_;
  Laws laws_;
  Network network_;
  Mishaps mishaps_;
  LongFaults long_faults_;
  Forks forks_;
  std::set<std::string> former_;  // addresses of former processes, whose places other processes have taken
  std::vector<TaskId> tasks_;
  Duration slowest_step_{};
  Duration slowest_evaluation_{};
  bool is_faulty_ = false;
  bool loses_ps_at_work_ = false;
  std::vector<TaskId> absent_;  // the tasks that stay away for long
  bool is_absent_at_work_ = false;
  Duration absent_for_{};
  Instant absent_until_;
  std::uint64_t weights_[static_cast<std::size_t>(Fault::kFaults)] = {};
  Duration quick_journal_{};
  Duration fault_pause_{};
  bool faults_are_over_ = false;
  std::uint64_t last_incarnation_ = 1000;
  std::string wanted_;
  Instant chief_runs_since_;  // when the chief was paused last
};

}  // namespace

void take_failed_checks_for_violations() {
  internal::on_failed_check = [](const char* sentence) { throw FailedCheck(sentence); };
}

Outcome simulate(std::uint64_t seed, bool keep_words) {
  Simulation simulation(seed, keep_words);
  try {
    return simulation.run();
  } catch (const FailedCheck& failed) {
    return simulation.broken(failed.what());
  } catch (const std::exception& thrown) {
    return simulation.broken(std::string("an exception: ") + thrown.what());
  }
}

}  // namespace disttrain::sim
