#include "common/metrics/rpc.h"

#include <cctype>

#include "common/metrics/families.h"

namespace disttrain::metrics {

namespace {

constexpr char kOther[] = "Other";

std::string snake_case(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool is_capital = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (is_capital && !result.empty()) result += '_';
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

}  // namespace

void RpcFigures::add(const RpcFigures& other) {
  for (std::size_t i = 0; i < kRpcCodes; ++i) counts_[i] += other.counts_[i];
  seconds_.add(other.seconds_);
}

void RpcFigures::collect(Page& page, const std::string& task, const std::string& op) const {
  constexpr std::array<const char*, kRpcCodes> kNames = {"ok", "refused", "error"};
  for (std::size_t i = 0; i < kRpcCodes; ++i)
    page.set(kRpcRequests, {task, op, kNames[i]}, static_cast<double>(counts_[i]));
  page.set(kRpcDuration, {task, op}, seconds_);
}

RpcBook::RpcBook(const std::vector<std::string>& names) {
  for (const std::string& name : names) figures_[name];
  figures_[kOther];
}

RpcFigures& RpcBook::of(const std::string& name) {
  const auto found = figures_.find(name);
  return found != figures_.end() ? found->second : figures_.at(kOther);
}

void RpcBook::collect(Page& page, const std::string& task) const {
  for (const auto& [name, figures] : figures_) figures.collect(page, task, snake_case(name));
}

}  // namespace disttrain::metrics
