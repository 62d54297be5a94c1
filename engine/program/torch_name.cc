// The one function of the library that has the name of PyTorch's libtorch.so. See CMakeLists.txt.
extern "C" int disttrain_torch_name() {
  return 1;
}
