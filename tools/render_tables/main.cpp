// nsa_render_tables [--check] PAGE RESULTS: replaces what stands between `<!-- table:NAME -->` and `<!-- end -->` in a
// page by the table rendered from RESULTS/*/NAME.json. With --check it changes nothing and fails when the page is
// not current. The one table so far: attention.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace {

using nlohmann::json;

std::optional<std::string> readFile(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string number(double value) {
  char text[32];
  const int decimals = value < 1 ? 3 : value < 10 ? 2 : value < 100 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

// Everything that default and tuned rows of one shape have in common, in the order of the columns.
using Shape = std::tuple<std::string, std::string, int, int, int, int, int, int>;

std::string attentionTable(const json &report) {
  std::vector<Shape> order;
  std::map<Shape, std::map<std::string, json>> rows;
  for (const json &row : report["results"]) {
    const Shape shape = {row.value("op", ""),      row.value("dtype", ""), row.value("query_heads", 0),
                         row.value("kv_heads", 0), row.value("qk_dim", 0), row.value("v_dim", 0),
                         row.value("tokens", 0),   row.value("window", 0)};
    if (!rows.count(shape))
      order.push_back(shape);
    rows[shape][row.value("kind", "")] = row;
  }
  const json &machine = report["machine"], &device = machine["device"];
  const bool gpu = device.value("kind", "") == "gpu";
  std::string text = gpu ? device.value("name", "") + ", driver " + device.value("driver", "")
                         : machine.value("processor", "") + ", " + device.value("threads", "") + " threads, FMA peak " +
                               number(report["fma_peak"].value("gflops", 0.0) / 1000) + " TFLOP/s";
  text += ", source " + machine.value("source", "") + ", " + machine.value("date", "") + "\n\n";
  text += "| operator | type | heads | head sizes | tokens | window | default ms | tuned ms | tuned TFLOP/s "
          "|\n|---|---|---|---|---|---|---|---|---|\n";
  for (const Shape &shape : order) {
    const auto &[op, dtype, queryHeads, kvHeads, qkDim, vDim, tokens, window] = shape;
    auto column = [&](const char *kind, const char *name) {
      const auto found = rows[shape].find(kind);
      return found == rows[shape].end() ? std::string("-") : number(found->second.value(name, 0.0));
    };
    text += "| " + op + " | " + dtype + " | " + std::to_string(queryHeads) + "/" + std::to_string(kvHeads) + " | " +
            std::to_string(qkDim) + "/" + std::to_string(vDim) + " | " + std::to_string(tokens) + " | " +
            (window ? std::to_string(window) : "-") + " | " + column("default", "median_ms") + " | " +
            column("tuned", "median_ms") + " | " + column("tuned", "tflops") + " |\n";
  }
  return text;
}

// One table for each folder that has results, folders ascending.
std::optional<std::string> renderAttention(const std::filesystem::path &results) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(results, error))
    if (std::filesystem::exists(entry.path() / "attention.json"))
      files.push_back(entry.path() / "attention.json");
  std::sort(files.begin(), files.end());
  std::string text;
  for (const std::filesystem::path &file : files) {
    const json report = json::parse(readFile(file).value_or(""), nullptr, false);
    if (!report.is_object() || !report.contains("results") || !report.contains("machine")) {
      std::fprintf(stderr, "nsa_render_tables: %s is no result of nsa_bench_attention\n", file.c_str());
      return std::nullopt;
    }
    text += (text.empty() ? "" : "\n") + attentionTable(report);
  }
  return text;
}

// nullopt after a message when the page's markers or the results are broken.
std::optional<std::string> render(const std::string &page, const std::filesystem::path &results) {
  constexpr std::string_view kBegin = "<!-- table:", kClose = " -->\n", kEnd = "<!-- end -->";
  std::string output;
  size_t position = 0;
  for (size_t begin; (begin = page.find(kBegin, position)) != std::string::npos;) {
    const size_t close = page.find(kClose, begin);
    const size_t end = page.find(kEnd, begin);
    if (close == std::string::npos || end == std::string::npos || end < close) {
      std::fprintf(stderr, "nsa_render_tables: a `<!-- table:NAME -->` line has no `<!-- end -->`\n");
      return std::nullopt;
    }
    const std::string name = page.substr(begin + kBegin.size(), close - begin - kBegin.size());
    if (name != "attention") {
      std::fprintf(stderr, "nsa_render_tables: unknown table \"%s\" (known: attention)\n", name.c_str());
      return std::nullopt;
    }
    const std::optional<std::string> table = renderAttention(results);
    if (!table)
      return std::nullopt;
    output += page.substr(position, close + kClose.size() - position) + *table;
    position = end;
  }
  return output + page.substr(position);
}

} // namespace

int main(int argc, char **argv) {
  const bool check = argc > 1 && std::string_view(argv[1]) == "--check";
  if (argc != (check ? 4 : 3)) {
    std::fprintf(stderr, "usage: nsa_render_tables [--check] PAGE RESULTS\n");
    return 2;
  }
  const std::filesystem::path page = argv[argc - 2], results = argv[argc - 1];
  const std::optional<std::string> current = readFile(page);
  if (!current) {
    std::fprintf(stderr, "nsa_render_tables: %s cannot be read\n", page.c_str());
    return 1;
  }
  const std::optional<std::string> rendered = render(*current, results);
  if (!rendered)
    return 1;
  if (*rendered == *current)
    return 0;
  if (check) {
    std::fprintf(stderr, "nsa_render_tables: %s is out of date: build the target nsa_readme_tables\n", page.c_str());
    return 1;
  }
  std::ofstream file(page, std::ios::binary);
  file << *rendered;
  file.close();
  return file ? 0 : 1;
}
