// A struct is copied with a field that was never set. The copy is fine; then the field is read.
// verdict: true
// violated: memory
struct pair {
  int first, second;
};
int took(struct pair p) { return p.second; }
int main(void) {
  struct pair made, copy;
  made.first = 1;
  copy = made;
  return took(copy);
}
