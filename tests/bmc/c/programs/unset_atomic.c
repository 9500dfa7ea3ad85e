// An atomic counter in a local struct is increased before it is set.
// verdict: true
// violated: memory
struct counter {
  _Atomic int n;
  int other;
};
int main(void) {
  struct counter c;
  c.other = 1;
  c.n++;
  return c.other;
}
