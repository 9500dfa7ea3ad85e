// Counts words with std::thread: one map per thread, merged after the joins. A chunk without words throws an exception.
// Usage: words [THREADS]
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static const char *text[] = {
    "the quick brown fox", "jumps over", "", "the lazy dog and the", "other fox", "over and over",
};

struct Counter {
    std::map<std::string, int> words;
    int empty = 0;

    void count(const std::string &line) {
        if (line.empty()) throw std::runtime_error("no words");
        size_t from = 0;
        while (from <= line.size()) {
            size_t to = line.find(' ', from);
            if (to == std::string::npos) to = line.size();
            words[line.substr(from, to - from)]++;
            from = to + 1;
        }
    }
};

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 3;
    const int lines = sizeof text / sizeof *text;
    std::vector<Counter> counters(threads);
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; t++)
        workers.emplace_back([&counters, t, threads] {
            for (int i = t; i < lines; i += threads) {
                try {
                    counters[t].count(text[i]);
                } catch (const std::exception &) {
                    counters[t].empty++;
                }
            }
        });
    for (auto &worker : workers) worker.join();
    std::map<std::string, int> all;
    int empty = 0;
    for (auto &counter : counters) {
        for (auto &entry : counter.words) all[entry.first] += entry.second;
        empty += counter.empty;
    }
    for (auto &entry : all) printf("%s %d\n", entry.first.c_str(), entry.second);
    printf("empty %d\n", empty);
    return 0;
}
