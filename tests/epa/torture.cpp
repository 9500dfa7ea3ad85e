// What instrumentation must not break in C++: virtual calls, exceptions, templates, statics, threads.
#include <thread>
#include <mutex>
#include <atomic>
#include <memory>
#include <vector>
#include <map>
#include <unordered_map>
#include <string>
#include <sstream>
#include <iostream>
#include <functional>
#include <algorithm>
#include <future>
#include <stdexcept>
struct Base { virtual ~Base() = default; virtual int f(int) const = 0; };
struct D1 : Base { int f(int x) const override { return x + 1; } };
struct D2 : virtual Base { int k = 3; int f(int x) const override { if (x > 3) throw std::out_of_range("big"); return x * k; } };
static std::once_flag flag_;
thread_local std::string name = "none";
static int &counter() { static int c = 7; return c; }
template <class T> T twice(T t) { return t + t; }
int main() {
    counter();
    std::call_once(flag_, [] { std::cout << "once\n"; });
    std::vector<std::unique_ptr<Base>> v; v.emplace_back(new D1); v.emplace_back(new D2);
    std::vector<int> results(4);
    std::vector<std::thread> ts;
    for (int t = 0; t < 4; t++) ts.emplace_back([&, t] {
        name = "thread" + std::to_string(t);
        std::ostringstream o; o << name << twice(t);
        int s = (int)o.str().size();
        for (auto &p : v) for (int i = 0; i < 6; i++) { try { s += p->f(i); } catch (const std::out_of_range &e) { s += 100; } }
        results[t] = s;
    });
    for (auto &t : ts) t.join();
    std::map<std::string, int> m; for (int r : results) m[std::to_string(r)]++;
    std::sort(results.begin(), results.end(), std::greater<int>());
    auto sp = std::make_shared<int>(5); auto sp2 = sp;
    std::atomic<int> a{0}; a += 3;
    std::mutex mu; { std::lock_guard<std::mutex> l(mu); a++; }
    std::function<int(int)> fn = [&](int x) { return x + *sp2 + counter(); };
    for (auto &e : m) std::cout << e.first << " " << e.second << "\n";
    std::cout << results[0] << " " << fn(1) << " " << a << " " << sp.use_count() << "\n";
    return 0;
}
