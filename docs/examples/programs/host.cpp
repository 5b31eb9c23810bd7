// y = x * scale + b in host memory, by a program in the tile language, in C++17. With TREE, an installed tree or an
// unpacked bundle: c++ -std=c++17 host.cpp -I$TREE/include -L$TREE/lib -lnsa -Wl,-rpath,$TREE/lib -o host && ./host
#include <nsa/nsa.hpp>

#include <cstdio>
#include <numeric>
#include <vector>

int main(int argc, char **argv) try {
  constexpr std::int64_t rows = 100, columns = 1000;
  std::vector<float> x(rows * columns), b(columns, 1), y(x.size());
  std::iota(x.begin(), x.end(), 0.0f);

  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  options.device = "cpu"; // "cuda:0" takes device pointers, and a CUDA stream in `program` and `run`
  nsa::Engine engine(options);
  const auto source = nsa::ProgramSource::file(argc > 1 ? argv[1] : "scaled_sum.tile");
  const std::vector<nsa::ProgramValue> values = {{"dtype", "fp32"}, {"columns", columns}, {"rows", rows}};
  engine.tuneProgram(source, values, /*budgetSeconds*/ 1); // may be left out
  const nsa::Program program = engine.program(source, values);
  nsa::HostWorkspace workspace(program.workspaceSize());
  // The extents of x say how many rows there are.
  program.run({{"x", nsa::Tensor(x, {rows, columns})},
               {"b", nsa::Tensor(b, {1, columns})},
               {"y", nsa::Tensor(y, {rows, columns})}},
              {{"scale", 0.5}}, workspace.data(), workspace.size());
  std::printf("The last element is %.1f * 0.5 + 1 = %.1f\n", x.back(), y.back());
} catch (const nsa::Error &error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
