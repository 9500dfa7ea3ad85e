// Two threads and the library of C++: in each mode but `own`, they share something that only code of the library accesses.
#include <pthread.h>

#include <cstring>
#include <functional>
#include <iomanip>
#include <iostream>
#include <list>
#include <map>
#include <sstream>
#include <string>
#include <thread>

static int found[2];
static std::string text = "0123456789";
static const char *inside = text.data();
static char letters[8] = "abc";
static std::list<int> numbers = {1};
static std::map<int, int> tree = {{1, 2}, {3, 4}};

static void twice(void *(*work)(void *)) {
    pthread_t ids[2];
    for (long i = 0; i < 2; i++) pthread_create(&ids[i], nullptr, work, reinterpret_cast<void *>(i));
    for (pthread_t id : ids) pthread_join(id, nullptr);
    std::cout << found[0] << " " << found[1] << "\n";
}

#define PAIR(name, one, other) \
    static void *name(void *given) { if (given) { other; } else { one; } return nullptr; }
PAIR(reads_number, std::istringstream("5") >> found[0], found[1] = found[0])
PAIR(reads_word, std::istringstream("abc") >> text, found[1] = inside[1])
PAIR(reads_line, std::istringstream in("abc"); std::getline(in, text), found[1] = inside[1])
PAIR(appends, text.append("xyz"), found[1] = inside[11])
PAIR(assigns, text = "xyz", found[1] = inside[1])
PAIR(prints, letters[1] = 'x', std::ostringstream out; out << letters; found[1] = out.str()[1])
PAIR(prints_string, const_cast<char *>(inside)[1] = 'x', std::ostringstream out; out << text; found[1] = out.str()[1])
PAIR(sets_state, std::cout.precision(3), std::cout << 3.14159 << "\n")
PAIR(pushes, numbers.push_back(5), for (int n : numbers) found[1] += n)
PAIR(inserts, tree[5] = 6, found[1] = tree.find(5) != tree.end())
PAIR(erases, tree.erase(tree.begin()), found[1] = tree.find(3) != tree.end())
PAIR(steps, tree[5] = 6, auto at = tree.find(3); found[1] = ++at != tree.end())

static void *has_its_own(void *given) {
    const long number = reinterpret_cast<long>(given);
    std::string line = "thread ";
    std::ostringstream out;
    std::list<int> list;
    std::map<std::string, int> counts;
    for (int i = 0; i < 5; i++) {
        line.append(1, static_cast<char>('a' + i)).insert(0, "x");
        list.push_back(i);
        counts[line.substr(1)] += i;
        out << line << std::setw(3) << i;
    }
    for (const auto &entry : counts) found[number] += entry.second + static_cast<int>(entry.first.size());
    list.pop_front();
    counts.erase(counts.begin());
    found[number] += static_cast<int>(out.str().size() + text.size() + list.size() + (text.compare("5") > 0));
    return nullptr;
}

int main(int, char **given) {
    const std::string mode = given[1];
    if (mode == "number") twice(reads_number);
    if (mode == "word") twice(reads_word);
    if (mode == "line") twice(reads_line);
    if (mode == "append") twice(appends);
    if (mode == "assign") twice(assigns);
    if (mode == "prints") twice(prints);
    if (mode == "printed string") twice(prints_string);
    if (mode == "state") twice(sets_state);
    if (mode == "list") twice(pushes);
    if (mode == "insert") twice(inserts);
    if (mode == "erase") twice(erases);
    if (mode == "step") twice(steps);
    if (mode == "own") twice(has_its_own);
    if (mode == "hash") std::cout << std::hash<std::thread::id>{}(std::this_thread::get_id()) % 7 << "\n";
}
