// Which job `disttrain stop` and `disttrain kill` end.
#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/disttrain/follow/follow_job.h"
#include "transport/control_link.h"
#include "transport/factory/factory.h"

namespace disttrain::cli {
namespace {

// A chief on the client's own loop. It answers each request for a status with `status`.
class QueueChief final : public transport::ControlHandler {
 public:
  explicit QueueChief(asio::io_context& loop) {
    auto listener =
        transport_->listen(loop, "127.0.0.1:0", {}, [this, &loop](std::unique_ptr<transport::Arrival> arrival) {
          link_ = std::make_unique<transport::ControlLink>(arrival->adopt(loop), *this);
          link_->answer(Welcome{});
        });
    listener_ = std::move(*listener);
  }

  std::string address() const { return listener_->address(); }

  std::string status;
  std::optional<Refused> refusal;  // of each StopRequest
  std::vector<std::string> asked;  // the jobs whose status was asked for
  std::vector<StopRequest> stops;

 private:
  void on_answer(const wire::HelloAnswer&) override {}
  void on_message(wire::ControlMessage message) override {
    if (const auto* request = std::get_if<StatusRequest>(&message)) {
      asked.push_back(request->job);
      (void)link_->send(StatusAnswer{status});
    } else if (const auto* stop = std::get_if<StopRequest>(&message)) {
      stops.push_back(*stop);
      if (refusal)
        (void)link_->send(*refusal);
      else
        (void)link_->send(RequestDone{});
    }
  }
  void on_closed(const Error&) override {}

  const std::unique_ptr<transport::Transport> transport_ = transport::make_client_transport();
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<transport::ControlLink> link_;
};

class EndJob : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(client_.connect({chief_.address(), "", 0}, std::chrono::seconds(10))); }

  asio::io_context loop_{1};
  QueueChief chief_{loop_};
  ChiefClient client_{loop_, {}};
};

TEST_F(EndJob, RunningJobIsNamedAndTheRequestHasItsNumber) {
  chief_.status = R"({"job": "mnist", "id": 7, "state": "running"})";
  const auto ended = end_job(client_, "", true);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(*ended, "7 (mnist)");
  EXPECT_EQ(chief_.asked, std::vector<std::string>{""});
  ASSERT_EQ(chief_.stops.size(), 1u);
  EXPECT_EQ(chief_.stops.front().job, "7");
  EXPECT_TRUE(chief_.stops.front().kill);
}

TEST_F(EndJob, JobOfANameIsEndedByItsNumber) {
  chief_.status = R"({"job": "mnist", "id": 7, "state": "queued"})";
  EXPECT_EQ(end_job(client_, "mnist", false).value(), "7 (mnist)");
  EXPECT_EQ(chief_.asked, std::vector<std::string>{"mnist"});
  ASSERT_EQ(chief_.stops.size(), 1u);
  EXPECT_EQ(chief_.stops.front().job, "7");
  EXPECT_FALSE(chief_.stops.front().kill);
}

TEST_F(EndJob, JobThatEndsInBetweenIsARefusal) {
  chief_.status = R"({"job": "mnist", "id": 7, "state": "running"})";
  chief_.refusal = Refused{ErrorCode::kUsage, "job mnist has ended already: it is finished"};
  const auto ended = end_job(client_, "", true);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kUsage);
  EXPECT_NE(ended.error().message.find("has ended already"), std::string::npos) << ended.error().message;
}

TEST_F(EndJob, WithoutAJobNothingIsStopped) {
  chief_.status = R"({"job": null, "id": null, "state": null})";
  const auto ended = end_job(client_, "", true);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kUsage);
  EXPECT_EQ(ended.error().message, "no job runs");
  EXPECT_TRUE(chief_.stops.empty());
}

}  // namespace
}  // namespace disttrain::cli
