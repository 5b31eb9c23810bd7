// nsa_render_tables [--check] PAGE RESULTS: replaces what stands between `<!-- table:NAME -->` and `<!-- end -->` in a
// page by the tables rendered from RESULTS/*/NAME.json, folders ascending. With --check it changes nothing and fails
// when the page is not current.
#include "tools/render_tables/tables.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace {

using nsa::tables::Json;

std::optional<std::string> readFile(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// nullopt after a message when there is no result or a file is broken.
std::optional<std::string> renderTable(const std::string &name, const std::filesystem::path &results) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(results, error))
    if (std::filesystem::exists(entry.path() / (name + ".json")))
      files.push_back(entry.path() / (name + ".json"));
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::fprintf(stderr, "nsa_render_tables: no folder of %s holds a %s.json\n", results.c_str(), name.c_str());
    return std::nullopt;
  }
  std::string text;
  for (const std::filesystem::path &file : files) {
    const Json report = Json::parse(readFile(file).value_or(""), nullptr, false);
    const bool plain = !name.starts_with("attention"); // whose runs of some heads alone are "attention_HEADS"
    if (!report.is_object() || !report.contains("results") || !report.contains("machine") ||
        (plain && !report.contains("table"))) {
      std::fprintf(stderr, "nsa_render_tables: %s is no result of a bench that has a table\n", file.c_str());
      return std::nullopt;
    }
    text += (text.empty() ? "" : "\n") + nsa::tables::machineLine(report) + "\n" +
            (plain ? nsa::tables::plainTable(report) : nsa::tables::attentionTable(report));
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
    const std::optional<std::string> table = renderTable(name, results);
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
