// Measures the tcp transport over loopback. One thread acts as a worker and sends frames. The other acts as a shard and
// answers each frame with a frame of the same size.
//
// Usage: transport_bench [CONGESTION_CONTROL] [free | same | apart] [CASE].
//
// With `free` the threads run on any cores, with `same` both run on core 0, and with `apart` on cores 0 and 1. CASE is
// the index of the case to run; without it all cases run.
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "transport/factory/factory.h"
#include "transport/wire/codec.h"

namespace disttrain::transport {
namespace {

using Clock = std::chrono::steady_clock;

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// User and system time of both threads. Other programs on the machine disturb CPU time less than elapsed time.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// Acts as a shard: receives each frame's payload into `landing_` and answers with a payload of the same size.
class Echo : public ConnectionHandler {
 public:
  explicit Echo(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {
    connection_->start(*this);
  }
  Result<MutableBytes> payload_landing(const wire::FrameHeader& header, Bytes) override {
    return MutableBytes(landing_).first(header.payload_bytes);
  }
  void on_frame(const wire::FrameHeader& header, Bytes control, Bytes payload) override {
    if (!wire::decode_push(control)) std::abort();
    OutgoingFrame answer;
    answer.header.type = wire::FrameType::kParameters;
    answer.header.sequence = header.sequence;
    Parameters parameters;
    parameters.acknowledged = header.sequence;
    answer.control = wire::encode(parameters, scratch_);
    answer.payload = Bytes(parameters_).first(payload.size());
    answer.lifetime = Payload::kCopied;
    connection_->send(answer);
  }
  void on_sent(std::uint64_t) override {}
  void on_closed(const Error&) override {}

 private:
  std::unique_ptr<Connection> connection_;
  std::vector<std::byte> landing_ = std::vector<std::byte>(wire::kMaxPayloadBytes);
  std::vector<std::byte> parameters_ = std::vector<std::byte>(wire::kMaxPayloadBytes);
  wire::ScratchBuffer scratch_;
};

// Acts as a worker: sends a frame whenever fewer than `credits` frames are unanswered.
class Pusher : public ConnectionHandler {
 public:
  Pusher(asio::io_context& loop, std::unique_ptr<Connection> connection)
      : loop_(loop), connection_(std::move(connection)) {
    connection_->start(*this);
  }
  // Sends `frames` frames of `frame_bytes` bytes and waits for all answers. Returns how many seconds that took.
  double exchange(std::size_t frame_bytes, std::uint64_t frames, std::uint64_t credits) {
    frame_bytes_ = frame_bytes;
    to_send_ = to_come_ = frames;
    const auto begin = Clock::now();
    for (std::uint64_t i = 0; i < std::min(credits, frames); ++i) send_one();
    loop_.restart();
    loop_.run();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  Result<MutableBytes> payload_landing(const wire::FrameHeader& header, Bytes) override {
    return MutableBytes(parameters_).first(header.payload_bytes);
  }
  void on_frame(const wire::FrameHeader&, Bytes control, Bytes) override {
    if (!wire::decode_parameters(control)) std::abort();
    if (to_send_ > 0) send_one();
    if (--to_come_ == 0) loop_.stop();
  }
  void on_sent(std::uint64_t) override {}
  void on_closed(const Error& why) override {
    std::fprintf(stderr, "%s\n", why.message.c_str());
    std::exit(1);
  }

 private:
  void send_one() {
    --to_send_;
    Push push;
    push.clock = Step(++sequence_);
    push.visited = {{100, 200}};
    OutgoingFrame frame;
    frame.header.type = wire::FrameType::kPush;
    frame.header.sequence = Sequence(sequence_);
    frame.control = wire::encode(push, scratch_);
    frame.payload = Bytes(gradients_).first(frame_bytes_);
    frame.cookie = sequence_;
    connection_->send(frame);
  }

  asio::io_context& loop_;
  std::unique_ptr<Connection> connection_;
  std::size_t frame_bytes_ = 0;
  std::uint64_t to_send_ = 0, to_come_ = 0, sequence_ = 0;
  std::vector<std::byte> gradients_ = std::vector<std::byte>(wire::kMaxPayloadBytes);
  std::vector<std::byte> parameters_ = std::vector<std::byte>(wire::kMaxPayloadBytes);
  wire::ScratchBuffer scratch_;
};

int run(const std::string& congestion_control, const std::string& cores, int only) {
  TransportConfig config;
  config.congestion_control = congestion_control;
  const Result<std::unique_ptr<Transport>> made = make_transport(config, "bench");
  if (!made) {
    std::fprintf(stderr, "%s\n", made.error().message.c_str());
    return 78;
  }
  Transport& transport = **made;
  asio::io_context server_loop(1), loop(1);
  auto guard = asio::make_work_guard(server_loop);
  std::unique_ptr<Echo> echo;
  auto listener = transport.listen(server_loop, "127.0.0.1:0", {}, [&](std::unique_ptr<Arrival> arrival) {
    echo = std::make_unique<Echo>(arrival->adopt(server_loop));
  });
  if (!listener) return 1;
  if (cores != "free") pin(0);
  std::thread server([&] {
    if (cores == "apart") pin(1);
    server_loop.run();
  });

  std::unique_ptr<Pusher> pusher;
  OutgoingFrame hello;
  hello.header.type = wire::FrameType::kHello;
  transport.dial(loop, (*listener)->address(), hello, std::chrono::seconds(5), [&](auto dialled) {
    if (dialled) pusher = std::make_unique<Pusher>(loop, std::move(*dialled));
    loop.stop();
  });
  loop.run();
  if (!pusher) return 1;

  struct Case {
    const char* name;
    std::size_t frame_bytes;
    std::uint64_t frames;  // of one step
    std::uint64_t credits;
    int steps;
  };
  const Case cases[] = {{"64 B", 64, 1, 1, 20000},
                        {"318 KB in 1 frame", 318040, 1, 1, 2000},
                        {"80 MB in 256 KiB frames, 4 credits", 262144, 306, 4, 8},
                        {"80 MB in 1 MiB frames, 4 credits", 1048576, 77, 4, 8},
                        {"80 MB in 256 KiB frames, 16 credits", 262144, 306, 16, 8}};
  for (const Case& c : cases) {
    if (only >= 0 && &c - cases != only) continue;
    for (int i = 0; i < 3; ++i) pusher->exchange(c.frame_bytes, c.frames, c.credits);
    std::vector<double> seconds;
    const double cpu_begin = cpu_seconds();
    for (int i = 0; i < c.steps; ++i) seconds.push_back(pusher->exchange(c.frame_bytes, c.frames, c.credits));
    const double cpu = (cpu_seconds() - cpu_begin) / c.steps;
    std::sort(seconds.begin(), seconds.end());
    const double median = seconds[seconds.size() / 2];
    std::printf("%-38s median %10.1f us   best %10.1f us   cpu %10.1f us   %6.2f GB/s in each direction\n", c.name,
                median * 1e6, seconds[0] * 1e6, cpu * 1e6,
                static_cast<double>(c.frame_bytes * c.frames) / median / 1e9);
  }
  asio::post(server_loop, [&] {
    echo.reset();
    listener->reset();
    guard.reset();
  });
  server.join();
  return 0;
}

}  // namespace
}  // namespace disttrain::transport

int main(int argc, char** argv) {
  return disttrain::transport::run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "free",
                                   argc > 3 ? std::atoi(argv[3]) : -1);
}
