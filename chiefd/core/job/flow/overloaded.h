// The cases of a std::visit, as lambdas.
#pragma once

namespace disttrain::chiefd::flow {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace disttrain::chiefd::flow
