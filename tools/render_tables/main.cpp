// nsa_render_tables [--check] ROOT PAGE...: renders the measured numbers of pages (page.h) from the records of the
// repository ROOT. With --check it changes nothing; it fails when a page is not current or has a table whose numbers
// are from nowhere, and when any record is one that no page may show, and prints the age of every record.
#include "tools/render_tables/page.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace {

using namespace nsa;
using namespace nsa::tables;

bool fail(const std::string &message) {
  std::fprintf(stderr, "nsa_render_tables: %s\n", message.c_str());
  return false;
}

bool checkRecords(Records &records) {
  bool isFine = true;
  for (const std::string &name : records.find()) {
    const Result<const Json *> record = records.read(name);
    if (!record) {
      isFine = fail(record.status().toString());
      continue;
    }
    const std::optional<int64_t> age = records.age(**record);
    std::printf("%-28s %s commits old\n", name.c_str(), age ? std::to_string(*age).c_str() : "unknown");
  }
  return isFine;
}

std::optional<std::string> contentOf(const std::filesystem::path &path) {
  std::error_code error;
  std::ifstream input;
  if (!std::filesystem::is_directory(path, error)) // which opens, and throws when it is read
    input.open(path, std::ios::binary);
  if (!input.is_open())
    return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(input), {});
}

// With `isCheck` compares the file's content with the rendered text, and otherwise writes the text.
bool settle(const std::filesystem::path &path, const std::optional<std::string> &content, const std::string &rendered,
            bool isCheck) {
  if (content == rendered)
    return true;
  if (isCheck)
    return fail(path.string() + " is out of date: build the target nsa_documents");
  std::error_code error; // says itself, where the file cannot be opened
  std::filesystem::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file << rendered;
  file.close();
  return file || fail(path.string() + " cannot be written");
}

bool renderFile(const std::filesystem::path &path, Records &records, bool isCheck) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return fail(path.string() + " is a folder: name the pages in it");
  const std::optional<std::string> current = contentOf(path);
  if (!current)
    return fail(path.string() + " cannot be read");
  const Result<RenderedPage> rendered = renderPage(*current, records, isCheck ? Ages::kKept : Ages::kCounted);
  if (!rendered)
    return fail(path.string() + ": " + rendered.status().toString());
  bool isFine = settle(path, current, rendered->text, isCheck);
  for (const auto &[name, text] : rendered->figures) {
    const std::filesystem::path file = path.parent_path() / name;
    isFine &= settle(file, contentOf(file), text, isCheck);
  }
  if (isCheck)
    for (const int line : tablesWithoutSource(*current))
      isFine = fail(path.string() + ":" + std::to_string(line) +
                    ": this table has measured numbers: render them from a record, or "
                    "say below the table where they are from (tools/render_tables/page.h)");
  return isFine;
}

} // namespace

int main(int argc, char **argv) {
  const bool isCheck = argc > 1 && std::string_view(argv[1]) == "--check";
  const int first = isCheck ? 2 : 1;
  if (argc < first + 2) {
    std::fprintf(stderr, "usage: nsa_render_tables [--check] ROOT PAGE...\n");
    return 2;
  }
  Records records(argv[first]);
  bool isFine = !isCheck || checkRecords(records);
  for (int i = first + 1; i < argc; ++i)
    isFine &= renderFile(argv[i], records, isCheck);
  return isFine ? 0 : 1;
}
