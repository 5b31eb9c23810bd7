// Finds and reads the workload files that a command line names. Some workload files come with the program.
// Thread-safety: pure functions of the file system.
#pragma once

#include "autotune/workload/workload.h"

#include <string>
#include <vector>

namespace nsa::tools {

// Reads a workload file, or a program's record of its plans.
Result<Workload> readWorkload(const std::string &path);
// Returns the path of the folder with the ready-made workloads, found from the path of this program.
std::string workloadFolder();
// The names of the workloads in a folder, in ascending order. Their files are NAME.json.
std::vector<std::string> readyWorkloads(const std::string &folder);
// Reads the workload that a word of the command line names. A word that ends in .json or contains a slash is the path
// of a workload file. Any other word is the name of a ready-made workload in `folder`, or, if no ready-made workload
// has this name, the name of a file in the working folder.
Result<Workload> findWorkload(const std::string &word, const std::string &folder);
// The workloads of several words. The word `all` means every ready-made workload. If two workloads have the same name,
// findWorkloads returns an error.
Result<std::vector<Workload>> findWorkloads(const std::vector<std::string> &words, const std::string &folder);

} // namespace nsa::tools
